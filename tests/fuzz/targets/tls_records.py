"""An exchange over TLS, between a client and a running broker, in pieces of any size.

An input is a list of pairs of bytes: what happens to the next bytes of one direction, and to how
many. Pieces change nothing. After damage or the end of a stream, the responses are the first ones
of the exchange.
"""

import shutil
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from random import Random

from kclient.common.errors import KafkaError
from kclient.common.files import WireBytes
from kclient.common.runtime import Address
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.tls.ssl_transport_layer import READ_SIZE, SslTransportLayer
from kclient.protocol.headers import encode_request
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kclient.testing.certificate_authority import CertificateAuthority
from tests.fuzz.mutation import spoil
from tests.fuzz.stepped_broker import SteppedBroker
from tests.fuzz.target import CANARY, MEBIBYTE, Target
from tests.fuzz.targets.frames import framed
from tests.fuzz.workspace import workspace
from tests.support.clients.wire import joined

_PIECE, _RECEIVED_PIECE, _DAMAGE, _REPEAT, _SWAP, _END = range(6)
_HARMFUL = {_DAMAGE, _REPEAT, _SWAP, _END}
_MAX_ACTIONS = 60
_MAX_TURNS = 400
_IDLE_TURNS = 3
_INPUTS_PER_BROKER = 500
_HOST = "broker.example"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class _Ends:
    """Broker and TLS context of its clients; the broker is replaced at intervals.

    Attributes:
        context: TLS context of the clients.
        expected: Responses of the broker to a client whose bytes arrive at once.
    """

    def __init__(self) -> None:
        self._broker: SteppedBroker | None = None
        self._inputs = 0
        self._authority = CertificateAuthority("authority")
        self._scratch = bytearray(READ_SIZE)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.expected: list[bytes] = []
        self.context.load_verify_locations(cadata=self._authority.pem)

    def broker(self) -> SteppedBroker:
        """Return a broker with a listener with TLS and SASL."""
        self._inputs += 1
        if self._inputs % _INPUTS_PER_BROKER == 0:
            self.finish()
        if self._broker is None:
            directory = workspace("tls_records")
            shutil.rmtree(directory / "data", ignore_errors=True)
            store = directory / "server.pem"
            store.write_text(self._authority.issue("broker", (_HOST,)).pem)
            settings = {
                "listeners": "FUZZ://127.0.0.1:9092",
                "listener.security.protocol.map": "FUZZ:SASL_SSL",
                "ssl.keystore.location": str(store),
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.fuzz.plain.sasl.jaas.config": (
                    f'{_MODULE} required user_alice="{CANARY.decode()}";'
                ),
            }
            self._broker = SteppedBroker(directory / "data", **settings)
            self.expected = _undamaged(self._broker)
            assert len(self.expected) == len(_REQUESTS)
        return self._broker

    def finish(self) -> None:
        """Stop the broker."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def client(self, stream: "_Stream") -> SslTransportLayer:
        """Return the client's end of a connection."""
        return SslTransportLayer(stream, self.context, self._scratch, server_hostname=_HOST)


@cache
def _ends() -> _Ends:
    return _Ends()


class _Stream:
    """Socket of the client, whose bytes the input moves.

    Attributes:
        pending: Bytes that the client has written, and the broker has not received.
        arrived: Bytes of the broker that the client has not read.
    """

    def __init__(self) -> None:
        self.pending = bytearray()
        self.arrived = bytearray()
        self.ended = False

    def fileno(self) -> int:
        return -1

    def recv_into(self, buffer: memoryview, /) -> int:
        if not self.arrived:
            if self.ended:
                return 0
            raise BlockingIOError
        count = min(len(self.arrived), len(buffer))
        buffer[:count] = self.arrived[:count]
        del self.arrived[:count]
        return count

    def sendmsg(self, buffers: Sequence[WireBytes], /) -> int:
        data = b"".join(map(bytes, buffers))
        self.pending += data
        return len(data)

    def set_receive_low_water_mark(self, size: int) -> None: ...

    def connect_error(self) -> int:
        return 0

    def peer_address(self) -> Address:
        return ("127.0.0.1", 9092)

    def local_address(self) -> Address:
        return ("127.0.0.1", 1)

    def close(self) -> None: ...

    def reset(self) -> None: ...


