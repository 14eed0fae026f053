"""Configuration of fetching (Kafka: FetchConfig)."""

from dataclasses import dataclass

from kclient.record import Deserializer

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Options of fetch requests and of decoding.

    Attributes:
        min_bytes: Bytes that the broker waits for before it responds.
        max_bytes: Maximum size of a response, unless its first batch is larger.
        max_wait_ms: Time that the broker waits for `min_bytes`.
        partition_max_bytes: Maximum size per partition in a response, unless its first batch is
            larger.
        max_poll_records: Maximum number of records that one `poll` returns.
        check_crcs: Whether checksums are verified.
        client_rack: Rack of this client, empty for none.
        isolation_level: READ_UNCOMMITTED or READ_COMMITTED.
        key_deserializer: Applied to every key; None keeps bytes.
        value_deserializer: Applied to every value; None keeps bytes.
        preferred_replica_ms: Time after which a preferred read replica expires.
    """

    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    max_wait_ms: int = 500
    partition_max_bytes: int = 1024 * 1024
    max_poll_records: int = 500
    check_crcs: bool = True
    client_rack: str = ""
    isolation_level: int = READ_UNCOMMITTED
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    preferred_replica_ms: float = 300_000.0

    def has_deserializers(self) -> bool:
        """Return whether keys or values are decoded by deserializers of the application."""
        return self.key_deserializer is not None or self.value_deserializer is not None
