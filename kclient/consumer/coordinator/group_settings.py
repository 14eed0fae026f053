"""The numbers and names of a membership (Kafka: GroupRebalanceConfig)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How a consumer takes part in its group; times in milliseconds.

    Attributes:
        group_id: Group, ``group.id``.
        group_instance_id: Name of a static member, ``group.instance.id``; None for a dynamic one.
        session_timeout_ms: Silence after which the broker puts the member out.
        heartbeat_interval_ms: Time between heartbeats.
        max_poll_interval_ms: Time between polls after which the member leaves; also how long the
            broker waits for members at a rebalance.
        request_timeout_ms: How long an answer may take that the broker does not hold back.
        rack_id: Rack of this client, told to the leader.
        auto_commit: Whether positions are committed without being asked to.
        auto_commit_interval_ms: How often.
        retry_backoff_ms: Wait before a failed request is tried again.
        retry_backoff_max_ms: Longest such wait.
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
