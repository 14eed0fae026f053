"""Committed offsets of groups (Kafka: OffsetMetadataManager)."""

import logging
from collections.abc import Callable, Collection, Mapping

from kclient.broker.coordinator.group.group import Group, GroupConfig
from kclient.broker.coordinator.group.group_records import (
    CommittedOffset,
    committed_offset,
    offset_record,
)
from kclient.broker.coordinator.group.pending_offsets import PendingOffsets
from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.broker.coordinator.runtime.partition_log import TransactionOwner
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.common.broker_errors import (
    NONE,
    InvalidCommitOffsetSizeError,
    OffsetMetadataTooLargeError,
    RecordTooLargeError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.message import VersionedRecord
from kclient.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from kclient.record import NO_PRODUCER_ID

_log = logging.getLogger(__name__)


class OffsetMetadataManager:
    """Committed offsets of a shard; they change only when a record is replayed.

    Every method runs under the shard's lock.
    """

    def __init__(self, config: GroupConfig, context: ShardContext) -> None:
        self._config = config
        self._context = context
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._pending = PendingOffsets()

    def replay(
        self,
        key: OffsetCommitKey,
        value: VersionedRecord | None,
        record_offset: int,
        producer_id: int,
    ) -> None:
        """Apply a record; no value deletes the offset, in open transactions too.

        Args:
            key: Group and partition.
            value: The offset, or None.
            record_offset: Offset of the record.
            producer_id: Producer whose transaction has to be committed before the offset is; -1
                for none.
        """
        partition = TopicPartition(key.topic, key.partition)
        if isinstance(value, OffsetCommitValue):
            offset = committed_offset(value, record_offset)
            if producer_id == NO_PRODUCER_ID:
                self._groups.setdefault(key.group, {})[partition] = offset
            else:
                self._pending.add(producer_id, key.group, partition, offset)
            return
        self._pending.remove(key.group, partition)
        offsets = self._groups.get(key.group)
        if offsets is not None:
            offsets.pop(partition, None)
            if not offsets:
                del self._groups[key.group]

    def end_transaction(self, producer_id: int, *, committed: bool) -> set[str]:
        """Commit or discard the offsets of a transaction; return their groups.

        An offset whose record is later than that of the transaction remains, in whichever order
        the log was compacted.
        """
        ended = self._pending.end(producer_id)
        for group_id, partition, offset in ended if committed else ():
            offsets = self._groups.setdefault(group_id, {})
            known = offsets.get(partition)
            if known is None or known.record_offset < offset.record_offset:
                offsets[partition] = offset
        return {group_id for group_id, _, _ in ended}

    def unstable_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions of a group with offsets in open transactions.

        Those include offsets that are not replicated yet.
        """
        uncommitted = self._uncommitted(group_id, only_transactional=True)
        return {*self._pending.partitions(group_id), *uncommitted}

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return all offsets of a group."""
        return dict(self._groups.get(group_id, {}))

    def has_offsets(self, group_id: str) -> bool:
        """Return whether a group has offsets, committed or in open transactions."""
        return group_id in self._groups or group_id in self._pending.group_ids()

    def commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
        producer: TransactionOwner | None = None,
    ) -> None:
        """Write offsets; reply with an error code for each when they are replicated.

        Args:
            group_id: The group.
            offsets: Offsets by partition.
            reply: Receives the error codes.
            producer: Producer whose transaction the offsets are part of, or None.
        """
        limit = self._config.offset_metadata_max_bytes
        large = {tp for tp, offset in offsets.items() if len(offset.metadata.encode()) > limit}
        codes = dict.fromkeys(offsets, NONE)
        codes |= dict.fromkeys(large, code_of(OffsetMetadataTooLargeError))
        accepted = {tp: offset for tp, offset in offsets.items() if tp not in large}

        def on_done(error: KafkaError | None) -> None:
            if error is not None:
                codes.update(dict.fromkeys(accepted, _commit_error_code(error)))
            self._context.reply(reply, codes)

        records = [offset_record(group_id, tp, offset) for tp, offset in accepted.items()]
        self._context.write(records, on_done, transaction_of=producer)

    def tombstones(
        self, group_id: str, partitions: Collection[TopicPartition] | None = None
    ) -> list[CoordinatorRecord]:
        """Return the records that delete a group's offsets, by default all of them.

        Those include offsets that are not committed yet.
        """
        if partitions is None:
            partitions = self._known_partitions(group_id) | self._uncommitted(group_id)
        return [offset_record(group_id, partition, None) for partition in partitions]

    def delete_partitions(
        self,
        group_id: str,
        partitions: Collection[TopicPartition],
        on_done: Callable[[KafkaError | None], None],
    ) -> None:
        """Delete offsets of a group; those that do not exist are ignored."""
        known = self._known_partitions(group_id) | self._uncommitted(group_id)
        deleted = [partition for partition in partitions if partition in known]
        self._context.write(self.tombstones(group_id, deleted), on_done)

    def _known_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions with offsets, committed or in open transactions."""
        return {*self._groups.get(group_id, ()), *self._pending.partitions(group_id)}

    def _uncommitted(
        self, group_id: str, *, only_transactional: bool = False
    ) -> set[TopicPartition]:
        """Return the partitions with records of a group that are not applied yet."""
        records = self._context.uncommitted_records(only_transactional=only_transactional)
        keys = [record.key for record in records]
        return {
            TopicPartition(key.topic, key.partition)
            for key in keys
            if isinstance(key, OffsetCommitKey) and key.group == group_id
        }

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete all offsets in topics that were deleted."""
        for group_id in self._groups.keys() | self._pending.group_ids():
            deleted = [tp for tp in self._known_partitions(group_id) if tp.topic in topics]
            self.delete(group_id, self.tombstones(group_id, deleted))

    def expire(self, group: Group, now_wall_ms: int) -> None:
        """Delete the offsets of an empty group that have expired.

        One with a commit in progress is kept, also in an open transaction: the tombstone would
        follow the new offset in the log.
        """
        expired = []
        for partition, offset in self._groups.get(group.group_id, {}).items():
            expiry_ms = offset.expire_timestamp_ms
            if expiry_ms is None:
                since_ms = max(offset.commit_timestamp_ms, group.state_since_ms)
                expiry_ms = since_ms + self._config.offsets_retention_ms
            if now_wall_ms >= expiry_ms:
                expired.append(partition)
        if expired:
            group_id = group.group_id
            kept = {*self._uncommitted(group_id), *self._pending.partitions(group_id)}
            deleted = [partition for partition in expired if partition not in kept]
            self.delete(group_id, self.tombstones(group_id, deleted))

    def delete(self, group_id: str, tombstones: list[CoordinatorRecord]) -> None:
        """Write tombstones, if any; a failure is logged and the next check retries."""

        def on_done(error: KafkaError | None) -> None:
            if error is not None:
                _log.warning("group %s: deletion failed: %s", group_id, error)

        if tombstones:
            self._context.write(tombstones, on_done)


def _commit_error_code(error: KafkaError) -> int:
    if isinstance(error, RecordTooLargeError):
        return code_of(InvalidCommitOffsetSizeError)
    return code_of(error)
