"""Batches of snapshot files."""

import pytest

from kclient.broker.metadata.snapshot_batches import (
    MAX_BATCH_SIZE,
    data_batches,
    decode_snapshot,
    encode_snapshot,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.quorum_records import KRaftVersionRecord, SnapshotHeaderRecord
from kclient.record import ControlRecordType, RecordBatch, read_batches


def test_layout_of_a_snapshot() -> None:
    version = KRaftVersionRecord(version=0, k_raft_version=1)
    data = encode_snapshot([b"a", b"b"], 77, [(ControlRecordType.KRAFT_VERSION, version)])
    batches = list(read_batches(data))
    assert [batch.is_control for batch in batches] == [True, False, True]
    assert [batch.base_offset for batch in batches] == [0, 2, 4]
    assert {batch.partition_leader_epoch for batch in batches} == {0}
    assert {batch.max_timestamp for batch in batches} == {77}
    header, level = batches[0].records()
    assert ControlRecordType.parse(header.key) is ControlRecordType.SNAPSHOT_HEADER
    assert SnapshotHeaderRecord.decode(header.value or b"", 0).last_contained_log_timestamp == 77
    assert ControlRecordType.parse(level.key) is ControlRecordType.KRAFT_VERSION
    (footer,) = batches[2].records()
    assert ControlRecordType.parse(footer.key) is ControlRecordType.SNAPSHOT_FOOTER
    (data_batch,) = decode_snapshot(data)
    assert [(each.offset, each.key, each.value) for each in data_batch.records()] == [
        (2, None, b"a"),
        (3, None, b"b"),
    ]


def test_batches_are_no_larger_than_allowed() -> None:
    values = [bytes([number]) * 1000 for number in range(50)]
    batches = [
        RecordBatch(data)
        for data in data_batches(values, 5, base_offset=7, epoch=3, max_size=10_000)
    ]
    assert len(batches) > 5
    assert max(batch.size_in_bytes for batch in batches) <= 10_000
    records = [record for batch in batches for record in batch.records()]
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(7, 57))
    assert {batch.partition_leader_epoch for batch in batches} == {3}
    assert MAX_BATCH_SIZE == 8 * 1024 * 1024


def test_large_record_has_a_batch_of_its_own() -> None:
    values = [b"a", b"b" * 20_000, b"c"]
    batches = [RecordBatch(data) for data in data_batches(values, 5, max_size=10_000)]
    assert [len(batch.records()) for batch in batches] == [1, 1, 1]


@pytest.mark.parametrize("lost", [1, 10, 80, 200])
def test_incomplete_snapshots_are_refused(lost: int) -> None:
    data = encode_snapshot([b"a" * 300], 77)
    with pytest.raises(KafkaError):
        list(decode_snapshot(data[:-lost]))


def test_damaged_snapshots_are_refused() -> None:
    data = bytearray(encode_snapshot([b"a" * 300], 77))
    data[-150] ^= 1
    with pytest.raises(KafkaError):
        list(decode_snapshot(bytes(data)))


def test_empty_file_is_no_snapshot() -> None:
    with pytest.raises(KafkaError, match="footer"):
        list(decode_snapshot(b""))
