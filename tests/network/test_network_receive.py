"""Incoming frames: in any chunks, with invalid sizes, in bounded memory."""

import struct
import threading
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import InvalidReceiveError
from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Address, StreamSocket
from kclient.network.authenticator import NoAuthenticator
from kclient.network.kafka_channel import KafkaChannel
from kclient.network.memory_pool import MemoryPool, SimpleMemoryPool, UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive, foreign_peer

LIMIT = 100 * 1024 * 1024


class Feed:
    """Transport layer that has received the given chunks."""

    socket: StreamSocket
    wants_write = False
    has_buffered = False

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)
        self.expected: list[int] = []

    def ready(self) -> bool:
        return True

    def handshake(self) -> None: ...

    def read_into(self, buffer: memoryview) -> int:
        if not self.chunks:
            return 0
        chunk = self.chunks.pop(0)
        count = min(len(chunk), len(buffer))
        buffer[:count] = chunk[:count]
        if count < len(chunk):
            self.chunks.insert(0, chunk[count:])
        return count

    def expect(self, size: int) -> None:
        self.expected.append(size)

    def write(self, parts: Sequence[WireBytes]) -> int:
        return 0

    def write_file(self, part: FileSlice, offset: int) -> int:
        return 0

    def flush(self) -> bool:
        return True

    def peer_address(self) -> Address:
        return ("10.0.0.1", 1)

    def close(self) -> None: ...


def receive(limit: int = LIMIT) -> NetworkReceive:
    return NetworkReceive("1", limit, UnlimitedMemoryPool())


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.fault("C8")
@given(
    st.integers(0, 300_000),
    st.lists(st.integers(1, 100_000), max_size=6),
)
def test_frame_is_reassembled_from_any_chunks(size: int, cuts: list[int]) -> None:
    body = (b"0123456789abcdef" * 18751)[:size]
    data = frame(body)
    chunks = []
    for cut in cuts:
        chunks.append(data[:cut])
        data = data[cut:]
    got = receive()
    feed = Feed(*[chunk for chunk in [*chunks, data] if chunk])
    while not got.completed:
        assert got.read_from(feed)
    assert bytes(got.payload) == body


def test_read_stops_at_end_of_frame() -> None:
    feed = Feed()
    got = receive()
    for byte in frame(b"abc"):
        assert not got.completed
        feed.chunks.append(bytes([byte]))
        assert got.read_from(feed) == 1
    assert bytes(got.payload) == b"abc"
    feed.chunks.append(frame(b"next"))
    got.read_from(feed)
    assert feed.chunks == [frame(b"next")]


def reading_ahead(feed: Feed, pool: MemoryPool, bytes_ahead: int) -> KafkaChannel:
    return KafkaChannel("1", feed, NoAuthenticator(), pool, LIMIT, bytes_ahead)


@pytest.mark.fault("C8")
@given(
    st.lists(st.integers(0, 300), max_size=12),
    st.integers(0, 100_000),
    st.lists(st.integers(1, 500), max_size=12),
    st.integers(1, 200),
)
def test_channel_that_reads_ahead_returns_each_frame(
    sizes: list[int], large: int, cuts: list[int], bytes_ahead: int
) -> None:
    bodies = [bytes([number]) * size for number, size in enumerate([*sizes, large])]
    data, feed = b"".join(map(frame, bodies)), Feed()
    channel = reading_ahead(feed, UnlimitedMemoryPool(), bytes_ahead)
    got = []
    for cut in [*cuts, len(data)]:
        if cut and data:
            feed.chunks.append(data[:cut])
            data = data[cut:]
        while feed.chunks or channel.received:
            received = channel.read()
            if received is not None:
                got.append(bytes(received.payload))
    assert got == bodies


def test_frame_that_was_read_ahead_waits_for_memory() -> None:
    pool = SimpleMemoryPool(3, threading.RLock())
    channel = reading_ahead(Feed(frame(b"first") + frame(b"second")), pool, 100)
    first = channel.read()
    assert first is not None
    assert channel.read() is None
    assert channel.waits_for_memory()
    first.release()
    second = channel.read()
    assert second is not None
    assert [bytes(first.payload), bytes(second.payload)] == [b"first", b"second"]
    assert not channel.received


class ReleasedMeanwhile(UnlimitedMemoryPool):
    """Pool that has no memory for the second frame when it is first asked."""

    def __init__(self) -> None:
        self._refusals = iter([True, False])

    def try_allocate(self, size: int) -> bool:
        return next(self._refusals, True)


