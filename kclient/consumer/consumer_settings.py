"""Validated options of fetches, and of group membership and commits."""

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


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Options of group membership and commits; times in milliseconds.

    Attributes:
        group_id: Group, ``group.id``.
        group_instance_id: Name of a static member, ``group.instance.id``; None for a dynamic one.
        session_timeout_ms: Time without heartbeats after which the broker removes the member.
        heartbeat_interval_ms: Time between heartbeats.
        max_poll_interval_ms: Time between polls after which the member leaves; also the rebalance
            timeout of the group.
        request_timeout_ms: Request timeout, except for JoinGroup and SyncGroup.
        rack_id: Rack of this client, part of its subscription.
        auto_commit: Whether automatic commits are enabled.
        auto_commit_interval_ms: Time between automatic commits.
        retry_backoff_ms: Time before a failed request is retried.
        retry_backoff_max_ms: Upper bound of the retry backoff.
    """

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    request_timeout_ms: int = 30_000
    rack_id: str | None = None
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
