"""Random sequences of reading calls over transactional logs, compared with a model."""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from kclient.common.types import TopicPartition
from kclient.consumer import Consumer, ConsumerRecords
from kclient.record import ConsumerRecord, ControlRecordType
from tests.consumer.conftest import ConsumerWorld
from tests.consumer.transactions import TransactionWriter

PARTITIONS = 3
PRODUCERS = (5, 6)

FEW = st.one_of(st.none(), st.integers(1, 20))
SEEDS = st.integers(0, 10_000)
NUMBERS = st.integers(0, PARTITIONS - 1)


class Marking:
    """Changes every value, to detect values that were changed twice or not at all."""

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        return ConsumerRecords(
            {
                partition: [_marked(record) for record in records.records(partition)]
                for partition in records.partitions()
            }
        )

    def on_commit(self, offsets: object) -> None:
        pass

    def close(self) -> None:
        pass


def _marked(record: ConsumerRecord) -> ConsumerRecord:
    return ConsumerRecord(
        record.topic, record.partition, record.offset, key=record.key, value=record.value + b"!"
    )


class ReadingModel(RuleBasedStateMachine):
    """A consumer and, for each partition, the offset that it must have reached at least.

    The real position may be further on, but only by what no reader may see: markers, holes and
    records of aborted transactions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = ConsumerWorld()
        self.partitions = self.world.broker.add_topic("model", PARTITIONS)
        self.writers = {
            partition: TransactionWriter(self.world.broker.logs[partition])
            for partition in self.partitions
        }
        self.reached = dict.fromkeys(self.partitions, 0)
        self.paused: set[TopicPartition] = set()
        self.committed_only = False
        self.mark = b""
        self.consumer: Consumer

    @initialize(
        committed_only=st.sampled_from([True, True, False]),
        intercepted=st.booleans(),
        max_poll_records=st.sampled_from([10, 7, 500, 1]),
        fetch_bytes=st.sampled_from([100_000, 100_000, 1000, 250]),
        response_limit=st.sampled_from([1 << 30, 1 << 30, 2000, 300]),
        seed=SEEDS,
    )
    def begin(
        self,
        committed_only: bool,
        intercepted: bool,
        max_poll_records: int,
        fetch_bytes: int,
        response_limit: int,
        seed: int,
    ) -> None:
        self.committed_only = committed_only
        self.mark = b"!" if intercepted else b""
        self.world.broker.response_limit = response_limit
        random = Random(seed)
        for partition in self.partitions:
            self._write(partition, random, 20)
        self.consumer = self.world.consumer(
            group_id="g",
            enable_auto_commit=False,
            isolation_level="read_committed" if committed_only else "read_uncommitted",
            interceptor_classes=[Marking] if intercepted else [],
            max_poll_records=max_poll_records,
            max_partition_fetch_bytes=fetch_bytes,
        )
        self.consumer.assign(self.partitions)

    def teardown(self) -> None:
        try:
            if hasattr(self, "consumer"):
                self._read_to_the_end()
        finally:
            for consumer in self.world.consumers:
                consumer.close(timeout=0)

    # --- what the application does

    @rule(max_records=FEW)
    def poll(self, max_records: int | None) -> None:
        self._take(self.consumer.poll(0.05, max_records))

    @rule(max_records=FEW)
    def poll_columns(self, max_records: int | None) -> None:
        for row in self.consumer.poll_columns(0.05, max_records).to_pylist():
            assert row["value"] == b"%d" % row["offset"]
            self._pass(TopicPartition(row["topic"], row["partition"]), row["offset"])

    @rule(count=st.integers(1, 8))
    def iterate(self, count: int) -> None:
        for _ in range(count):
            if self._has_more():
                self._take([next(self.consumer)])

    @rule(share=st.floats(0.0, 0.5), count=st.integers(1, 4), max_records=FEW)
    def iterate_and_take_the_rest_as_columns(
        self, share: float, count: int, max_records: int | None
    ) -> None:
        for number in range(PARTITIONS):
            self.seek(number, share)
        self.iterate(count)
        self.poll_columns(max_records)
        self.iterate(count)
        self.poll_columns(max_records)

    @rule(wait_ms=st.sampled_from([1.0, 120.0, 700.0]))
    def work(self, wait_ms: float) -> None:
        self.world.sleep(wait_ms)

    @rule(number=NUMBERS, share=st.floats(0.0, 1.0))
    def seek(self, number: int, share: float) -> None:
        partition = self.partitions[number]
        offset = int(share * self.writers[partition].log.end_offset)
        self.consumer.seek(partition, offset)
        self.reached[partition] = offset

    @rule(number=NUMBERS)
    def seek_to_beginning(self, number: int) -> None:
        self.consumer.seek_to_beginning(self.partitions[number])
        self.reached[self.partitions[number]] = 0

    @rule(number=NUMBERS)
    def pause(self, number: int) -> None:
        self.consumer.pause(self.partitions[number])
        self.paused.add(self.partitions[number])

    @rule(number=NUMBERS)
    def resume(self, number: int) -> None:
        self.consumer.resume(self.partitions[number])
        self.paused.discard(self.partitions[number])

    @rule(number=NUMBERS)
    def position(self, number: int) -> None:
        partition = self.partitions[number]
        self._check_position(partition, self.consumer.position(partition))

    @rule()
    def commit(self) -> None:
        self.consumer.commit()
        for partition, stored in self.consumer.committed(self.partitions).items():
            if stored is not None and self.consumer.position(partition) == stored.offset:
                self._check_position(partition, stored.offset)

    @rule(number=NUMBERS, seed=SEEDS)
    def write(self, number: int, seed: int) -> None:
        self._write(self.partitions[number], Random(seed), 6)
        self.world.broker.arrived()

    # --- the model

    def _write(self, partition: TopicPartition, random: Random, steps: int) -> None:
        writer = self.writers[partition]
        for _ in range(steps):
            producer, count = random.choice(PRODUCERS), random.randint(1, 5)
            match random.choice(["plain", "write", "write", "commit", "abort"]):
                case "plain":
                    writer.write(count)
                case "write":
                    writer.write(count, producer)
                case "commit":
                    writer.end(producer, ControlRecordType.COMMIT)
                case "abort":
                    writer.end(producer, ControlRecordType.ABORT)

    def _left(self, partition: TopicPartition) -> list[int]:
        visible = self.writers[partition].visible(committed_only=self.committed_only)
        return [offset for offset in visible if offset >= self.reached[partition]]

    def _has_more(self) -> bool:
        return any(self._left(partition) for partition in set(self.partitions) - self.paused)

    def _take(self, records: ConsumerRecords | list[ConsumerRecord]) -> None:
        for record in records:
            assert record.value == b"%d%s" % (record.offset, self.mark)
            self._pass(TopicPartition(record.topic, record.partition), record.offset)

    def _pass(self, partition: TopicPartition, offset: int) -> None:
        assert partition not in self.paused
        assert [offset] == self._left(partition)[:1], f"{partition}: not the next record"
        self.reached[partition] = offset + 1

    def _check_position(self, partition: TopicPartition, position: int) -> None:
        assert position >= self.reached[partition]
        assert not [offset for offset in self._left(partition) if offset < position]

    def _read_to_the_end(self) -> None:
        assert self.consumer.paused() == self.paused
        self.consumer.resume(*self.paused)
        self.paused.clear()
        deadline_ms = self.world.clock.now_ms + 120_000
        while self._has_more():
            assert self.world.clock.now_ms < deadline_ms, "records do not come"
            self._take(self.consumer.poll(0.5))
        for partition in self.partitions:
            self._check_position(partition, self.consumer.position(partition))


@pytest.mark.fault("R18")
def test_mixed_reading_returns_each_record_once() -> None:
    run_state_machine_as_test(
        ReadingModel, settings=settings(max_examples=100, stateful_step_count=40)
    )