def test_memory_released_by_another_thread_does_not_reorder_bytes() -> None:
    feed = Feed(frame(b"first") + frame(b"second")[:6])
    channel = reading_ahead(feed, ReleasedMeanwhile(), 100)
    feed.chunks.append(frame(b"second")[6:])
    received = [channel.read() for _ in range(3)]
    assert [bytes(each.payload) for each in received if each is not None] == [b"first", b"second"]


def test_frame_without_payload_needs_no_memory() -> None:
    pool = SimpleMemoryPool(1, threading.RLock())
    channel = reading_ahead(Feed(frame(b"1") + frame(b"") + frame(b"2")), pool, 100)
    received = [channel.read() for _ in range(3)]
    assert [None if each is None else bytes(each.payload) for each in received] == [b"1", b"", None]


def test_size_that_was_read_ahead_is_checked() -> None:
    channel = reading_ahead(Feed(frame(b"a") + struct.pack(">i", -1)), UnlimitedMemoryPool(), 100)
    assert channel.read() is not None
    with pytest.raises(InvalidReceiveError, match="frame size: got -1"):
        channel.read()


@pytest.mark.fault("P2")
@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_size_outside_limits_is_refused(size: int) -> None:
    with pytest.raises(InvalidReceiveError, match=f"frame size: got {size}, expected 0 to"):
        receive().read_from(Feed(struct.pack(">i", size)))


@pytest.mark.fault("P1")
@pytest.mark.parametrize(
    ("prefix", "named"),
    [
        (b"HTTP", "HTTP: the address is that of a web server or proxy"),
        (b"GET ", "an HTTP request: the client speaks HTTP, and this is a Kafka listener"),
        (b"\x15\x03\x03\x00", "a TLS alert: the peer expects TLS, this side speaks plaintext"),
        (b"\x16\x03\x01\x02", "a TLS handshake: the client speaks TLS, .* one without TLS"),
        (b"SSH-", "SSH"),
        (b"220 ", "text"),
    ],
)
def test_error_names_protocol_of_peer(prefix: bytes, named: str) -> None:
    with pytest.raises(InvalidReceiveError, match=f"the peer sent {named}"):
        receive(2**31 - 1).read_from(Feed(prefix))


@given(st.integers(0, LIMIT))
def test_valid_size_is_never_taken_for_another_protocol(size: int) -> None:
    assert foreign_peer(struct.pack(">i", size)) is None


def test_transport_knows_the_missing_bytes_of_a_large_frame() -> None:
    body = bytes(100_000)
    feed = Feed(frame(body)[:-10])
    got = receive()
    got.read_from(feed)
    assert feed.expected == [10]
    feed.chunks.append(body[-10:])
    got.read_from(feed)
    assert got.completed
    assert feed.expected == [10, 0]


def test_small_frame_causes_no_call_of_the_transport() -> None:
    feed = Feed(frame(b"abc")[:-1])
    got = receive()
    got.read_from(feed)
    feed.chunks.append(b"c")
    got.read_from(feed)
    assert got.completed
    assert feed.expected == []


@pytest.mark.fault("P2")
def test_buffer_grows_with_received_bytes_not_claimed_size() -> None:
    tracemalloc.start()
    try:
        got = receive()
        got.read_from(Feed(struct.pack(">i", 99_000_000), b"x" * 1000))
        claimed = tracemalloc.get_traced_memory()[1]
        got.read_from(Feed(*[b"y" * 65536] * 32))
        received = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert not got.completed
    assert claimed < 256 * 1024
    assert received < 6 * 1024 * 1024


def test_progress_names_received_and_expected_bytes() -> None:
    got = receive()
    assert not got.started()
    got.read_from(Feed(b"\x00\x00"))
    assert got.progress() == "after 2 of the 4 bytes of a frame's size"
    got.read_from(Feed(b"\x00\x0a", b"abc"))
    assert got.progress() == "after 3 of a frame's 10 bytes"


def test_receive_waits_for_pool_memory_and_releases_it() -> None:
    pool = SimpleMemoryPool(10, threading.RLock())
    first = NetworkReceive("1", LIMIT, pool)
    first.read_from(Feed(frame(b"x" * 50)))
    assert first.completed
    assert pool.available() == -40
    second = NetworkReceive("2", LIMIT, pool)
    feed = Feed(frame(b"abc"))
    second.read_from(feed)
    assert second.waits_for_memory()
    first.release()
    first.release()
    second.read_from(feed)
    assert bytes(second.payload) == b"abc"
    second.release()
    assert pool.available() == 10
