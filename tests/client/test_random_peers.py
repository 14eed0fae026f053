"""Whatever a peer says, the client neither breaks nor spins."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.client.client_settings import ClientSettings
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import ClientWorld

ANY_WORDS = st.one_of(
    st.binary(max_size=200),
    # Frames with a right correlation id, so that what follows is read as an answer.
    st.binary(max_size=120).map(
        lambda body: (4 + len(body)).to_bytes(4, "big") + b"\x00\x00\x00\x00" + body
    ),
)


class Babbler:
    """Says one thing after the other."""

    def __init__(self, words: list[bytes]) -> None:
        self._words = words

    def connected(self, socket: VirtualSocket) -> None: ...

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        if self._words:
            socket.deliver(self._words.pop(0))


@pytest.mark.fault("P1", "P5")
@settings(max_examples=150, deadline=None)
@given(st.lists(ANY_WORDS, max_size=6))
def test_nothing_a_peer_says_breaks_the_client(words: list[bytes]) -> None:
    world = ClientWorld(settings=ClientSettings(request_timeout_ms=400))
    world.serve(lambda: Babbler(words))
    polls = 0
    while world.now_ms < 6000:
        world.poll(6000 - world.now_ms)
        polls += 1
    assert polls < 400
    assert len(world.net.connects) - 1 <= 8
    world.client.close()
