"""Connections and tasks of a simulation, for tests of its parts."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kclient.common.runtime import READABLE, WRITABLE, Address, Listener, StreamSocket
from kclient.testing.virtual import (
    VirtualProcess,
    VirtualTask,
    VirtualWorld,
)

PORT = 9092


SERVER: Address = ("10.0.0.3", PORT)  # the second machine that the fixture makes


PAYLOAD = bytes(range(256)) * 40


@dataclass
class Line:
    """Blocking reads and writes on one end of a connection."""

    process: VirtualProcess
    stream: StreamSocket
    taken: bytearray = field(default_factory=bytearray)

    def wait(self, events: int, timeout_ms: float | None = None) -> bool:
        poller = self.process.runtime.net.poller()
        poller.register(self.stream, events, self)
        ready = poller.poll(timeout_ms)
        poller.unregister(self.stream)
        return bool(ready)

    def connected(self) -> int:
        self.wait(WRITABLE)
        return self.stream.connect_error()

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.wait(WRITABLE)
            rest = rest[self.stream.sendmsg([rest[:7], rest[7:]]) :]

    def read(self, count: int) -> bytes:
        """Read exactly so much, or what comes before the end of the stream."""
        buffer = memoryview(bytearray(4096))
        taken = b""
        while len(taken) < count:
            self.wait(READABLE)
            got = self.stream.recv_into(buffer[: count - len(taken)])
            if not got:
                break
            taken += buffer[:got]
            self.taken += buffer[:got]
        return taken


@dataclass
class Net:
    """Two machines with a process each."""

    world: VirtualWorld
    client: VirtualProcess
    server: VirtualProcess

    def connect(self, address: Address = SERVER) -> Line:
        return Line(self.client, self.client.runtime.net.connect(address, -1, -1))

    def listen(self, backlog: int = 10) -> Listener:
        return self.server.runtime.net.listen((SERVER[0], PORT), backlog)

    def accept(self, listener: Listener) -> Line:
        poller = self.server.runtime.net.poller()
        poller.register(listener, READABLE, "it")
        assert poller.poll(None) == [("it", READABLE)]
        return Line(self.server, listener.accept())

    def pair(self) -> tuple[Line, Line]:
        near = self.connect()
        far = self.accept(self.listen())
        assert near.connected() == 0
        return near, far

    def run(self, *functions: Callable[[], object]) -> list[VirtualTask]:
        tasks = [self.client.spawn("talk", function) for function in functions]
        self.world.run(until=lambda: all(task.over for task in tasks), timeout_ms=3_600_000)
        return tasks


def fails(code: int, call: Callable[[], object]) -> None:
    with pytest.raises(OSError, match=r"\[Errno") as reported:
        call()
    assert reported.value.errno == code


def finish(world: VirtualWorld, *functions: Callable[[], object]) -> None:
    """Run functions as tasks of the process that is there, until they end."""
    (process,) = world.machine("m").processes
    tasks = [process.spawn(f"task {number}", run) for number, run in enumerate(functions)]
    world.run(until=lambda: all(task.over for task in tasks))
