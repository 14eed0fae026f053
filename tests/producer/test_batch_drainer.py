"""Selection of due batches, and their removal for requests."""

import math
from collections.abc import Sequence

import pytest

from kclient.producer.batch_drainer import BatchDrainer, oldest_batch
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.topic_info import PartitionQueue
from tests.support.virtual.producer_parts import TOPIC, ProducerParts, cluster

PARTS = ProducerParts()
LINGER_MS = 50.0


def drainer(*counts: int, size: int = 1 << 20) -> BatchDrainer:
    """Return a drainer with a queue for each partition, which has so many closed batches."""
    made = BatchDrainer(PARTS.runtime.tasks.lock(), LINGER_MS, size, oldest_batch)
    for partition, count in enumerate(counts):
        batches = [PARTS.batch(bytes(300), partition=partition) for _ in range(count)]
        made.update(PARTS.queue(partition, *batches))
    return made


def lingering(partition: int = 0, age_ms: float = 0) -> PartitionQueue:
    """Return a queue with an open batch, of an age."""
    queue = PARTS.queue(partition)
    batch = PARTS.batch(b"x", partition=partition)
    batch.created_ms -= age_ms
    queue.open(batch)
    return queue


def drain(of: BatchDrainer, *nodes: int) -> dict[int, list[int]]:
    """Return the partitions of the drained batches, by node."""
    drained = of.drain(nodes, PARTS.clock.now_ms)
    return {
        node: [batch.topic_partition.partition for batch in batches]
        for node, batches in drained.items()
    }


def test_nodes_with_closed_batches_are_ready() -> None:
    found = drainer(1, 1, 1).ready(
        cluster(3, 2, leaderless=(2,)), PARTS.clock.now_ms, skip_linger=False
    )
    assert found.ready_nodes == {0, 1}
    assert found.unknown_leader_topics == {TOPIC}


def test_open_batch_is_due_after_linger() -> None:
    made = drainer()
    queue = PARTS.queue()
    batch = PARTS.batch(b"x")
    queue.open(batch)
    made.update(queue)
    now_ms = batch.created_ms
    assert not made.ready(cluster(1), now_ms + 20, skip_linger=False).ready_nodes
    assert made.linger_end_ms == now_ms + LINGER_MS
    assert made.ready(cluster(1), now_ms + LINGER_MS, skip_linger=False).ready_nodes == {0}
    assert made.linger_end_ms == math.inf


def test_open_batch_is_due_at_once_without_linger() -> None:
    made = drainer()
    made.update(lingering())
    assert made.ready(cluster(1), PARTS.clock.now_ms, skip_linger=True).ready_nodes == {0}
    assert drain(made, 0) == {0: [0]}
    assert made.linger_end_ms == math.inf


def test_queues_that_linger_are_not_drained_with_a_due_one() -> None:
    made = drainer(1)
    for partition in range(1, 4):
        made.update(lingering(partition))
    made.ready(cluster(4), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0) == {0: [0]}
    assert not made.has_due()


def test_all_queues_are_due_when_the_linger_of_one_ends() -> None:
    made = drainer()
    for partition, age_ms in enumerate((0, 30, 10)):
        made.update(lingering(partition, age_ms))
    now_ms = PARTS.clock.now_ms + 20
    made.ready(cluster(3), now_ms, skip_linger=False)
    assert [len(batches) for batches in made.drain([0], now_ms).values()] == [3]


def test_due_queue_stays_due_while_its_open_batch_takes_records() -> None:
    made = drainer()
    queue = lingering()
    made.update(queue)
    made.ready(cluster(1), PARTS.clock.now_ms, skip_linger=True)
    assert not made.update(queue)
    assert drain(made, 0) == {0: [0]}


def test_linger_of_a_queue_that_was_drained_does_not_count() -> None:
    made = drainer()
    old, young = lingering(0, age_ms=40), lingering(1)
    for queue in (old, young):
        made.update(queue)
    old.set_open_batch(None)
    made.update(old)
    now_ms = PARTS.clock.now_ms
    made.ready(cluster(2), now_ms, skip_linger=False)
    assert drain(made, 0) == {0: [0]}
    assert not made.ready(cluster(2), now_ms + 20, skip_linger=False).ready_nodes
    assert made.linger_end_ms == now_ms + LINGER_MS