class _Exchange:
    """A client that sends requests and collects the responses.

    Attributes:
        responses: Frames of the broker.
        failed: Whether the connection has failed for the client.
    """

    def __init__(self, broker: SteppedBroker, *, pipelined: bool) -> None:
        self._broker = broker
        self._line = broker.connect()
        self._stream = _Stream()
        self._transport = _ends().client(self._stream)
        self._requests = list(_REQUESTS)
        self._pipelined = pipelined
        self._held = bytearray()
        self._receive = self._new_receive()
        self.responses: list[bytes] = []
        self.failed = False

    @staticmethod
    def _new_receive() -> NetworkReceive:
        return NetworkReceive("1", 1 << 20, UnlimitedMemoryPool())

    def step(self) -> None:
        """Do what the client can do with the bytes that have arrived."""
        if self.failed:
            return
        try:
            if not self._transport.ready():
                self._transport.handshake()
            if self._transport.ready():
                self._write()
                self._read()
        except (KafkaError, EOFError, OSError):
            self.failed = True

    def _write(self) -> None:
        while self._requests and (self._pipelined or self._is_due()):
            data = framed(self._requests.pop(0))
            assert self._transport.write([data[:5], data[5:]]) == len(data)

    def _is_due(self) -> bool:
        return len(self.responses) == len(_REQUESTS) - len(self._requests)

    def _read(self) -> None:
        while True:
            self._receive.read_from(self._transport)
            if not self._receive.completed:
                return
            self.responses.append(bytes(self._receive.payload))
            self._receive = self._new_receive()
            self._write()

    def act(self, action: int, count: int) -> None:
        """Apply an action of the input to the bytes of one direction."""
        stream = self._stream
        if action == _PIECE:
            self._deliver(count + 1)
        elif action == _RECEIVED_PIECE:
            self._take()
            stream.arrived += self._held[: count + 1]
            del self._held[: count + 1]
        elif action == _DAMAGE and stream.pending:
            stream.pending[count % len(stream.pending)] ^= 1 << count % 8
        elif action == _REPEAT:
            stream.pending[:0] = stream.pending[: count + 1]
        elif action == _SWAP:
            half = stream.pending[: count + 1]
            del stream.pending[: count + 1]
            stream.pending += half
        elif action == _END:
            self._line.close()

    def finish(self) -> None:
        """Deliver everything, until nothing is left to do."""
        idle = 0
        for _ in range(_MAX_TURNS):
            self.step()
            self._take()
            idle = 0 if self._stream.pending or self._held else idle + 1
            if idle == _IDLE_TURNS:
                return
            self._stream.arrived += self._held
            self._held.clear()
            self._deliver(len(self._stream.pending))
        raise AssertionError("the exchange does not end")

    def _deliver(self, count: int) -> None:
        data = bytes(self._stream.pending[:count])
        del self._stream.pending[:count]
        if data and self._line.is_open:
            self._line.send(data)
        self._broker.pass_time()

    def _take(self) -> None:
        self._held += self._line.take_bytes()
        self._stream.ended = not self._line.is_open and not self._held

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()
        self._line.close()


def run(data: bytes) -> None:
    """Run the exchange with the actions of the input, and another client's without."""
    if not data:
        return
    broker = _ends().broker()
    exchange = _Exchange(broker, pipelined=bool(data[0] & 1))
    is_harmed = False
    actions = data[1 : 1 + 2 * _MAX_ACTIONS]
    for kind, count in zip(actions[::2], actions[1::2], strict=False):
        exchange.step()
        exchange.act(kind % 6, count)
        is_harmed |= kind % 6 in _HARMFUL
    with suppress(BrokenPipeError):
        exchange.finish()
    found, expected = exchange.responses, _ends().expected
    assert found == expected[: len(found)]
    assert is_harmed or len(found) == len(expected), f"{len(found)} responses"
    exchange.close()
    assert _undamaged(broker) == expected


def _undamaged(broker: SteppedBroker) -> list[bytes]:
    """Return the responses to a client whose bytes arrive at once."""
    exchange = _Exchange(broker, pipelined=False)
    exchange.finish()
    exchange.close()
    return exchange.responses


def _finish() -> None:
    _ends().finish()


# --- inputs


def _encoded(request: Request, version: int) -> bytes:
    return joined(encode_request(request, version, 7, "fuzz"))


_REQUESTS = (
    _encoded(SaslHandshakeRequest(mechanism="PLAIN"), 1),
    _encoded(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + CANARY), 2),
    _encoded(ApiVersionsRequest(), 0),
    _encoded(MetadataRequest(topics=[]), 12),
    _encoded(ApiVersionsRequest(), 0),
)


def seeds() -> Iterator[bytes]:
    """Yield exchanges in pieces of equal size, and with each harm at several places."""
    for pipelined in (0, 1):
        for size in (0, 4, 5, 16, 99, 255):
            yield bytes([pipelined, *([_PIECE, size, _RECEIVED_PIECE, size] * 30)])
        for action in sorted(_HARMFUL):
            for before in (0, 1, 2, 5, 9):
                steps = [_PIECE, 255, _RECEIVED_PIECE, 255] * before
                yield bytes([pipelined, *steps, _PIECE, 30, action, 40])


def mutate(data: bytes, random: Random) -> bytes:
    """Change pieces, mostly into other pieces."""
    if not data or random.random() < 0.3:
        return spoil(data, random)
    changed = bytearray(data)
    for _ in range(random.randint(1, 6)):
        place = 1 + 2 * random.randrange(max(1, len(changed) // 2))
        action = random.choice((_PIECE, _RECEIVED_PIECE))
        changed[place : place + 2 * random.randrange(2)] = bytes([action, random.randrange(256)])
    return bytes(changed)


TARGET = Target(run, seeds, mutate, lambda size: 32 * MEBIBYTE + 60 * size, _finish)
