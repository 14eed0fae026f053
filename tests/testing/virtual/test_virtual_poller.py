"""Readiness of virtual sockets."""

import socket

import pytest

from kclient.common.runtime import READABLE, WRITABLE
from kclient.testing.virtual import VirtualWorld
from kclient.testing.virtual.virtual_clock import START_MS
from tests.support.virtual.world_parts import Net


def test_wakeup_ends_poll_of_poller(net: Net) -> None:
    poller = net.client.runtime.net.poller()
    poller.wakeup()
    assert poller.poll(None) == []
    net.world.clock.after(500.0, poller.wakeup)
    assert poller.poll(None) == []
    assert net.world.clock.now_ms == START_MS + 500
    assert poller.poll(100.0) == []
    assert net.world.clock.now_ms == START_MS + 600


def test_poller_returns_requested_events(net: Net) -> None:
    near, far = net.pair()
    poller = net.client.runtime.net.poller()
    poller.register(near.stream, 0, "near")
    with pytest.raises(KeyError, match="already"):
        poller.register(near.stream, READABLE, "again")
    far.write(b"x")
    assert poller.poll(100.0) == []
    poller.modify(near.stream, READABLE | WRITABLE)
    assert poller.poll(100.0) == [("near", READABLE | WRITABLE)]
    poller.close()
    assert poller.poll(100.0) == []


def test_source_is_registered_once(net: Net) -> None:
    near, _ = net.pair()
    poller = net.client.runtime.net.poller()
    poller.register(near.stream, READABLE, "near")
    with pytest.raises(KeyError, match="is registered already"):
        poller.register(near.stream, READABLE, "again")
    poller.unregister(near.stream)
    poller.register(near.stream, READABLE, "again")
    poller.close()
    assert poller.poll(0) == []


def test_wakeup_before_a_poll_ends_it_at_once(net: Net) -> None:
    poller = net.client.runtime.net.poller()
    poller.wakeup()
    started_ms = net.world.clock.now_ms
    assert poller.poll(1_000) == []
    assert net.world.clock.now_ms == started_ms
    assert poller.poll(1_000) == []
    assert net.world.clock.now_ms == started_ms + 1_000


def test_ready_sockets_are_returned_in_random_order() -> None:
    orders = set()
    for seed in range(10):
        with VirtualWorld(seed, latency_ms=(1.0, 1.0)) as world:
            client, server = (world.machine(name).process(name) for name in ("client", "server"))
            net = Net(world, client, server)
            listener = net.listen()
            poller = client.runtime.net.poller()
            for number in range(4):
                near = net.connect()
                net.accept(listener)
                poller.register(near.stream, WRITABLE, number)
            ready: list[tuple[object, int]] = []
            while len(ready) < 4:
                ready = poller.poll(100)
            assert sorted(str(data) for data, _ in ready) == ["0", "1", "2", "3"]
            orders.add(tuple(data for data, _ in ready))
    assert len(orders) > 1


def test_poller_refuses_sockets_of_the_system(net: Net) -> None:
    poller = net.client.runtime.net.poller()
    with socket.socket() as real, pytest.raises(TypeError, match="expected a socket of this net"):
        poller.register(real, READABLE, "real")  # type: ignore[arg-type]  # refused at run time
