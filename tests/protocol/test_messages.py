"""Message classes: constructors, equality, reprs, errors."""

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import KafkaError, ProtocolError
from kclient.protocol.message import codec
from kclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
)
from kclient.protocol.messages.group_membership import HeartbeatRequest
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.log_records import (
    AbortedTxn,
    ControlRecordTypeSchema,
    EndTxnMarker,
)
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
)
from tests.protocol.catalogue import MESSAGES


def test_generated_sources_are_readable() -> None:
    found = codec(HeartbeatRequest, 3)
    assert "o0.group_id = str(buf[p:q], 'utf-8')" in found.decoder_source
    assert "v = o0.group_id" in found.encoder_source
    assert codec(HeartbeatRequest, 3) is found


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


def test_newer_consumer_protocol_is_decoded_as_newest_known() -> None:
    sent = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
    data = b"\x00\x09" + sent.encode_bytes(3) + b"added later"
    assert ConsumerProtocolSubscription.decode_versioned(data) == sent
    with pytest.raises(UnsupportedVersionError):
        ConsumerProtocolSubscription.decode_versioned(b"\xff\xff" + sent.encode_bytes(3))


def test_log_records() -> None:
    assert EndTxnMarker(coordinator_epoch=3).encode_versioned(0).hex() == "000000000003"
    assert ControlRecordTypeSchema(type=1).encode_versioned(0).hex() == "00000001"
    assert len(AbortedTxn().encode_versioned(0)) == 34


def test_metadata_records() -> None:
    record = FeatureLevelRecord(name="metadata.version", feature_level=25)
    data = record.encode_framed(0)
    assert data.hex() == "010c00" + "11" + b"metadata.version".hex() + "0019" + "00"
    assert MetadataRecord.decode_framed(data) == record
    change = PartitionChangeRecord(partition_id=1, isr=[1, 2], leader=2)
    assert MetadataRecord.decode_framed(change.encode_framed(2)) == change
    assert MetadataRecord.decode_framed(NoOpRecord().encode_framed(0)) == NoOpRecord()


@pytest.mark.parametrize("data", ["", "01", "0114", "00140000", "02140000", "01630000", "01140100"])
def test_malformed_metadata_records_are_refused(data: str) -> None:
    with pytest.raises(KafkaError):
        MetadataRecord.decode_framed(bytes.fromhex(data))


def test_newest_version_of_init_producer_id_is_unstable() -> None:
    assert [kind for kind in MESSAGES if kind.latest_version_unstable] == [InitProducerIdRequest]
