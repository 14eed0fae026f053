"""Clients without a network: whatever asks for it fails the test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient import Producer
from kclient.common.runtime import Address, Listener, LookUp, Poller, StreamSocket
from kclient.network.system_runtime import system_runtime

Make = Callable[..., Any]


class NoNet:
    """A network that counts who asks for it, and gives nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._poller = system_runtime().net.poller

    def resolve(self, host: str, port: int) -> list[Address]:
        self.asked.append(f"resolve {host}")
        raise OSError("there is no network")

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        self.asked.append(f"look up {host}")
        raise OSError("there is no network")

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        self.asked.append(f"connect {address}")
        raise OSError("there is no network")

    def listen(self, address: Address, backlog: int) -> Listener:
        self.asked.append(f"listen {address}")
        raise OSError("there is no network")

    def poller(self, *, waits: bool = True) -> Poller:
        return self._poller()


@pytest.fixture
def net() -> Iterator[NoNet]:
    made = NoNet()
    yield made
    assert made.asked == []


@pytest.fixture
def make(net: NoNet) -> Iterator[Make]:
    made: list[Any] = []

    def build(kind: Any, **options: Any) -> Any:
        given = {"bootstrap_servers": "nowhere.invalid:9092", **options}
        # A producer's thread looks for brokers from the start, whatever is asked of the producer.
        door = NoNet() if kind is Producer else net
        client = kind(runtime=system_runtime()._replace(net=door), **given)
        made.append(client)
        return client

    yield build
    for client in made:
        client.close()
