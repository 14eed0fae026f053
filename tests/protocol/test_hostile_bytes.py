"""Decoding of hostile bytes: a result or a KafkaError, in bounded memory."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kclient.common.errors import KafkaError, ProtocolError
from kclient.protocol.memory import MEBIBYTE
from kclient.protocol.message import Message
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    ForgottenTopic,
    PartitionData,
)
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.topics import DeleteTopicsRequest
from tests.protocol.catalogue import in_every_version
from tests.protocol.samples import full

NASTY = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x80", b"\xff\xfe")


def attempt(message: type[Message], version: int, data: bytes) -> None:
    try:
        message.decode(data, version)
    except KafkaError as error:
        assert message.__name__ in str(error)  # noqa: PT017 - most inputs fail, some do not


def places(data: bytes, version: int, at_most: int) -> range:
    """Return places in a message, spread over all of it; each version starts at another one."""
    step = len(data) // at_most + 1
    return range(version % step, len(data), step)


def nasty(data: bytes, version: int) -> Iterator[bytes]:
    """Yield the message with lengths, counts and tags replaced at many places."""
    for position in places(data, version, 12):
        for pattern in NASTY:
            yield data[:position] + pattern + data[position + len(pattern) :]


def peak_of(action: Callable[[], object]) -> int:
    """Return the most memory that `action` held at a time."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.fault("P5")
@in_every_version
def test_truncation_is_refused(message: type[Message], version: int) -> None:
    data = full(message, version).encode_bytes(version)
    for length in places(data, version, 100):
        with pytest.raises(ProtocolError, match=rf"^{message.__name__} v{version}: "):
            message.decode(data[:length], version)


@pytest.mark.fault("P5")
@in_every_version
def test_invalid_lengths_allocate_no_memory(message: type[Message], version: int) -> None:
    data = full(message, version).encode_bytes(version)
    attempt(message, version, data)  # generates the decoder

    def attack() -> None:
        for input_ in nasty(data, version):
            attempt(message, version, input_)

    assert peak_of(attack) <= 4 * len(data) + MEBIBYTE


@pytest.mark.fault("P5")
@in_every_version
def test_flipped_bytes(message: type[Message], version: int) -> None:
    source = random.Random(f"{message.__name__} {version}")
    data = full(message, version).encode_bytes(version)
    for _ in range(40 if data else 0):
        broken = bytearray(data)
        for _ in range(source.randint(1, 4)):
            broken[source.randrange(len(broken))] = source.randrange(256)
        attempt(message, version, bytes(broken))


@pytest.mark.fault("P5")
@in_every_version
def test_noise(message: type[Message], version: int) -> None:
    source = random.Random(f"{version} {message.__name__}")
    for length in range(60):
        attempt(message, version, source.randbytes(length))


def metadata(partitions: int, version: int) -> bytes:
    """Return the metadata response of a large cluster."""
    some = [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=1000 + index % 7,
            leader_epoch=5000,
            replica_nodes=[1000, 1001, 1002],
            isr_nodes=[1000, 1001, 1002],
        )
        for index in range(1000)
    ]
    topics = [
        MetadataResponseTopic(name=f"topic-{index}", partitions=some)
        for index in range(partitions // 1000)
    ]
    return MetadataResponse(topics=topics).encode_bytes(version)


def test_metadata_of_large_cluster_is_accepted() -> None:
    data = metadata(2_000, 12)
    assert peak_of(lambda: MetadataResponse.decode(data, 12)) <= allowed(len(data))


def test_fetch_response_of_many_empty_partitions_is_accepted() -> None:
    partitions = [PartitionData(partition_index=index, records=b"") for index in range(10_000)]
    sent = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    assert FetchResponse.decode(sent.encode_bytes(13), 13) == sent


def allowed(size: int) -> int:
    """Return the limit of `kclient.protocol.memory`, with the text of strings."""
    return MEBIBYTE + 8 * size + 28 * min(size, 8 * MEBIBYTE)


def tiny_strings(count: int) -> tuple[type[Message], int, bytes]:
    names = [f"{index % 100:02}" for index in range(count)]
    return DeleteTopicsRequest, 4, DeleteTopicsRequest(topic_names=names).encode_bytes(4)


def wide_strings(count: int) -> tuple[type[Message], int, bytes]:
    names = ["ab\N{GRINNING FACE}"] * count
    return DeleteTopicsRequest, 4, DeleteTopicsRequest(topic_names=names).encode_bytes(4)


def empty_structs(count: int) -> tuple[type[Message], int, bytes]:
    topics = [ForgottenTopic()] * count
    return FetchRequest, 12, FetchRequest(forgotten_topics_data=topics).encode_bytes(12)


def empty_topics(count: int) -> tuple[type[Message], int, bytes]:
    topics = [MetadataResponseTopic(name="")] * count
    return MetadataResponse, 9, MetadataResponse(topics=topics).encode_bytes(9)


def many_numbers(count: int) -> tuple[type[Message], int, bytes]:
    topics = [ForgottenTopic(partitions=list(range(1000, 1000 + count)))]
    return FetchRequest, 12, FetchRequest(forgotten_topics_data=topics).encode_bytes(12)


@pytest.mark.parametrize(
    "shape", [tiny_strings, wide_strings, empty_structs, empty_topics, many_numbers]
)
def test_dense_messages_stay_within_allowance(
    shape: Callable[[int], tuple[type[Message], int, bytes]],
) -> None:
    attempt(*shape(1))  # generates the decoder
    for count in (100, 10_000):
        attack = shape(count)
        assert peak_of(partial(attempt, *attack)) <= allowed(len(attack[2]))
