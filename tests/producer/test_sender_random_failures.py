"""Random failures with five requests in flight: the log must stay correct.

The same actions are driven twice: by hypothesis, which shrinks failures, and by a seeded generator
that prefers full pipelines and reaches longer histories.
"""

import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kclient.common.broker_errors import InvalidRecordError, RecordTooLargeError
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import DeliveryTimeoutError
from kclient.protocol.messages.produce import BatchIndexAndErrorMessage, ProduceResponse
from tests.support.virtual.producer_world import ProducerWorld, WorldOptions, builder_of

TIMED_OUT, NOT_ENOUGH_AFTER_APPEND, INVALID_RECORD = 7, 20, 87
CODES = [0, 0, 0, 0, 3, 6, TIMED_OUT, 19, NOT_ENOUGH_AFTER_APPEND]


class Chaos:
    """Two partitions on two nodes, and the invariants of their logs."""

    def __init__(self) -> None:
        self.world = ProducerWorld(
            WorldOptions(partitions=2, nodes=2, batch_size=200, delivery_timeout_ms=600_000)
        )
        self.world.broker[1].max_batch_bytes = 130  # any single record fits
        self.sent: dict[int, list[tuple[bytes, DeliveryFuture]]] = {0: [], 1: []}
        self.seen: dict[bytes, int] = {}
        self.expiring = False

    def send(self, partition: int, count: int, size: int) -> None:
        for _ in range(count):
            value = b"%06d" % len(self.seen) + bytes(size)
            self.seen[value] = 0
            future = self.world.send(
                value, partition, on_delivery=partial(self._record_outcome, value)
            )
            self.sent[partition].append((value, future))

    def _record_outcome(self, value: bytes, metadata: object, error: object) -> None:
        self.seen[value] += 1

    def step(self, advance_ms: float) -> None:
        self.world.step(advance_ms)

    def respond(self, node: str, code: int) -> None:
        queue = self.world.client.wire.get(node)
        if not queue:
            return
        sent = queue[0]
        partitions = [batch.topic_partition.partition for batch in builder_of(sent).batches]
        # Two errors are seen although the batch is in the log.
        appended = code in {0, TIMED_OUT, NOT_ENOUGH_AFTER_APPEND}
        errors = {} if appended else dict.fromkeys(partitions, code)
        response = sent.response if sent.processed else self.world.process(sent, errors)
        assert isinstance(response, ProduceResponse)
        if code in {TIMED_OUT, NOT_ENOUGH_AFTER_APPEND}:
            for each in response.responses[0].partition_responses:
                each.error_code, each.base_offset = each.error_code or code, -1
        self.world.client.end(node, response)
        self.world.step()

    def refuse(self, node: str, index: int) -> None:
        """A broker rejects one record of each batch."""
        queue = self.world.client.wire.get(node)
        if queue and not queue[0].processed:
            counts = [batch.record_count for batch in builder_of(queue[0]).batches]
            response = self.world.process(queue[0], {0: INVALID_RECORD, 1: INVALID_RECORD})
            responses = response.responses[0].partition_responses
            for count, each in zip(counts, responses, strict=True):
                each.record_errors = [BatchIndexAndErrorMessage(batch_index=index % count)]
            self.world.client.end(node, response)
            self.world.step()

    def disconnect(self, node: str, written: int) -> None:
        """The connection is lost after the broker has processed the first few requests."""
        for sent in list(self.world.client.wire.get(node, ()))[:written]:
            if not sent.processed:
                self.world.process(sent)
        self.world.client.disconnect(node)
        self.world.step()

    def move_leaders(self) -> None:
        self.world.leaders = {0: self.world.leaders[1], 1: self.world.leaders[0]}
        self.world.leader_epoch += 1
        self.world.update_metadata()

    def go_down_or_come_up(self, node: int) -> None:
        self.world.client.down ^= {node}

    def squeeze(self, limit: int) -> None:
        """``max.message.bytes`` of a topic changes, possibly between two attempts."""
        self.world.broker[0].max_batch_bytes = limit

    def expire_all_batches(self) -> None:
        self.expiring = True
        self.world.step(600_000)

    def check(self) -> None:
        """Order, no duplicates, acknowledged offsets, one outcome per record.

        And memory in flight is not written to: see CVE-2026-35554.
        """
        for queue in self.world.client.wire.values():
            assert all(request.is_untouched() for request in queue)
        for partition, sent in self.sent.items():
            log = self.world.broker[partition].values()
            order = {value: place for place, (value, _) in enumerate(sent)}
            places = [order[value] for value in log]
            assert places == sorted(set(places)), "out of order or twice"
            held = set(log)
            for value, future in sent:
                assert self.seen[value] == int(future.done())
                if future.done() and future.exception(0) is None:
                    offset = future.result(0).offset
                    assert offset == -1 or log[offset] == value
                    assert value in held

    def finish(self) -> None:
        """Ends all failures; every record must get its outcome."""
        self.world.client.down.clear()
        self.world.settle(400)
        self.check()
        for partition, sent in self.sent.items():
            log = set(self.world.broker[partition].values())
            for value, future in sent:
                error = future.exception(0)
                if error is not None:
                    assert isinstance(
                        error, DeliveryTimeoutError | RecordTooLargeError | InvalidRecordError
                    )
                    refused = isinstance(error, InvalidRecordError)
                    assert self.expiring or refused or error.possibly_written
                    assert error.possibly_written or value not in log
        assert self.world.pool.available() == self.world.pool.total
        assert self.world.client.in_flight_request_count() == 0


class ChaosMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.chaos = Chaos()

    @rule(partition=st.integers(0, 1), count=st.integers(1, 4), size=st.sampled_from([1, 45]))
    def send(self, partition: int, count: int, size: int) -> None:
        self.chaos.send(partition, count, size)

    @rule(advance_ms=st.sampled_from([0, 1, 50, 150, 1_000]))
    def step(self, advance_ms: int) -> None:
        self.chaos.step(advance_ms)

    @rule(node=st.sampled_from("01"), code=st.sampled_from(CODES))
    def respond(self, node: str, code: int) -> None:
        self.chaos.respond(node, code)

    @rule(node=st.sampled_from("01"), index=st.integers(0, 3))
    def refuse(self, node: str, index: int) -> None:
        self.chaos.refuse(node, index)

    @rule(node=st.sampled_from("01"), written=st.integers(0, 5))
    def disconnect(self, node: str, written: int) -> None:
        self.chaos.disconnect(node, written)

    @rule()
    def move_leaders(self) -> None:
        self.chaos.move_leaders()

    @rule(node=st.sampled_from([0, 1]))
    def go_down_or_come_up(self, node: int) -> None:
        self.chaos.go_down_or_come_up(node)

    @rule(limit=st.sampled_from([130, 1 << 30]))
    def squeeze(self, limit: int) -> None:
        self.chaos.squeeze(limit)

    @rule()
    def expire_all_batches(self) -> None:
        self.chaos.expire_all_batches()

    @invariant()
    def log_is_correct(self) -> None:
        self.chaos.check()

    def teardown(self) -> None:
        self.chaos.finish()


ChaosMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
)
TestChaos = pytest.mark.fault("W2", "W3", "W4", "W10", "W11", "W13")(ChaosMachine.TestCase)

DEEDS = {"send": 40, "step": 30, "respond": 25, "disconnect": 2, "move": 1, "down": 1,
         "expire": 0.3, "squeeze": 1, "refuse": 1}  # fmt: skip


@pytest.mark.fault("W2", "W3", "W4", "W8", "W10", "W11", "W13", "W14")
@pytest.mark.parametrize("seed", range(60))
def test_long_random_histories(seed: int) -> None:
    dice = random.Random(seed)
    chaos = Chaos()

    def node() -> str:
        return dice.choice("01")

    deeds: dict[str, Callable[[], None]] = {
        "send": lambda: chaos.send(dice.randrange(2), dice.randint(1, 4), dice.choice([1, 45])),
        "step": lambda: chaos.step(dice.choice([0, 0, 1, 50, 200])),
        "respond": lambda: chaos.respond(node(), dice.choice(CODES)),
        "disconnect": lambda: chaos.disconnect(node(), dice.randint(0, 5)),
        "move": chaos.move_leaders,
        "down": lambda: chaos.go_down_or_come_up(dice.randrange(2)),
        "squeeze": lambda: chaos.squeeze(dice.choice([130, 1 << 30])),
        "refuse": lambda: chaos.refuse(node(), dice.randrange(4)),
        "expire": chaos.expire_all_batches,
    }
    for turn in range(250):
        (deed,) = dice.choices(list(DEEDS), list(DEEDS.values()))
        deeds[deed]()
        if turn % 25 == 0:
            chaos.check()
    chaos.finish()
