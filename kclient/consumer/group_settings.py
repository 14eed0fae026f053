"""Configuration of group membership (Kafka: GroupRebalanceConfig)."""

from dataclasses import dataclass


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
