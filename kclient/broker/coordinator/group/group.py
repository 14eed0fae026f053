"""Group of any protocol, and the configuration of groups."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from kclient.protocol.messages.groups import DescribedGroup, ListedGroup


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
        offset_metadata_max_bytes: ``offset.metadata.max.bytes``.
        offsets_retention_ms: ``offsets.retention.minutes``, in milliseconds.
        offsets_retention_check_ms: ``offsets.retention.check.interval.ms``.
        offsets_commit_timeout_ms: Time after which an uncommitted write fails
            (``offsets.commit.timeout.ms``).
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    max_groups: int = 10_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_ms: int = 600_000
    offsets_commit_timeout_ms: float = 5_000.0


class Group(ABC):
    """Group with members of one protocol (Kafka: Group).

    Attributes:
        TYPE: Name of the protocol in ListGroups.
        group_id: Name of the group.
        state_since_ms: Wall-clock time of the last state change.
        protocol_type: "consumer" for consumers; None before the first join.
    """

    TYPE: ClassVar[str]

    def __init__(self, group_id: str, now_wall_ms: int) -> None:
        self.group_id = group_id
        self.state_since_ms = now_wall_ms
        self.protocol_type: str | None = None

    @property
    @abstractmethod
    def state_name(self) -> str:
        """State as ListGroups and DescribeGroups report it."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the group has no members, so that its offsets can expire."""

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member may consume a topic, so that its offsets must not be deleted.

        Raises:
            GroupNotEmptyError: The group has members, whose topics are not known.
        """

    @abstractmethod
    def describe(self) -> DescribedGroup:
        """Return state and members."""

    def listed(self) -> ListedGroup:
        """Return the group as ListGroups reports it."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state_name,
            group_type=self.TYPE,
        )
