"""Memory that a socket may still read is not reused, whatever the outcome of its records.

In CVE-2026-35554 a batch expired in flight, its buffer was reused for records of another topic, and
the connection, which had not sent all of it yet, sent those instead.
"""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.errors import BufferExhaustedError
from kclient.record import CompressionType
from tests.support.virtual.producer_world import ProducerWorld, WorldOptions

TIMEOUT_MS = 2_000
SEND, STEP, EXPIRE, RESPONSE, DISCONNECT, REFUSE = range(6)
DEEDS = st.lists(
    st.tuples(st.sampled_from([SEND, SEND, SEND, STEP, STEP, EXPIRE, RESPONSE, DISCONNECT, REFUSE]),
              st.integers(0, 255)),
    min_size=20, max_size=80,
)  # fmt: skip


def do(world: ProducerWorld, deed: int, number: int) -> None:
    if deed == SEND:
        # Two partitions share few buffers, and all values differ.
        with suppress(BufferExhaustedError):
            world.send(bytes([number]) * (1 + number % 60), number % 2)
    elif deed == STEP:
        world.step(number)
    elif deed == EXPIRE:
        world.step(TIMEOUT_MS)
    elif deed == RESPONSE:
        world.respond_to_all()
    elif deed == DISCONNECT:
        world.client.disconnect("0")
        world.step()
    elif world.client.wire.get("0"):
        world.respond_with_error(6)


def check(world: ProducerWorld) -> None:
    free = {id(buffer) for kept in world.pool._free.values() for buffer in kept}
    for queue in world.client.wire.values():
        for sent in queue:
            assert sent.is_untouched()
            assert not any(id(view.obj) in free for view, _ in sent.memory)


@pytest.mark.fault("W10")
@pytest.mark.parametrize("idempotence", [True, False])
@given(deeds=DEEDS)
@settings(max_examples=60)
def test_memory_in_flight_is_not_reused(idempotence: bool, deeds: list[tuple[int, int]]) -> None:
    world = ProducerWorld(
        WorldOptions(
            partitions=2, batch_size=150, buffer_memory=600, delivery_timeout_ms=TIMEOUT_MS,
            idempotence=idempotence, acks=-1, compression=CompressionType.NONE,
        )
    )  # fmt: skip
    for deed, number in deeds:
        do(world, deed, number)
        check(world)
    world.settle(200)
    assert world.pool.available() == world.pool.total


@pytest.mark.fault("W10")
def test_closed_connection_frees_the_memory() -> None:
    world = ProducerWorld(WorldOptions(delivery_timeout_ms=TIMEOUT_MS))
    world.send(b"x")
    world.step()
    world.step(TIMEOUT_MS)
    assert world.pool.available() < world.pool.total
    world.client.disconnect("0")
    world.step()
    assert world.pool.available() == world.pool.total


@pytest.mark.fault("W10", "W16")
def test_forced_close_closes_sockets_before_freeing_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ProducerWorld(WorldOptions())
    world.send(b"x")
    world.step()
    memory_at_close = []

    def close() -> None:
        memory_at_close.append(world.pool.available())

    monkeypatch.setattr(world.client, "close", close)
    world.sender.force_close()
    assert not world.step()
    assert memory_at_close[0] < world.pool.total
    assert world.pool.available() == world.pool.total
