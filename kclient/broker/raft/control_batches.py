"""Batches of control records: leader changes, voters, and the two ends of a snapshot.

Their keys are a version and a type, their values a message (Kafka: ControlRecordUtils).
"""

from collections.abc import Iterable, Iterator

from kclient.broker.raft.voter_set import (
    Endpoint,
    ReplicaKey,
    SupportedVersions,
    VoterNode,
    VoterSet,
)
from kclient.common.files import WireBytes
from kclient.common.uuids import ZERO_UUID
from kclient.protocol.message import Message
from kclient.protocol.messages.quorum_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersEndpoint,
    VotersRecord,
    VotersVoter,
)
from kclient.record import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, RecordBatch
from kclient.record.batch_header import (
    CONTROL_FLAG,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
)
from kclient.record.control_records import ControlRecordType
from kclient.record.record_encoder import encode_record
from kclient.record.sealing import seal_batch

ControlRecord = tuple[ControlRecordType, bytes]
"""Type and value of a control record."""


def control_batch(
    records: Iterable[ControlRecord],
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> memoryview:
    """Return one batch of control records, in writable memory.

    Args:
        records: Types and values.
        timestamp_ms: Wall time of all records.
        base_offset: Offset of the first record.
        leader_epoch: Epoch of the leader.
    """
    encoded = [
        encode_record(0, index, kind.record_key(), value)
        for index, (kind, value) in enumerate(records)
    ]
    batch = memoryview(bytearray(RECORD_BATCH_OVERHEAD) + b"".join(encoded))
    header = BatchHeader(
        position=0,
        size_in_bytes=len(batch),
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=CONTROL_FLAG,
        last_offset_delta=len(encoded) - 1,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        count=len(encoded),
    )
    return seal_batch(batch, header, None)


def control_records(batch: RecordBatch) -> Iterator[tuple[int, ControlRecordType, bytes]]:
    """Yield offset, type and value of the records of a control batch.

    Raises:
        CorruptRecordError: A key is malformed.
    """
    for record in batch.records():
        if record.value is not None:
            yield record.offset, ControlRecordType.parse(record.key), record.value


def _record(kind: ControlRecordType, message: Message) -> ControlRecord:
    return kind, message.encode_bytes(0)


def leader_change(leader_id: int, voters: Iterable[int], granting: Iterable[int]) -> ControlRecord:
    """Return the first record of an epoch; version 0, as Kafka writes it."""
    message = LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=[_change_voter(voter) for voter in sorted(voters)],
        granting_voters=[_change_voter(voter) for voter in sorted(granting)],
    )
    return _record(ControlRecordType.LEADER_CHANGE, message)


def _change_voter(voter_id: int) -> LeaderChangeVoter:
    return LeaderChangeVoter(voter_id=voter_id, voter_directory_id=ZERO_UUID)


def kraft_version(level: int) -> ControlRecord:
    """Return the record of the level of kraft.version."""
    message = KRaftVersionRecord(version=0, k_raft_version=level)
    return _record(ControlRecordType.KRAFT_VERSION, message)


def parse_kraft_version(value: WireBytes) -> int:
    """Return the level of kraft.version in a record's value."""
    return KRaftVersionRecord.decode(value, 0).k_raft_version


def voters_record(voters: VoterSet) -> ControlRecord:
    """Return the record of a set of voters."""
    message = VotersRecord(
        version=0,
        voters=[
            VotersVoter(
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                endpoints=[
                    VotersEndpoint(name=name, host=host, port=port)
                    for name, (host, port) in voter.endpoints.items()
                ],
                k_raft_version_feature=KRaftVersionFeature(
                    min_supported_version=voter.versions.lowest,
                    max_supported_version=voter.versions.highest,
                ),
            )
            for voter in voters
        ],
    )
    return _record(ControlRecordType.KRAFT_VOTERS, message)


def parse_voters(value: WireBytes) -> VoterSet:
    """Return the set of voters in a record's value."""
    return VoterSet.of(
        VoterNode(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            {each.name: Endpoint(each.host, each.port) for each in voter.endpoints},
            SupportedVersions(
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            ),
        )
        for voter in VotersRecord.decode(value, 0).voters
    )


def snapshot_header(last_contained_log_timestamp: int) -> ControlRecord:
    """Return the first record of a snapshot; wall time of the last record that it contains."""
    message = SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=last_contained_log_timestamp
    )
    return _record(ControlRecordType.SNAPSHOT_HEADER, message)


def parse_snapshot_header(value: WireBytes) -> int:
    """Return the wall time of the last record that a snapshot contains."""
    return SnapshotHeaderRecord.decode(value, 0).last_contained_log_timestamp


def snapshot_footer() -> ControlRecord:
    """Return the last record of a snapshot."""
    return _record(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))
