"""Broker that is run step by step, on an in-memory network."""

import struct
from pathlib import Path

from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.system_files import SystemFiles
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.support.virtual.virtual_home import VirtualHome

_SIZE = struct.Struct(">i")
_ADDRESS = ("127.0.0.1", 9092)
_STEPS = 12
_SETTINGS: dict[str, object] = {
    "listeners": f"{_ADDRESS[0]}:{_ADDRESS[1]}",
    "offsets.topic.num.partitions": 1,
    "log.index.size.max.bytes": 4096,
    "group.initial.rebalance.delay.ms": 0,
}


class SteppedBroker:
    """Broker of a data directory. Raises what `BrokerServer.start` raises."""

    def __init__(self, data_dir: Path, **settings: object) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = BROKER_CONFIG.parse({"log.dir": str(data_dir), **_SETTINGS, **given})
        self._home = VirtualHome()
        runtime = self._home.runtime._replace(files=SystemFiles())
        self.server = BrokerServer(config, runtime)
        self.server.start(threads=False)

    def connect(self) -> "Line":
        """Open a connection."""
        socket = self._home.runtime.net.connect(_ADDRESS, -1, -1)
        assert isinstance(socket, VirtualSocket)
        line = Line(self, socket)
        self.pass_time()
        return line

    def pass_time(self, duration_ms: float = 4.0) -> None:
        """Run the broker's pending work, including timers that expire soon."""
        for _ in range(_STEPS):
            self._home.sleep(duration_ms / _STEPS)
            while not self.server.step(self._home.clock.now_ms):
                pass

    def stop(self) -> None:
        """Shut the broker down cleanly."""
        self.server.stop()


class Line:
    """Client side of a connection to the broker."""

    def __init__(self, broker: SteppedBroker, socket: VirtualSocket) -> None:
        self._broker = broker
        self._socket = socket
        self._taken = bytearray()

    def send(self, data: bytes) -> None:
        """Send raw bytes."""
        self._socket.deliver(data)

    def ask(self, frame: bytes) -> list[bytes]:
        """Send a frame; return the frames received without waiting."""
        self.send(_SIZE.pack(len(frame)) + frame)
        self._broker.pass_time()
        return self.received()

    def received(self) -> list[bytes]:
        """Return the complete frames received; buffer the rest."""
        frames = []
        data = self._taken
        data += self.take_bytes()
        while len(data) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(data)[0]
            if len(data) < end:
                break
            frames.append(bytes(data[_SIZE.size : end]))
            del data[:end]
        return frames

    def take_bytes(self) -> bytes:
        """Return the bytes received, as they are."""
        return bytes(self._socket.take_incoming())

    @property
    def is_open(self) -> bool:
        """Whether the broker has not closed the connection."""
        return self._socket.ended is None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        self._broker.pass_time()
