"""Message classes: constructors, equality, reprs, errors."""

import copy
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import InvalidArgumentError, KafkaError, ProtocolError
from kclient.common.files import FileSlice
from kclient.protocol.fields import ArrayOf, Field, Struct, Wire, int32, string
from kclient.protocol.message import Message, codec
from kclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.log_records import (
    AbortedTxn,
    ControlRecordTypeSchema,
    EndTxnMarker,
)
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.protocol.types import encode_uvarint
from tests.protocol.catalogue import MESSAGES


def structs_of(kind: type[Struct]) -> dict[str, type[Struct]]:
    found = {f"{kind.__module__}.{kind.__name__}": kind}
    for field in kind.fields.values():
        inner = field.kind.element if isinstance(field.kind, ArrayOf) else field.kind
        if not isinstance(inner, Wire):
            found |= structs_of(inner)
    return found


STRUCTS = {name: kind for message in MESSAGES for name, kind in structs_of(message).items()}
PYTHON_TYPES = {
    Wire.BOOL: bool,
    Wire.FLOAT64: float,
    Wire.STRING: str,
    Wire.UUID: bytes,
    Wire.BYTES: bytes,
}


@pytest.mark.parametrize("kind", STRUCTS.values(), ids=STRUCTS)
def test_annotations_match_wire_types(kind: type[Struct]) -> None:
    for owner in reversed(kind.__mro__):
        for name, annotation in vars(owner).get("__annotations__", {}).items():
            field = kind.fields.get(name)
            if field is None or field.kind is Wire.RECORDS:
                continue
            alternatives = (
                set(get_args(annotation)) if get_origin(annotation) is not list else set()
            )
            assert (type(None) in alternatives) == (str(field.nullable) != "none"), name
            plain = (alternatives - {type(None)}) or {annotation}
            assert plain == {python_type(field)}, name


def python_type(field: Field) -> object:
    if isinstance(field.kind, ArrayOf):
        element = field.kind.element
        inner = PYTHON_TYPES.get(element, int) if isinstance(element, Wire) else element
        return list[inner]  # type: ignore[valid-type]  # a type made at run time
    return PYTHON_TYPES.get(field.kind, int) if isinstance(field.kind, Wire) else field.kind


def test_defaults_are_kafkas_and_not_shared() -> None:
    request = FetchRequest()
    assert (request.replica_id, request.max_bytes, request.session_epoch) == (-1, 0x7FFFFFFF, -1)
    assert request.cluster_id is None
    assert request.topics == []
    request.topics.append(FetchTopic())
    request.replica_state.replica_id = 3
    assert FetchRequest().topics == []
    assert FetchRequest().replica_state.replica_id == -1


def test_null_differs_from_default() -> None:
    assert MetadataRequest(topics=None).topics is None
    assert MetadataRequest().topics == []


def test_fields_are_given_by_name_only() -> None:
    with pytest.raises(TypeError):
        HeartbeatRequest("group")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        HeartbeatRequest(group="group")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        HeartbeatRequest().group = "group"  # type: ignore[attr-defined]


def test_equality_is_by_value_and_type() -> None:
    assert HeartbeatRequest(group_id="a") == HeartbeatRequest(group_id="a")
    assert HeartbeatRequest(group_id="a") != HeartbeatRequest(group_id="b")
    assert HeartbeatRequest() != InitProducerIdRequest()
    with pytest.raises(TypeError):
        hash(HeartbeatRequest())


def test_copies_are_deep() -> None:
    request = FetchRequest(topics=[FetchTopic(topic="a")])
    twin = copy.deepcopy(request)
    twin.topics[0].topic = "b"
    assert request.topics[0].topic == "a"


def test_repr_shows_no_payload() -> None:
    data = PartitionProduceData(index=1, records=b"secret")
    assert repr(data) == "PartitionProduceData(index=1, records=<6 bytes>)"
    view = PartitionProduceData(records=memoryview(bytes(9000)))
    assert repr(view) == "PartitionProduceData(index=0, records=<9000 bytes>)"
    assert repr(ConsumerProtocolAssignment(user_data=bytes(33))).endswith("user_data=<33 bytes>)")
    assert repr(ConsumerProtocolAssignment(user_data=b"ab")).endswith("user_data=b'ab')")