def test_sender_is_woken_for_due_batches_and_the_earliest_linger() -> None:
    made = drainer()
    first, earlier, later = lingering(0, 10), lingering(1, 20), lingering(2)
    assert [made.update(queue) for queue in (first, later, earlier)] == [True, False, True]
    later.set_open_batch(None)
    assert made.update(later)
    assert not made.update(PARTS.queue(3))


def test_open_batch_lingers_after_a_closed_one_was_drained() -> None:
    made = drainer()
    queue = PARTS.queue(0, PARTS.batch(b"a"))
    queue.open(PARTS.batch(b"b"))
    made.update(queue)
    made.ready(cluster(1), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0) == {0: [0]}
    assert not made.has_due()
    assert made.linger_end_ms == PARTS.clock.now_ms + LINGER_MS


def test_batch_in_backoff_is_not_due_even_without_linger() -> None:
    made = drainer(1)
    (queue,) = made._due
    batch = queue.batches[0]
    batch.retry_at_ms = PARTS.clock.now_ms + 100
    waiting = made.ready(cluster(1), PARTS.clock.now_ms, skip_linger=True)
    assert (waiting.ready_nodes, waiting.next_check_delay_ms) == (set(), 100.0)
    assert drain(made, 0) == {}
    batch.retry_at_ms = PARTS.clock.now_ms
    assert drain(made, 0) == {0: [0]}


