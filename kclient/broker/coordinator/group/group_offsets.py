"""Validation, storage and expiration of offset commits (Kafka: OffsetMetadataManager)."""

from collections.abc import Callable, Mapping

from kclient.broker.coordinator.group.classic_group import ClassicGroup
from kclient.broker.coordinator.group.group_config import GroupConfig
from kclient.broker.coordinator.group.group_records import (
    OffsetsLog,
    Record,
    offset_key,
    offset_value,
    partition_for,
)
from kclient.broker.coordinator.group.group_state import GroupState
from kclient.broker.coordinator.group.membership import Membership
from kclient.broker.coordinator.group.offset_store import CommittedOffset, OffsetStore
from kclient.common.broker_errors import (
    NONE,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    InvalidCommitOffsetSizeError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    RecordTooLargeError,
    UnknownMemberIdError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition

TOMBSTONE = None


class GroupOffsets:
    """Offset commits of the groups; every method runs under the coordinator's lock."""

    def __init__(
        self, config: GroupConfig, store: OffsetStore, log: OffsetsLog, membership: Membership
    ) -> None:
        self._config = config
        self._store = store
        self._log = log
        self._membership = membership

    def check_commit(
        self,
        group: ClassicGroup | None,
        member_id: str,
        instance_id: str | None,
        generation: int,
    ) -> None:
        """Check that the member may commit for the group.

        A commit without a generation comes from a consumer with manual assignment; it is valid as
        long as the group has no members.
        """
        if group is None:
            if generation >= 0:
                raise IllegalGenerationError("the group has no members")
            return
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError("the group was deleted")
        if generation < 0 and group.state is GroupState.EMPTY:
            return
        if generation < 0 and not member_id and instance_id is None:
            raise UnknownMemberIdError("the group has members and the commit has no member id")
        self._membership.check_member(group, member_id, instance_id, generation)
        if group.state is GroupState.COMPLETING_REBALANCE:
            raise RebalanceInProgressError
        self._membership.touch(group, member_id)

    def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, int]:
        """Store offsets and return an error code for each."""
        codes: dict[TopicPartition, int] = {}
        kept: dict[TopicPartition, CommittedOffset] = {}
        for partition, offset in offsets.items():
            if len(offset.metadata.encode()) > self._config.offset_metadata_max_bytes:
                codes[partition] = code_of(OffsetMetadataTooLargeError)
            else:
                codes[partition] = NONE
                kept[partition] = offset
        if not kept:
            return codes
        try:
            self._append(
                group_id, [(offset_key(group_id, tp), offset_value(kept[tp])) for tp in kept]
            )
        except RecordTooLargeError:
            return codes | dict.fromkeys(kept, code_of(InvalidCommitOffsetSizeError))
        except KafkaError as problem:
            return codes | dict.fromkeys(kept, code_of(problem))
        for partition, offset in kept.items():
            self._store.put(group_id, partition, offset)
        return codes

    def forget(self, group_id: str, partitions: list[TopicPartition]) -> None:
        """Delete offsets, in the log first."""
        if not partitions:
            return
        self._append(group_id, [(offset_key(group_id, tp), TOMBSTONE) for tp in partitions])
        for partition in partitions:
            self._store.remove(group_id, partition)

    def expire(self, now_wall_ms: int, find_group: Callable[[str], ClassicGroup | None]) -> None:
        """Delete the offsets of groups that have had no members for the retention time."""
        for group_id in self._store.group_ids():
            group = find_group(group_id)
            if group is not None and group.state is not GroupState.EMPTY:
                continue
            base_ms = group.state_since_ms if group is not None else 0
            expired = [
                partition
                for partition, offset in self._store.of_group(group_id).items()
                if now_wall_ms >= self._expiry_ms(offset, base_ms)
            ]
            self.forget(group_id, expired)

    def _expiry_ms(self, offset: CommittedOffset, empty_since_ms: int) -> int:
        if offset.expire_timestamp_ms is not None:
            return offset.expire_timestamp_ms
        base_ms = max(offset.commit_timestamp_ms, empty_since_ms)
        return base_ms + self._config.offsets_retention_ms

    def _append(self, group_id: str, records: list[Record]) -> None:
        self._log.append(partition_for(group_id, self._log.partition_count), records)
