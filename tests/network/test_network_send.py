"""Outgoing frames, written by partial writes."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from kclient.network.network_send import NetworkSend
from kclient.network.transport_layer import PlaintextTransportLayer
from tests.network.conftest import Sink, everything


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
