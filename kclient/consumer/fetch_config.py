"""What of the configuration concerns fetching (Kafka: FetchConfig)."""

from dataclasses import dataclass

from kclient.record import Deserializer

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Limits and manners of fetching.

    Attributes:
        min_bytes: The broker waits until it has so many bytes.
        max_bytes: Most bytes of a response, if the first batch is not larger.
        max_wait_ms: How long the broker waits for `min_bytes`.
        partition_max_bytes: Most bytes of one partition in a response, likewise.
        max_poll_records: Most records that one `poll` hands out.
        check_crcs: Whether checksums are verified.
        client_rack: Rack of this client, empty for none.
        isolation_level: READ_UNCOMMITTED or READ_COMMITTED.
        key_deserializer: Applied to every key; None leaves bytes.
        value_deserializer: Applied to every value; None leaves bytes.
        preferred_replica_ms: How long a nearer replica is used before the leader is asked again.
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
        """Return whether code of the application turns bytes into keys or values."""
        return self.key_deserializer is not None or self.value_deserializer is not None
