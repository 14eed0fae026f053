"""Control records: their types, and the markers that end a transaction."""

from types import ModuleType

import pytest

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidArgumentError
from kclient.record import ControlRecordType, EndTxnMarker, build_end_txn_batch


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (ControlRecordType.ABORT, "00000000"),
        (ControlRecordType.COMMIT, "00000001"),
        (ControlRecordType.LEADER_CHANGE, "00000002"),
        (ControlRecordType.KRAFT_VOTERS, "00000006"),
    ],
)
def test_control_record_key_encodes_type(kind: ControlRecordType, key: str) -> None:
    assert kind.record_key().hex() == key
    assert ControlRecordType.parse(bytes.fromhex(key)) is kind
    assert ControlRecordType.parse(memoryview(bytes.fromhex(key + "ff"))) is kind


def test_later_control_record_type_is_unknown() -> None:
    assert ControlRecordType.parse(bytes.fromhex("0001 7fff")) is ControlRecordType.UNKNOWN


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_malformed_control_record_key_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptRecordError, match="control record key: got"):
        ControlRecordType.parse(key)


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_end_txn_marker_round_trip(kind: ControlRecordType) -> None:
    marker = EndTxnMarker(kind, 77)
    assert marker.record_value().hex() == "00000000004d"
    assert EndTxnMarker.parse(marker.record_key(), marker.record_value()) == marker


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (ControlRecordType.LEADER_CHANGE.record_key(), bytes(6)),
        (ControlRecordType.COMMIT.record_key(), None),
        (ControlRecordType.COMMIT.record_key(), bytes(5)),
        (ControlRecordType.COMMIT.record_key(), b"\xff\xff" + bytes(4)),
        (None, bytes(6)),
    ],
)
def test_malformed_end_txn_marker_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(CorruptRecordError):
        EndTxnMarker.parse(key, value)


def test_only_commit_and_abort_end_a_transaction() -> None:
    with pytest.raises(InvalidArgumentError, match="expected ABORT or COMMIT"):
        EndTxnMarker(ControlRecordType.SNAPSHOT_HEADER, 0).record_key()


def test_end_txn_batch_fields(twin: ModuleType) -> None:
    marker = EndTxnMarker(ControlRecordType.COMMIT, 3)
    wire = build_end_txn_batch(marker, 1234, 5, 999, base_offset=50, partition_leader_epoch=2)
    batch = twin.RecordBatch(wire)
    batch.ensure_valid()
    assert (batch.is_control, batch.is_transactional, batch.count) == (True, True, 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1234, 5, -1)
    assert (batch.base_offset, batch.partition_leader_epoch) == (50, 2)
    record = batch.records()[0]
    assert record.timestamp == 999
    assert EndTxnMarker.parse(record.key, record.value) == marker
