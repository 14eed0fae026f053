"""Application with a group member: reads, processes and commits records."""

from collections.abc import Iterable, Mapping

from kclient import ConsumerRecord
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import KafkaError
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.common.waiting import Steps, perform
from tests.simulation.accounts import consumer_accounts
from tests.simulation.application import CLOSE_S, SERVERS, Application, Stage
from tests.simulation.clients import AsyncConsumer, BlockingConsumer
from tests.simulation.history import (
    Assigned,
    CommitAsked,
    Committed,
    Crashed,
    Damaged,
    Healthy,
    Lost,
    Polled,
    Processed,
    Revoked,
    Sought,
    Subscribed,
)
from tests.simulation.scenario import MISSING_TOPIC, PADDING, TOPIC

AnyConsumer = BlockingConsumer | AsyncConsumer

_POLL_S = 0.3
_COMMIT_S = 2.0
_SEEK_CHANCE = 0.03
_SLOW_DESERIALIZER_CHANCE = 0.005
# Longer than the session (3 s), shorter than max.poll.interval.ms (8 s).
_BUSY_S = 4.5
# After this time, a membership ended by a fault is over: the session, and some polls.
_SETTLE_MS = 4_500.0


class ConsumerApplication(Application):
    """Member of a group.

    Attributes:
        group: Name of the group.
        stayed: Whether it was busy for longer than its session after the end of the faults.
    """

    def __init__(self, stage: Stage, machine: str, name: str, group: str) -> None:
        self.group = group
        self.stayed = False
        self._calm_since_ms: float | None = None
        self._busy_left_s = 0.0
        super().__init__(stage, machine, name)

    def run(self) -> Steps[None]:
        """Read until `stopping` is set."""
        consumer = self.stage.clients.consumer(
            self.driver.runtime,
            bootstrap_servers=SERVERS,
            group_id=self.group,
            value_deserializer=self._deserialize,
            **self.stage.scenario.consumer,
        )
        self.note(Subscribed, self.group)
        consumer.subscribe(
            [TOPIC, MISSING_TOPIC] if self.stage.scenario.names_missing else [TOPIC],
            on_assigned=lambda gained: self.note(Assigned, self.group, _numbers(gained)),
            on_revoked=lambda lost: self.callback(lambda: self._revoked(consumer, lost)),
            on_lost=self._lost,
        )
        try:
            while not self.stopping:
                yield from self._round(consumer)
                if self.stage.calm:
                    yield from self._stay(consumer)
        finally:
            yield from self.timed("close", CLOSE_S, consumer.close(CLOSE_S))
        left = consumer_accounts(consumer)
        if any(left.values()):
            self.note(Crashed, f"left after close: {left}")

    def _round(self, consumer: AnyConsumer) -> Steps[None]:
        timeout_s = self.lot.choice((0.0, _POLL_S, _POLL_S))
        records = yield from self._poll(consumer, timeout_s)
        for record in records:
            self._polled(record)
        if records and not self.stage.calm and self.lot.random() < _SEEK_CHANCE:
            self._go_back(consumer, records)
            return
        for record in records:
            if not self.stage.calm and self.lot.random() < self.stage.scenario.slowness:
                yield from self.driver.sleep(self.lot.uniform(0.0, 0.5))
            self.note(Processed, self.group, record.partition, record.offset)
            self.stage.processed[self.group, record.partition].add(record.offset)
        if not timeout_s:
            yield from self.driver.sleep(self.lot.uniform(0.01, 0.1))
        if records:
            yield from self._commit(consumer)

    def _deserialize(self, _topic: str, _headers: object, data: bytes | None) -> bytes | None:
        busy_s, self._busy_left_s = self._busy_left_s, 0.0
        if not self.stage.clients.may_block:
            return data
        if not self.stage.calm and self.lot.random() < _SLOW_DESERIALIZER_CHANCE:
            busy_s = self.lot.uniform(0.0, _BUSY_S)
        if busy_s:
            self.callback(lambda: self.process.sleep(busy_s))
        return data

    def _stay(self, consumer: AnyConsumer) -> Steps[None]:
        """Be busy for longer than the session: in a call that waits, then in code of its own.

        That code is a deserializer if it may block, otherwise another wait.
        """
        if self._calm_since_ms is None:
            self._calm_since_ms = self._now_ms()
        if self.stayed or self._now_ms() < self._calm_since_ms + _SETTLE_MS:
            return
        self.note(Healthy, self.group)
        try:
            wanted = [TopicPartition(TOPIC, 0)]
            yield from self.timed("end_offsets", _BUSY_S, consumer.end_offsets(wanted, _BUSY_S))
        except KafkaError:
            yield from self._round(consumer)
        yield from self._read_slowly(consumer)  # also completes a rebalance that has begun
        if not self.stage.clients.may_block:
            yield from self.driver.sleep(_BUSY_S)
        yield from self._round(consumer)
        self.stayed = True

    def _read_slowly(self, consumer: AnyConsumer) -> Steps[None]:
        """Read one record again, with a deserializer that takes longer than the session."""
        sought = self._seek_back(consumer)
        if sought is not None:
            self._busy_left_s = _BUSY_S
        while sought is not None and self._busy_left_s:
            yield from self._round(consumer)
            if sought not in consumer.assignment():
                sought = self._seek_back(consumer)

    def _seek_back(self, consumer: AnyConsumer) -> TopicPartition | None:
        """Seek to the record before the position of a partition; return the partition."""
        for partition in sorted(consumer.assignment()):
            position = self._position(consumer, partition)
            if position:
                consumer.seek(partition, position - 1)
                self.note(Sought, self.group, partition.partition, position - 1)
                return partition
        return None

    def _lost(self, partitions: list[TopicPartition]) -> None:
        self.note(Lost, self.group, _numbers(partitions))
        self.note(Revoked, self.group, _numbers(partitions))

    def _poll(self, consumer: AnyConsumer, timeout_s: float) -> Steps[list[ConsumerRecord]]:
        try:
            return (yield from self.timed("poll", timeout_s, consumer.poll(timeout_s)))
        except CorruptRecordError as error:
            self.note(Damaged, self.machine, str(error))
            return []  # the batch may be damaged in transit: the next call fetches it again

    def _go_back(self, consumer: AnyConsumer, records: list[ConsumerRecord]) -> None:
        """Seek back, as an application does that could not process its records."""
        firsts: dict[int, int] = {}
        for record in records:
            firsts.setdefault(record.partition, record.offset)
        for number, offset in firsts.items():
            consumer.seek(TopicPartition(TOPIC, number), offset)
            self.note(Sought, self.group, number, offset)

    def _polled(self, record: ConsumerRecord) -> None:
        value = bytes(record.value or b"").partition(PADDING)[0].decode(errors="replace")
        self.note(Polled, self.group, record.partition, record.offset, value)

    def _commit(self, consumer: AnyConsumer) -> Steps[None]:
        mode = self.stage.scenario.commit
        if mode == "async":
            consumer.commit_async(self._wanted(consumer), self._committed)
        elif mode == "sync" and self.lot.random() < 0.5:
            yield from self._commit_now(consumer)

    def _commit_now(self, consumer: AnyConsumer) -> Steps[None]:
        wanted = self._wanted(consumer)
        try:
            yield from self.timed("commit", _COMMIT_S, consumer.commit(wanted, _COMMIT_S))
        except KafkaError:
            return  # another member will process it again
        self._committed(wanted, None)

    def _wanted(self, consumer: AnyConsumer) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit: the next offset after each processed record."""
        wanted = {}
        for partition in sorted(consumer.assignment()):
            position = self._position(consumer, partition)
            if position is not None:
                wanted[partition] = OffsetAndMetadata(position)
                self.note(CommitAsked, self.group, partition.partition, position)
        return wanted

    def _committed(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None
    ) -> None:
        if error is None:
            for partition, position in sorted(offsets.items()):
                self.note(Committed, self.group, partition.partition, position.offset)

    def _revoked(self, consumer: AnyConsumer, partitions: Iterable[TopicPartition]) -> None:
        if self.stage.scenario.commit == "sync":
            if self.stage.clients.may_block:
                perform(self._commit_now(consumer), self.driver.runtime.clock)
            else:
                consumer.commit_async(self._wanted(consumer), self._committed)
        self.note(Revoked, self.group, _numbers(partitions))

    def _position(self, consumer: AnyConsumer, partition: TopicPartition) -> int | None:
        """Return the position, or None if it is not known yet; does not wait."""
        try:
            return perform(consumer.position(partition, 0.0), self.driver.runtime.clock)
        except KafkaError:
            return None


def _numbers(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    return tuple(sorted(partition.partition for partition in partitions))
