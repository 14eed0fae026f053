"""Produce 7 to 13 and Fetch 11 to 17, parsed by hand, because their cost is to be small."""

from dataclasses import dataclass
from struct import Struct

from integration.benchmarks.sink import wire
from integration.benchmarks.sink.partition_log import Part, PartitionLog
from integration.benchmarks.sink.topics import Topic, Topics
from integration.benchmarks.sink.wire import INT16, INT32, NO_TAGS, Reader

PRODUCE_VERSIONS, FETCH_VERSIONS = (7, 13), (11, 17)
_PRODUCE_FLEXIBLE, _PRODUCE_IDS = 9, 13
_FETCH_FLEXIBLE, _FETCH_IDS, _FETCH_WITHOUT_REPLICA = 12, 13, 15
_UNKNOWN_TOPIC, _OFFSET_OUT_OF_RANGE = 3, 1
# Index, error, base offset, append time, start offset.
_PRODUCED = Struct(">ihqqq")
# From version 8 on, neither record errors nor a message follow, then no tags.
_NO_ERRORS = {7: b"", 8: bytes(4) + b"\xff\xff"} | dict.fromkeys(range(9, 14), b"\x01\x00\x00")
# Index, error, high watermark, last stable offset, start offset, no aborted transactions, replica.
_FETCHED, _FETCHED_FLEXIBLE = Struct(">ihqqqii"), Struct(">ihqqqBi")
_ASKED, _ASKED_FLEXIBLE = Struct(">iiqqi"), Struct(">iiqiqi")
# Wait, bytes at least and at most, isolation, session and its epoch.
_LIMITS = Struct(">iiibii")


def handle_produce(topics: Topics, buffer: memoryview, at: int, version: int) -> bytes | None:
    """Returns the body of the response, None for acks=0."""
    flexible = version >= _PRODUCE_FLEXIBLE
    reader = Reader(buffer, at, flexible=flexible)
    reader.text()
    (acks,) = INT16.unpack(reader.take(2))
    reader.take(4)
    topic_count = reader.count()
    response = [wire.count(topic_count, flexible=flexible)]
    for _ in range(topic_count):
        key, name = _topic_key(reader, ids=version >= _PRODUCE_IDS)
        response += (name, _produce_topic(topics.find_by_wire(key), reader, _NO_ERRORS[version]))
        reader.skip_tags()
    response.append(b"\x00\x00\x00\x00")  # throttle time
    if flexible:
        response.append(NO_TAGS)
    return b"".join(response) if acks else None


def _topic_key(reader: Reader, *, ids: bool) -> tuple[bytes, bytes]:
    """Returns a topic's id or name, and the same as it is to be sent back."""
    if ids:
        key = reader.take(16).tobytes()
        return key, key
    key = reader.text()
    return key, wire.text(key, flexible=reader.flexible)


def _produce_topic(topic: Topic | None, reader: Reader, no_errors: bytes) -> bytes:
    """Appends the batches of a topic, and returns the array of their outcomes."""
    flexible, buffer = reader.flexible, reader.buffer
    partition_count = reader.count()
    response = bytearray(wire.count(partition_count, flexible=flexible))
    for _ in range(partition_count):
        (index,) = INT32.unpack_from(buffer, reader.at)
        reader.at += 4
        batch = reader.take(max(reader.count(), 0))
        log = _log(topic, index)
        error, base = log.append(batch) if log else (_UNKNOWN_TOPIC, -1)
        response += _PRODUCED.pack(index, error, base, -1, 0) + no_errors
        reader.skip_tags()
    if flexible:
        response += NO_TAGS
    return bytes(response)


def _log(topic: Topic | None, index: int) -> PartitionLog | None:
    return topic.partitions[index] if topic and 0 <= index < len(topic.partitions) else None


@dataclass(slots=True)
class FetchedRecords:
    """Response to a Fetch request.

    Attributes:
        parts: body, to be sent in order.
        records: bytes of records in it.
        max_wait_ms: how long the response may wait for records if it has none.
    """

    parts: list[Part]
    records: int
    max_wait_ms: int


def handle_fetch(topics: Topics, buffer: memoryview, at: int, version: int) -> FetchedRecords:
    """Returns the response; it has session 0, so that each request names all its partitions."""
    flexible = version >= _FETCH_FLEXIBLE
    reader = Reader(buffer, at, flexible=flexible)
    if version < _FETCH_WITHOUT_REPLICA:
        reader.take(4)
    max_wait_ms, _, max_bytes, _, _, _ = _LIMITS.unpack(reader.take(_LIMITS.size))
    topic_count = reader.count()
    fetched = FetchedRecords([bytes(10)], 0, max_wait_ms)
    fetched.parts.append(wire.count(topic_count, flexible=flexible))
    for _ in range(topic_count):
        key, name = _topic_key(reader, ids=version >= _FETCH_IDS)
        fetched.parts.append(name)
        _fetch_topic(topics.find_by_wire(key), reader, fetched, max_bytes)
        reader.skip_tags()
    if flexible:
        fetched.parts.append(NO_TAGS)
    return fetched


def _fetch_topic(
    topic: Topic | None, reader: Reader, fetched: FetchedRecords, max_bytes: int
) -> None:
    flexible, asked_of = reader.flexible, _ASKED_FLEXIBLE if reader.flexible else _ASKED
    partition_count = reader.count()
    parts = fetched.parts
    parts.append(wire.count(partition_count, flexible=flexible))
    for _ in range(partition_count):
        asked = asked_of.unpack_from(reader.buffer, reader.at)
        reader.at += asked_of.size
        reader.skip_tags()
        index, offset, limit = asked[0], asked[2], asked[-1]
        log = _log(topic, index)
        end = log.end if log else -1
        error = _UNKNOWN_TOPIC if log is None else _OFFSET_OUT_OF_RANGE if offset > end else 0
        records: list[Part] = []
        size = 0
        left = max_bytes - fetched.records
        if log and left > 0:
            records, size = log.read(offset, min(limit, left))
        fetched.records += size
        if flexible:
            parts.append(_FETCHED_FLEXIBLE.pack(index, error, end, end, 0, 0, -1))
        else:
            parts.append(_FETCHED.pack(index, error, end, end, 0, -1, -1))
        parts.append(wire.count(size, flexible=flexible))
        parts += records
        if flexible:
            parts.append(NO_TAGS)
    if flexible:
        parts.append(NO_TAGS)