def test_repr_hides_secrets() -> None:
    class Login(Message, versions="0"):
        user: str = string()
        password: str = string(secret=True)

    assert repr(Login(user="u", password="p")) == "Login(user='u', password=***)"
    with pytest.raises(InvalidArgumentError) as caught:
        Login(password=wrong(b"hunter2")).encode(0)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "version", "text"),
    [
        (
            HeartbeatRequest(group_instance_id="i"),
            2,
            r"HeartbeatRequest v2: group_instance_id: got 'i' \(str\), which only versions 3\+",
        ),
        (MetadataRequest(topics=None), 0, r"topics may be null in versions 1\+ only"),
        (
            FetchRequest(topics=[FetchTopic(), FetchTopic(partitions=[])], rack_id="r"),
            99,
            "FetchRequest: got version 99, expected 4-18",
        ),
        (FetchRequest(), 3, "FetchRequest: got version 3"),
        (
            FetchResponse(
                responses=[
                    FetchableTopicResponse(),
                    FetchableTopicResponse(
                        partitions=[
                            PartitionData(),
                            PartitionData(current_leader=LeaderIdAndEpoch(leader_id=1)),
                        ]
                    ),
                ]
            ),
            11,
            r"responses\[1\].partitions\[1\].current_leader: got LeaderIdAndEpoch",
        ),
    ],
)
def test_field_missing_in_version_is_refused(message: Message, version: int, text: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=text):
        message.encode(version)


def test_ignorable_fields_are_dropped() -> None:
    request = FetchRequest(rack_id="r", session_id=3)
    assert FetchRequest.decode(request.encode_bytes(4), 4) == FetchRequest()


def wrong(value: object) -> Any:
    """Return a value that a type checker would refuse."""
    return value


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            HeartbeatRequest(group_id=wrong(None)),
            r"group_id: got None \(NoneType\), expected string",
        ),
        (HeartbeatRequest(group_id=wrong(b"g")), r"group_id: got 1 bytes, expected string"),
        (HeartbeatRequest(generation_id=1 << 31), r"generation_id: got 2147483648 \(int\)"),
        (
            HeartbeatRequest(generation_id=wrong("7")),
            r"generation_id: got '7' \(str\), expected int32",
        ),
        (HeartbeatRequest(member_id="\ud800"), r"surrogates not allowed"),
        (HeartbeatRequest(member_id="m" * 40000), r"member_id: got 'mmm.* expected string"),
        (
            FetchRequest(topics=[FetchTopic(topic_id=bytes(15))]),
            r"topics\[0\].topic_id: got 15 bytes, expected uuid",
        ),
        (
            DeleteTopicsRequest(topic_names=[wrong(None)]),
            r"topic_names\[0\]: got None \(NoneType\), expected string",
        ),
        (
            DeleteTopicsRequest(topic_names=wrong(7)),
            r"topic_names: got 7 \(int\), expected array of string",
        ),
        (
            FetchRequest(forgotten_topics_data=[ForgottenTopic(partitions=[1, wrong("b")])]),
            r"forgotten_topics_data\[0\].partitions\[1\]: got 'b' \(str\), expected int32",
        ),
        (
            FetchRequest(topics=[wrong("t")]),
            r"topics\[0\]: got 't' \(str\), expected FetchTopic",
        ),
        (FetchRequest(rack_id="r" * 40000), "rack_id: got 'rrr.* expected string"),
        (
            DeleteTopicsRequest(topic_names=["a", wrong(3)]),
            r"topic_names\[1\]: got 3 \(int\), expected string",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(message: Message, text: str) -> None:
    version = 13 if isinstance(message, FetchRequest) else message.min_version
    with pytest.raises(InvalidArgumentError, match=text):
        message.encode(version)


def test_str_in_place_of_bytes_is_refused() -> None:
    request = SyncGroupRequest(assignments=[SyncGroupRequestAssignment(assignment=wrong("text"))])
    with pytest.raises(
        InvalidArgumentError, match=r"assignments\[0\].assignment: got 'text' .*expected bytes"
    ):
        request.encode(0)


def test_file_slice_is_one_part() -> None:
    class Reader:
        path = Path("segment")

        def read_at(self, position: int, length: int) -> bytes:
            return bytes(range(position, position + length))

    small = FileSlice(Reader(), 3, 5)  # type: ignore[arg-type]
    partitions = [PartitionData(records=small), PartitionData(records=FileSlice(small.file, 0, 0))]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    for version in (11, 12):
        parts = response.encode(version)
        assert [type(part).__name__ for part in parts] == ["bytes", "FileSlice", "bytes"]
        assert parts[1] is small
        decoded = FetchResponse.decode(response.encode_bytes(version), version)
        first, second = decoded.responses[0].partitions
        assert first.records == bytes(range(3, 8))
        assert second.records == b""


def test_record_sets_are_views_of_message() -> None:
    sent = ProduceRequest(
        topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records=b"batch")])]
    )
    data = bytearray(sent.encode_bytes(9))
    records = ProduceRequest.decode(data, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    data[data.index(b"batch")] = ord("B")
    assert records.tobytes() == b"Batch"


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "group_id needs 2 bytes, only 0 remain"),
        ("0001 67 000000", "generation_id needs 4 bytes, only 3 remain"),
        ("0001 67 00000000 00", "member_id needs 2 bytes, only 1 remain"),
        ("0003 67", "group_id needs 3 bytes, only 1 remain"),
        ("ffff", "group_id is null, which this field does not allow"),
        ("fffe", "group_id has length -2"),
        ("0001 ff", r"group_id is not UTF-8 \(invalid start byte\)"),
        ("0001 67 00000000 0001 6d fffe", "group_instance_id has length -2"),
    ],
)
def test_error_of_malformed_bytes_names_field(data: str, text: str) -> None:
    with pytest.raises(ProtocolError, match=f"^HeartbeatRequest v3: {text}"):
        HeartbeatRequest.decode(bytes.fromhex(data), 3)


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("05 0001", r"topics claims 4 elements of at least 18 bytes, only 2 bytes remain"),
        ("02" + "00" * 16, r"topics claims 1 elements"),
        ("02 13" + "00" * 17, r"topics\[0\].name needs 18 bytes, only 17 remain"),
    ],
)
def test_error_of_malformed_array_names_element(data: str, text: str) -> None:
    with pytest.raises(ProtocolError, match=rf"^DeleteTopicsRequest v6: {text}"):
        DeleteTopicsRequest.decode(bytes.fromhex(data), 6)


