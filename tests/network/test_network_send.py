"""Outgoing frames, written by partial writes."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.files import FileSlice, WireBytes, WirePart
from kclient.common.runtime import Address
from kclient.common.system_files import SystemFiles
from kclient.network.network_send import NetworkSend
from kclient.network.transport_layer import PlaintextTransportLayer


class Sink:
    """Socket that accepts a given number of bytes per write."""

    def __init__(self, accepts: Callable[[], int]) -> None:
        self.data = b""
        self.calls = 0
        self._accepts = accepts

    def fileno(self) -> int:
        return -1

    def recv_into(self, buffer: memoryview, /) -> int:
        raise BlockingIOError

    def sendmsg(self, buffers: Sequence[WireBytes], /) -> int:
        self.calls += 1
        joined = b"".join(bytes(part) for part in buffers)[: self._accepts()]
        if not joined:
            raise BlockingIOError
        self.data += joined
        return len(joined)

    def connect_error(self) -> int:
        return 0

    def peer_address(self) -> Address:
        return ("10.0.0.1", 1)

    def local_address(self) -> Address:
        return ("10.0.0.2", 2)

    def close(self) -> None: ...
    def reset(self) -> None: ...


def everything() -> int:
    return 1 << 30


@given(
    st.lists(st.binary(max_size=50), max_size=8),
    st.lists(st.integers(0, 40), min_size=1, max_size=20),
)
def test_parts_are_written_in_order_by_partial_writes(
    parts: list[bytes], accepted: list[int]
) -> None:
    pattern = [*accepted, 7]
    sink = Sink(lambda: pattern[sink.calls % len(pattern)])
    send = NetworkSend("1", parts)
    transport = PlaintextTransportLayer(sink)
    for _ in range(1000):
        send.write_to(transport)
        if send.completed:
            break
    body = b"".join(parts)
    assert sink.data == struct.pack(">i", len(body)) + body


def test_frame_is_written_by_one_system_call() -> None:
    sink = Sink(everything)
    NetworkSend("1", [b"header", b"", b"records" * 100]).write_to(PlaintextTransportLayer(sink))
    assert sink.calls == 1


def test_many_parts_are_written_in_groups() -> None:
    sink = Sink(everything)
    send = NetworkSend("1", [b"x"] * 1000)
    send.write_to(PlaintextTransportLayer(sink))
    assert send.completed
    assert sink.calls == 16


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
