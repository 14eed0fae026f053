"""Selection of due batches, and their removal for requests."""

from collections.abc import Sequence

from kclient.producer.batch_drainer import BatchDrainer, oldest_batch
from kclient.producer.producer_batch import ProducerBatch
from tests.support.virtual.producer_parts import TOPIC, ProducerParts, cluster

PARTS = ProducerParts()
LINGER_MS = 50.0


def drainer(*counts: int, size: int = 1 << 20) -> BatchDrainer:
    """Return a drainer with a queue for each partition, which has so many closed batches."""
    made = BatchDrainer(PARTS.runtime.tasks.lock(), LINGER_MS, size, oldest_batch)
    for partition, count in enumerate(counts):
        batches = [PARTS.batch(bytes(300), partition=partition) for _ in range(count)]
        made.add(PARTS.queue(partition, *batches))
    return made


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
    made.add(queue)
    now_ms = batch.created_ms
    waiting = made.ready(cluster(1), now_ms + 20, skip_linger=False)
    assert (waiting.ready_nodes, waiting.next_check_delay_ms) == (set(), 30.0)
    assert made.ready(cluster(1), now_ms + LINGER_MS, skip_linger=False).ready_nodes == {0}
    assert made.ready(cluster(1), now_ms, skip_linger=True).ready_nodes == {0}


def test_batch_in_backoff_is_not_due_even_without_linger() -> None:
    made = drainer(1)
    (queue,) = made._active()
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
    assert made.has_batches()
    assert drain(made, 0, 1) == {0: [0]}
    assert not made.has_batches()


def test_nodes_that_are_not_ready_keep_their_batches() -> None:
    made = drainer(1, 1)
    made.ready(cluster(2, 2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 1) == {1: [1]}
    assert drain(made, 0) == {0: [0]}


def test_muted_partition_is_neither_due_nor_drained() -> None:
    made = drainer(1, 1)
    muted, _ = made._active()
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
    def newest_of_three(batches: Sequence[ProducerBatch]) -> ProducerBatch | None:
        return batches[-1] if len(batches) == 3 else None

    made = BatchDrainer(PARTS.runtime.tasks.lock(), LINGER_MS, 1_000, newest_of_three)
    batches = [PARTS.batch(b"x") for _ in range(3)]
    made.add(PARTS.queue(0, *batches))
    made.ready(cluster(1), PARTS.clock.now_ms, skip_linger=False)
    assert made.drain([0], PARTS.clock.now_ms) == {0: [batches[2]]}
    assert made.drain([0], PARTS.clock.now_ms) == {}


def test_request_may_have_exactly_its_maximum_size() -> None:
    size = PARTS.queue(0, PARTS.batch(bytes(300))).batches[0].current_size()
    made = drainer(1, 1, size=2 * size)
    made.ready(cluster(2), PARTS.clock.now_ms, skip_linger=False)
    assert drain(made, 0) == {0: [0, 1]}
