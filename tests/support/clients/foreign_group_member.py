"""Other projects' clients as members of a consumer group; see `group_member`.

Transient errors that they raise, such as no reachable broker, are retried.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import aiokafka
import aiokafka.coordinator.assignors.range as aiokafka_range
import aiokafka.coordinator.assignors.roundrobin as aiokafka_roundrobin
import aiokafka.errors
import confluent_kafka
import kafka
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.support.clients.group_member import MOST, POLL_S, Membership, Read, Report, main

_LEAVE_S = 60.0  # through a restart of the broker

_KAFKA_PYTHON_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_AIOKAFKA_ASSIGNORS = {
    "range": aiokafka_range.RangePartitionAssignor,
    "roundrobin": aiokafka_roundrobin.RoundRobinPartitionAssignor,
}


class KafkaPython(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """kafka-python."""

    def __init__(self, member: Membership, report: Report) -> None:
        self._report = report
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=member.bootstrap.split(","),
            group_id=member.group,
            group_instance_id=member.instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=member.isolation,
            max_poll_records=MOST,
            session_timeout_ms=member.session_ms,
            heartbeat_interval_ms=member.heartbeat_ms,
            max_poll_interval_ms=member.max_poll_ms,
            partition_assignment_strategy=[_KAFKA_PYTHON_ASSIGNORS[member.strategy]],
            metadata_max_age_ms=60_000,
        )

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic], listener=self)

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def poll(self) -> list[Read]:
        try:
            polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000))
        except kafka.errors.RetriableError:
            return []
        return [
            (one.partition, one.offset, one.value) for batch in polled.values() for one in batch
        ]

    def commit(self) -> str | None:
        try:
            self._consumer.commit()
        except (
            kafka.errors.CommitFailedError,
            kafka.errors.RebalanceInProgressError,
            kafka.errors.RetriableError,
        ) as error:
            return type(error).__name__
        return None

    def close(self) -> None:
        self._consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._report("assigned", [one.partition for one in assigned])

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._report("revoked", [one.partition for one in revoked])


class Aiokafka(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """aiokafka, whose loop runs while the program polls."""

    def __init__(self, member: Membership, report: Report) -> None:
        self._report = report
        self._member = member
        self._loop = asyncio.new_event_loop()
        self._consumer: Any = None
        self._owned: set[int] = set()

    def subscribe(self, topic: str) -> None:
        while self._consumer is None:
            self._consumer = self._run(self._started())
        self._consumer.subscribe([topic], listener=self)

    async def _started(self) -> Any:
        member = self._member
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=member.bootstrap,
            group_id=member.group,
            group_instance_id=member.instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=member.isolation,
            session_timeout_ms=member.session_ms,
            heartbeat_interval_ms=member.heartbeat_ms,
            max_poll_interval_ms=member.max_poll_ms,
            partition_assignment_strategy=[_AIOKAFKA_ASSIGNORS[member.strategy]],
        )
        try:
            await consumer.start()
        except aiokafka.errors.KafkaConnectionError:
            await consumer.stop()
            await asyncio.sleep(POLL_S)
            return None
        return consumer

    def unsubscribe(self) -> None:
        # Its own unsubscribe() fails an assertion of its coordination during a rebalance.
        had = self._consumer.assignment()
        self._run(self._consumer.stop())
        self._consumer = None
        self.on_partitions_revoked(had)

    def poll(self) -> list[Read]:
        polled = self._run(self._consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=MOST))
        # It reports a revocation while records of these partitions are on their way to the caller:
        # the next owner starts before them.
        return [
            (one.partition, one.offset, one.value)
            for batch in polled.values()
            for one in batch
            if one.partition in self._owned
        ]

    def commit(self) -> str | None:
        try:
            self._run(self._consumer.commit())
        except (aiokafka.errors.KafkaError, aiokafka.errors.IllegalStateError) as error:
            return type(error).__name__
        return None

    def close(self) -> None:
        if self._consumer is not None:
            self._run(self._consumer.stop())
        self._loop.close()

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        given = [one.partition for one in assigned]
        self._owned.update(given)
        self._report("assigned", given)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        taken = [one.partition for one in revoked]
        self._owned.difference_update(taken)
        self._report("revoked", taken)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)


class Confluent:
    """confluent-kafka, and so librdkafka."""

    def __init__(self, member: Membership, report: Report) -> None:
        self._report = report
        optional = {} if member.instance is None else {"group.instance.id": member.instance}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": member.bootstrap,
                "group.id": member.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": member.isolation,
                "enable.auto.offset.store": False,
                "session.timeout.ms": member.session_ms,
                "heartbeat.interval.ms": member.heartbeat_ms,
                "max.poll.interval.ms": member.max_poll_ms,
                "partition.assignment.strategy": member.strategy,
                **optional,
            }
        )
        self._fetched: list[confluent_kafka.Message] = []
        self._uncommitted: dict[int, confluent_kafka.Message] = {}  # the last of each partition

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe(
            [topic],
            on_assign=self._teller("assigned"),
            on_revoke=self._teller("revoked"),
            on_lost=self._teller("lost"),
        )

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()
        # It keeps its partitions until a poll revokes them, possibly after another poll that
        # returns a record, which counts as read if the member joins before.
        ends = time.monotonic() + _LEAVE_S
        while held := self._consumer.assignment():
            if time.monotonic() > ends:
                msg = f"unsubscribe(): {held} not taken back within {_LEAVE_S:g} s"
                raise TimeoutError(msg)
            self._consumer.poll(POLL_S)

    def poll(self) -> list[Read]:
        # One at a time: among librdkafka's known issues is that consume() may lose messages where
        # there is a rebalance meanwhile.
        self._fetched.clear()
        wait_s = POLL_S
        while len(self._fetched) < MOST and (message := self._consumer.poll(wait_s)) is not None:
            wait_s = 0
            error = message.error()
            if error is not None and error.fatal():
                raise confluent_kafka.KafkaException(error)
            if error is None:
                self._fetched.append(message)
        for message in self._fetched:
            self._uncommitted[message.partition() or 0] = message
        return [
            (one.partition() or 0, one.offset() or 0, _as_bytes(one.value()))
            for one in self._fetched
        ]

    def commit(self) -> str | None:
        try:
            for partition, message in list(self._uncommitted.items()):
                self._consumer.commit(message=message, asynchronous=False)
                del self._uncommitted[partition]
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        return None

    def close(self) -> None:
        self._consumer.close()

    def _teller(self, what: str) -> Callable[[Any, list[Any]], None]:
        def report(_: Any, partitions: list[Any]) -> None:
            moved = [one.partition for one in partitions]
            # Of these it reads on where the group's commits say, or not at all.
            self._fetched = [one for one in self._fetched if one.partition() not in moved]
            for partition in moved:
                self._uncommitted.pop(partition, None)
            self._report(what, moved)

        return report


def _as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


if __name__ == "__main__":
    main({"kafka-python": KafkaPython, "aiokafka": Aiokafka, "confluent-kafka": Confluent})