@pytest.mark.fault("P5")
@pytest.mark.parametrize(("length", "taken"), [(32767, True), (32768, False)])
def test_compact_string_has_limit_of_other_strings(length: int, taken: bool) -> None:
    """A compact length can be larger, but such a string could not be sent in other versions."""
    named = DeleteTopicsRequest(topic_names=["t" * 200]).encode_bytes(4)
    long = encode_uvarint(length + 1) + b"t" * length
    data = named.replace(encode_uvarint(201) + b"t" * 200, long)
    if taken:
        assert DeleteTopicsRequest.decode(data, 4).encode_bytes(4) == data
    else:
        with pytest.raises(ProtocolError, match=r"topic_names\[0\] has length 32768, expected at"):
            DeleteTopicsRequest.decode(data, 4)


def fetch_tags(tags: str) -> FetchRequest:
    """Decode an empty FetchRequest of version 15 that ends with these tagged fields."""
    front = FetchRequest().encode_bytes(15)
    assert front.endswith(b"\x00")
    return FetchRequest.decode(front[:-1] + bytes.fromhex(tags), 15)


@pytest.mark.fault("P6")
def test_known_tags_are_decoded_and_unknown_ones_skipped() -> None:
    assert fetch_tags("02 00 02 02 63 63 03 aabbcc").cluster_id == "c"
    request = fetch_tags("03 00 02 02 63 01 0d 00000007 0000000000000009 00 09 00")
    assert (request.cluster_id, request.replica_state.replica_id) == ("c", 7)


@pytest.mark.fault("P6")
@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ("02 00 02 02 63 00 02 02 63", "tag 0 follows tag 0"),
        ("02 01 0d 00000007 0000000000000009 00 00 02 02 63", "tag 0 follows tag 1"),
        ("01 00 03 02 63 00", "tag 0 holds 1 bytes fewer than it claims"),
        ("01 00 01 02 63", "tag 0 holds 1 bytes more than it claims"),
        ("01 00 09 02 63", "needs 9 bytes, only 2 remain"),
        ("01 07 ffffffff0f", "needs 4294967295 bytes"),
        ("ffffffff1f", "does not fit in 32 bits"),
        ("ffffffffffff", "varint is longer than 5 bytes"),
        ("01 01 04 00000007", "replica_state"),
        ("", "tagged fields is missing"),
    ],
)
def test_malformed_tags_are_refused(tags: str, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        fetch_tags(tags)


def test_nullable_structs() -> None:
    class Inner(Struct):
        number: int = int32()

    from kclient.protocol.fields import struct  # noqa: PLC0415 - keeps `struct` local to this test

    class Outer(Message, versions="0-1", flexible="1+"):
        inner: Inner | None = struct(Inner, nullable="0+", default=None)

    for version in (0, 1):
        for sent in (Outer(), Outer(inner=Inner(number=5))):
            assert Outer.decode(sent.encode_bytes(version), version) == sent
    assert Outer().encode_bytes(0) == b"\xff"
    assert Outer(inner=Inner(number=5)).encode_bytes(1).hex() == "01000000050000"
    with pytest.raises(ProtocolError, match="inner has marker 2"):
        Outer.decode(b"\x02\x00\x00\x00\x05", 0)


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
