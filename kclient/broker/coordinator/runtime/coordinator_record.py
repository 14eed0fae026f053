"""Record of a coordinator's log, and the state that is made of such records."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kclient.common.errors import KafkaError
from kclient.protocol.message import CoordinatorKey, VersionedRecord

WriteCallback = Callable[[KafkaError | None], None]
"""Receives None once the records are committed, or the error."""


class CoordinatorRecord(NamedTuple):
    """Record of a coordinator's log (Kafka: CoordinatorRecord).

    Attributes:
        key: Key, whose version is the type of the record.
        value: Value, or None for a tombstone.
        value_version: Version in which the value is written.
    """

    key: CoordinatorKey
    value: VersionedRecord | None = None
    value_version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value as bytes."""
        value = None if self.value is None else self.value.encode_versioned(self.value_version)
        return self.key.encode_versioned(), value


class CoordinatorShard(Protocol):
    """State of a coordinator in one partition of its log (Kafka: CoordinatorShard).

    Every method runs under the shard's lock.
    """

    def load(self, raw_key: bytes, raw_value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply a record of the log.

        Args:
            raw_key: Key.
            raw_value: Value, or None for a tombstone.
            offset: Offset of the record.
            producer_id: Producer of the transaction that is open yet; -1 for none.
        """
        ...

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply a replicated record that this shard has written.

        Args:
            record: The record.
            offset: Its offset.
            producer_id: Producer of the transaction that it is part of; -1 for none.
        """
        ...

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit or abort the records of a producer's open transaction, if it has one."""
        ...

    def on_loaded(self) -> None:
        """Start timers: all records of the log are applied and committed."""
        ...

    def on_unloaded(self, error: KafkaError) -> None:
        """Fail the pending requests: another broker is the coordinator."""
        ...
