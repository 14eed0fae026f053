"""Other people's clients as members of a consumer group; see tests.support.group_member."""

from collections.abc import Callable, Iterable
from typing import Any

import confluent_kafka
import kafka

from tests.support.group_member import MOST, POLL_S, Read, Tell, heartbeat_ms, main


class KafkaPython(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """kafka-python."""

    def __init__(self, bootstrap: str, group: str, session_ms: int, tell: Tell) -> None:
        self._tell = tell
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=MOST,
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=heartbeat_ms(session_ms),
            metadata_max_age_ms=60_000,
        )

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic], listener=self)

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def poll(self) -> list[Read]:
        polled = self._consumer.poll(timeout_ms=int(POLL_S * 1000))
        return [
            (one.partition, one.offset, one.value) for batch in polled.values() for one in batch
        ]

    def commit(self) -> str | None:
        try:
            self._consumer.commit()
        except (kafka.errors.CommitFailedError, kafka.errors.RebalanceInProgressError) as error:
            return type(error).__name__
        return None

    def close(self) -> None:
        self._consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._tell("assigned", [one.partition for one in assigned])

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._tell("revoked", [one.partition for one in revoked])


class Confluent:
    """confluent-kafka, and so librdkafka."""

    def __init__(self, bootstrap: str, group: str, session_ms: int, tell: Tell) -> None:
        self._tell = tell
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "session.timeout.ms": session_ms,
                "heartbeat.interval.ms": heartbeat_ms(session_ms),
                "partition.assignment.strategy": "range",
            }
        )
        self._last: dict[int, confluent_kafka.Message] = {}

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe(
            [topic], on_assign=self._teller("assigned"), on_revoke=self._teller("revoked")
        )

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()
        self._consumer.poll(POLL_S)

    def poll(self) -> list[Read]:
        messages = self._consumer.consume(MOST, POLL_S)
        read: list[Read] = []
        self._last.clear()
        for message in messages:
            error = message.error()
            if error is not None:
                raise confluent_kafka.KafkaException(error)
            partition, value = message.partition() or 0, message.value()
            read.append((partition, message.offset() or 0, _as_bytes(value)))
            self._last[partition] = message
        return read

    def commit(self) -> str | None:
        try:
            for message in self._last.values():
                self._consumer.commit(message=message, asynchronous=False)
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        return None

    def close(self) -> None:
        self._consumer.close()

    def _teller(self, what: str) -> Callable[[Any, list[Any]], None]:
        return lambda _, partitions: self._tell(what, [one.partition for one in partitions])


def _as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


if __name__ == "__main__":
    main({"kafka-python": KafkaPython, "confluent-kafka": Confluent})
