"""Record of a coordinator's log."""

from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue


def test_record_is_written_in_the_version_of_its_value() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    raw_key, raw_value = CoordinatorRecord(key, OffsetCommitValue(offset=7), 3).encode()
    assert raw_key == key.encode_versioned()
    assert raw_value is not None
    assert raw_value[:2] == b"\0\3"
    assert OffsetCommitValue.decode_versioned(raw_value).offset == 7


def test_record_without_value_is_a_tombstone() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    assert CoordinatorRecord(key).encode() == (key.encode_versioned(), None)
