"""Plaintext transport: partial writes, the end of the stream, file slices."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kclient.common.files import FileSlice, WirePart
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemClock
from kclient.network.network_send import NetworkSend
from kclient.network.selector import Selector
from kclient.network.system_net import SystemNet, SystemPoller
from kclient.network.transport_layer import PlaintextTransportLayer
from tests.network.conftest import Sink, connected, everything


@pytest.fixture
def file_slice(tmp_path: Path) -> FileSlice:
    path = tmp_path / "log"
    path.write_bytes(bytes(range(256)) * 8)
    return FileSlice(SystemFiles().open(path), 10, 1000)


def test_file_slice_is_read_if_socket_has_no_descriptor(file_slice: FileSlice) -> None:
    sink = Sink(lambda: 333)
    parts: list[WirePart] = [b"ab", file_slice, b"yz"]
    send = NetworkSend("1", parts)
    send.write_to(PlaintextTransportLayer(sink))
    assert send.completed
    assert sink.data[4:] == b"ab" + file_slice.read() + b"yz"
    file_slice.file.close()


def test_file_shorter_than_slice_fails_write(
    file_slice: FileSlice,
) -> None:
    file_slice.file.truncate(500)
    send = NetworkSend("1", [file_slice])
    with pytest.raises(OSError, match="shorter than the slice"):
        send.write_to(PlaintextTransportLayer(Sink(everything)))
    file_slice.file.close()


def test_file_slice_is_sent_by_sendfile(
    net: SystemNet, poller: SystemPoller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(3_000_000)
    path = tmp_path / "log"
    path.write_bytes(content)
    file = SystemFiles().open(path)
    monkeypatch.setattr(type(file), "read_at", None)
    near, far = connected(net, poller)
    sender, receiver = (Selector(net, SystemClock()) for _ in range(2))
    sender.register("s", near)
    receiver.register("r", far)
    sender.poll(0, 0)
    sender.send(NetworkSend("s", [b"head", FileSlice(file, 1000, 2_900_000), b"tail"]))
    received: list[bytes] = []
    for _ in range(10_000):
        sender.poll(0, 0)
        receiver.poll(1, 0)
        received += [bytes(item.payload) for item in receiver.completed_receives]
        if received:
            break
    assert received == [b"head" + content[1000:2_901_000] + b"tail"]
    sender.close()
    receiver.close()
    file.close()


def test_frame_larger_than_the_receive_buffer_arrives(net: SystemNet, poller: SystemPoller) -> None:
    near, far = connected(net, poller)  # the receive buffer of `near` has 64 KiB
    sender, receiver = (Selector(net, SystemClock()) for _ in range(2))
    sender.register("s", far)
    receiver.register("r", near)
    sender.poll(0, 0)
    content = os.urandom(3_000_000)
    for body in (content, b"small", content):
        sender.send(NetworkSend("s", [body]))
        for _ in range(10_000):
            sender.poll(0, 0)
            receiver.poll(1, 0)
            if receiver.completed_receives:
                break
        assert [item.payload for item in receiver.completed_receives] == [body]
    sender.close()
    receiver.close()


class Stream:
    """A socket whose next results the test sets."""

    def __init__(self) -> None:
        self.incoming: list[bytes] = []
        self.blocked = False
        self.written: list[bytes] = []
        self.closed = False
        self.marks: list[int] = []

    def set_receive_low_water_mark(self, size: int) -> None:
        self.marks.append(size)

    def recv_into(self, buffer: memoryview) -> int:
        if self.blocked:
            raise BlockingIOError
        data = self.incoming.pop(0)
        buffer[: len(data)] = data
        return len(data)

    def sendmsg(self, buffers: Sequence[bytes]) -> int:
        if self.blocked:
            raise BlockingIOError
        self.written += buffers
        return sum(map(len, buffers))

    def fileno(self) -> int:
        return -1

    def peer_address(self) -> tuple[str, int]:
        return ("10.0.0.1", 9092)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def layer(stream: Stream) -> PlaintextTransportLayer:
    return PlaintextTransportLayer(stream)  # type: ignore[arg-type]  # the methods that are called


def test_plaintext_needs_no_handshake(layer: PlaintextTransportLayer) -> None:
    assert layer.ready()
    layer.handshake()
    assert layer.peer_address() == ("10.0.0.1", 9092)


def test_socket_that_is_not_ready_transfers_nothing(
    layer: PlaintextTransportLayer, stream: Stream
) -> None:
    stream.blocked = True
    assert layer.read_into(memoryview(bytearray(4))) == 0
    assert layer.write([b"a"]) == 0
    assert stream.written == []


def test_end_of_the_stream_is_not_an_empty_read(
    layer: PlaintextTransportLayer, stream: Stream
) -> None:
    stream.incoming = [b"abc", b""]
    buffer = bytearray(8)
    assert layer.read_into(memoryview(buffer)) == 3
    assert buffer[:3] == b"abc"
    with pytest.raises(EOFError):
        layer.read_into(memoryview(buffer))


def test_parts_are_written_in_one_call(layer: PlaintextTransportLayer, stream: Stream) -> None:
    assert layer.write([b"ab", b"c"]) == 3
    assert stream.written == [b"ab", b"c"]
    layer.close()
    assert stream.closed


def test_low_water_mark_is_set_when_it_changes(
    layer: PlaintextTransportLayer, stream: Stream
) -> None:
    for size in (3_000_000, 2_000_000, 70_000, 70_000, 0, 0):
        layer.expect(size)
    assert stream.marks == [1 << 20, 70_000, 1]
