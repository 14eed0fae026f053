"""Configuration of the group coordinator."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Settings of the group coordinator.

    Attributes:
        min_session_timeout_ms: ``group.min.session.timeout.ms``.
        max_session_timeout_ms: ``group.max.session.timeout.ms``.
        initial_rebalance_delay_ms: ``group.initial.rebalance.delay.ms``, the time that an empty
            group waits for more members before its first generation.
        max_size: ``group.max.size``, the maximum number of members of a group.
        max_groups: ``max.groups``, the maximum number of groups with members or offsets.
        member_metadata_max_bytes: ``group.member.metadata.max.bytes``.
        offset_metadata_max_bytes: ``offset.metadata.max.bytes``.
        offsets_retention_ms: ``offsets.retention.minutes``, in milliseconds.
        offsets_retention_check_ms: ``offsets.retention.check.interval.ms``.
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 1_000
    max_groups: int = 10_000
    member_metadata_max_bytes: int = 262_144
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_ms: int = 600_000
