"""Batches of control records."""

from kclient.broker.raft.control_batches import (
    control_batch,
    control_records,
    kraft_version,
    leader_change,
    parse_kraft_version,
    parse_snapshot_header,
    parse_voters,
    snapshot_footer,
    snapshot_header,
    voters_record,
)
from kclient.record import ControlRecordType, RecordBatch
from tests.support.quorum.bench import voter_set


def test_batch_carries_offsets_epoch_and_types() -> None:
    records = [leader_change(1, [2, 1], [1]), kraft_version(1), voters_record(voter_set(1, 2))]
    batch = RecordBatch(control_batch(records, 1000, base_offset=7, leader_epoch=3))
    batch.ensure_valid()
    found = list(control_records(batch))
    assert [(offset, kind) for offset, kind, _ in found] == [
        (7, ControlRecordType.LEADER_CHANGE),
        (8, ControlRecordType.KRAFT_VERSION),
        (9, ControlRecordType.KRAFT_VOTERS),
    ]
    assert (batch.partition_leader_epoch, batch.producer_id, batch.max_timestamp) == (3, -1, 1000)
    assert parse_kraft_version(found[1][2]) == 1
    assert parse_voters(found[2][2]) == voter_set(1, 2)


def test_leader_change_has_the_bytes_of_kafka() -> None:
    """Version 0: int16 version, int32 leader, compact arrays of int32 ids, tagged fields."""
    kind, value = leader_change(1, [1, 2], [2])
    assert kind == ControlRecordType.LEADER_CHANGE
    assert value.hex() == "000000000001030000000100000000020002000000020000"


def test_ends_of_a_snapshot() -> None:
    assert parse_snapshot_header(snapshot_header(42)[1]) == 42
    assert snapshot_footer() == (ControlRecordType.SNAPSHOT_FOOTER, bytes(3))
