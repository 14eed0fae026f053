"""Keys and values of classic groups in ``__consumer_offsets``."""

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)


def test_group_keys() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=5)
    assert key.encode_versioned().hex() == "0001 0001 67 0001 74 00000005".replace(" ", "")
    assert decode_group_key(key.encode_versioned()) == key
    old = LegacyOffsetCommitKey(group="g", topic="t", partition=5)
    found = decode_group_key(old.encode_versioned())
    assert found == old
    assert isinstance(found, OffsetCommitKey)
    group = GroupMetadataKey(group="g")
    assert decode_group_key(group.encode_versioned()) == group
    assert decode_group_key(bytes.fromhex("0003 0001 67")) is None
    for broken in ("", "00", "0001", "0002 0009 67"):
        with pytest.raises(ProtocolError):
            decode_group_key(bytes.fromhex(broken))


def test_group_values() -> None:
    value = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)
    assert OffsetCommitValue.decode_versioned(value.encode_versioned(3)) == value
    assert GroupMetadataValue.decode_versioned(GroupMetadataValue().encode_versioned(4)) is not None
    with pytest.raises(UnsupportedVersionError, match="got version 5"):
        OffsetCommitValue.decode_versioned(b"\x00\x05" + bytes(30))