def test_drain_takes_one_batch_of_each_partition() -> None:
    made = drainer(2, 1, 1)
    made.ready(cluster(3, 2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0, 1) == {0: [0, 2], 1: [1]}
    assert made.has_due()
    assert drain(made, 0, 1) == {0: [0]}
    assert not made.has_due()


def test_nodes_that_are_not_ready_keep_their_batches() -> None:
    made = drainer(1, 1)
    made.ready(cluster(2, 2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 1) == {1: [1]}
    assert drain(made, 0) == {0: [0]}


def test_muted_partition_is_neither_due_nor_drained() -> None:
    made = drainer(1, 1)
    muted, _ = made._due
    muted.muted = True
    made.ready(cluster(2, 2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0, 1) == {1: [1]}


def test_full_request_continues_with_the_next_partition() -> None:
    made = drainer(3, 3, 3, size=800)
    made.ready(cluster(3), PARTS.clock.now_ms, skip_linger=False)
    assert [drain(made, 0)[0] for _ in range(4)] == [[0, 1], [2, 0], [1, 2], [0, 1]]


def test_batch_larger_than_a_request_is_drained_alone() -> None:
    made = drainer(1, 1, size=10)
    made.ready(cluster(2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0) == {0: [0]}
    assert drain(made, 0) == {0: [1]}


def test_batches_are_chosen_by_the_given_rule() -> None:
    def newest_of_three(batches: Sequence[ProducerBatch], _leader: int) -> ProducerBatch | None:
        return batches[-1] if len(batches) == 3 else None

    made = BatchDrainer(PARTS.runtime.tasks.lock(), LINGER_MS, 1_000, newest_of_three)
    batches = [PARTS.batch(b"x") for _ in range(3)]
    made.update(PARTS.queue(0, *batches))
    made.ready(cluster(1), PARTS.clock.now_ms, skip_linger=False)
    assert made.drain([0], PARTS.clock.now_ms) == {0: [batches[2]]}
    assert made.drain([0], PARTS.clock.now_ms) == {}


def test_request_may_have_exactly_its_maximum_size() -> None:
    size = PARTS.queue(0, PARTS.batch(bytes(300))).batches[0].current_size()
    made = drainer(1, 1, size=2 * size)
    made.ready(cluster(2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0) == {0: [0, 1]}


def is_ready(made: BatchDrainer, at_ms: float, *, skip_linger: bool = False) -> bool:
    found = made.ready(cluster(4), PARTS.clock.now_ms + at_ms, skip_linger=skip_linger)
    return bool(found.ready_nodes)


def after_a_round(sending_ms: float) -> BatchDrainer:
    """Return a drainer after a round, in which a batch was opened whose ``linger.ms`` has passed.

    The present time is that of the round's end.
    """
    made = drainer()
    made.update(lingering(age_ms=LINGER_MS))
    assert is_ready(made, 0)
    assert drain(made, 0) == {0: [0]}
    made.update(lingering(1, age_ms=LINGER_MS))
    made.sent(1, PARTS.clock.now_ms - sending_ms, PARTS.clock.now_ms)
    return made


@pytest.mark.parametrize("sending_ms", [1.0, LINGER_MS])
def test_round_is_followed_by_a_pause(sending_ms: float) -> None:
    made = after_a_round(sending_ms)
    pause_ms = 3 * sending_ms
    assert made.linger_end_ms == PARTS.clock.now_ms + pause_ms
    assert not is_ready(made, pause_ms - 0.5)
    assert is_ready(made, pause_ms)


def test_pause_is_limited() -> None:
    made = after_a_round(10_000.0)
    assert not is_ready(made, 10 * LINGER_MS - 0.5)
    assert is_ready(made, 10 * LINGER_MS)


def test_pause_counts_all_requests_of_a_round() -> None:
    made = drainer()
    for partition in range(2):
        made.update(lingering(partition, age_ms=LINGER_MS))
    now_ms = PARTS.clock.now_ms
    for nodes, sending_ms in ((0, 4.0), (1, 6.0)):
        assert made.ready(cluster(2, 2), now_ms, skip_linger=False).ready_nodes
        assert drain(made, nodes) == {nodes: [nodes]}
        made.sent(1, now_ms - sending_ms, now_ms)
    made.update(lingering(2, age_ms=LINGER_MS))
    assert made.linger_end_ms == now_ms + 30.0


def test_batch_opened_in_a_pause_waits_for_its_end_and_its_linger() -> None:
    made = after_a_round(10.0)
    made.update(lingering(2, age_ms=LINGER_MS))
    assert made.linger_end_ms == PARTS.clock.now_ms + 30.0
    assert is_ready(made, 30.0)
    assert drain(made, 0) == {0: [1, 2]}
    made.sent(2, PARTS.clock.now_ms + 30.0, PARTS.clock.now_ms + 31.0)
    assert made.update(lingering(3, age_ms=-32.0))
    assert made.linger_end_ms == PARTS.clock.now_ms + 32.0 + LINGER_MS


def test_closed_batches_and_flushes_do_not_wait_for_a_pause() -> None:
    assert is_ready(after_a_round(10.0), 1.0, skip_linger=True)
    made = after_a_round(10.0)
    assert made.update(PARTS.queue(2, PARTS.batch(bytes(300), partition=2)))
    assert is_ready(made, 1.0)
    assert drain(made, 0) == {0: [2]}


def test_no_linger_no_pause() -> None:
    made = BatchDrainer(PARTS.runtime.tasks.lock(), 0.0, 1 << 20, oldest_batch)
    made.update(lingering())
    assert is_ready(made, 0)
    assert drain(made, 0) == {0: [0]}
    made.sent(1, PARTS.clock.now_ms - 30.0, PARTS.clock.now_ms)
    made.update(lingering(1))
    assert is_ready(made, 0.0)


def send_full_batch(made: BatchDrainer, at_ms: float, sending_ms: float) -> None:
    made.update(PARTS.queue(2, PARTS.batch(bytes(300), partition=2)))
    assert is_ready(made, at_ms)
    assert drain(made, 0) == {0: [2]}
    now_ms = PARTS.clock.now_ms + at_ms
    made.sent(1, now_ms, now_ms + sending_ms)


def test_full_batches_do_not_delay_open_ones() -> None:
    made = drainer()
    made.update(lingering())
    for at_ms in range(0, int(LINGER_MS), 10):
        send_full_batch(made, at_ms, sending_ms=9.0)
    assert made.linger_end_ms == PARTS.clock.now_ms + LINGER_MS
    assert is_ready(made, LINGER_MS)


def test_full_batches_do_not_prolong_a_pause() -> None:
    made = after_a_round(10.0)
    send_full_batch(made, 5.0, sending_ms=20.0)
    assert made.linger_end_ms == PARTS.clock.now_ms + 30.0
    assert is_ready(made, 30.0)


def test_full_batches_of_a_round_count_for_their_share_only() -> None:
    made = drainer(0, 1, 1, 1)
    made.update(lingering(age_ms=LINGER_MS))
    assert is_ready(made, 0)
    assert sorted(drain(made, 0)[0]) == [0, 1, 2, 3]
    made.update(lingering(age_ms=LINGER_MS))
    made.sent(4, PARTS.clock.now_ms - 20.0, PARTS.clock.now_ms)
    assert made.linger_end_ms == PARTS.clock.now_ms + 3 * 20.0 / 4
