"""Decoding of messages, and the errors of malformed bytes."""

import pytest

from kclient.common.errors import ProtocolError
from kclient.protocol.fields import Struct, int32
from kclient.protocol.message import Message
from kclient.protocol.messages.fetch import (
    FetchRequest,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kclient.protocol.messages.topics import DeleteTopicsRequest
from kclient.protocol.types import encode_uvarint


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
