"""Keys of control records."""

import pytest

from kclient.common.broker_errors import CorruptRecordError
from kclient.record import ControlRecordType


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
