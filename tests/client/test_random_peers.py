"""Robustness of the client against random bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import ClientWorld

ANY_BYTES = st.one_of(
    st.binary(max_size=200),
    # Frames with the expected correlation id, whose body is decoded as a response.
    st.binary(max_size=120).map(
        lambda body: (4 + len(body)).to_bytes(4, "big") + b"\x00\x00\x00\x00" + body
    ),
)


class RandomPeer:
    """Peer that sends the next bytes of a list for each request."""

    def __init__(self, replies: list[bytes]) -> None:
        self._replies = replies

    def connected(self, socket: VirtualSocket) -> None: ...

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        if self._replies:
            socket.deliver(self._replies.pop(0))


@pytest.mark.fault("P1", "P5")
@settings(max_examples=150)
@given(st.lists(ANY_BYTES, max_size=6))
def test_random_bytes_of_peer_do_not_break_client(replies: list[bytes]) -> None:
    world = ClientWorld(request_timeout_ms=400)
    world.serve(lambda: RandomPeer(replies))
    polls = 0
    while world.now_ms < 6000:
        world.poll(6000 - world.now_ms)
        polls += 1
    assert polls < 400
    assert len(world.net.connects) - 1 <= 8
    world.client.close()
