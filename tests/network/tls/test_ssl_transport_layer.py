"""TLS over sockets that take and return any number of bytes."""

import random
import ssl
from collections.abc import Callable, Sequence

import pytest

from kclient.common.errors import DisconnectedError, KafkaError, SslAuthenticationError
from kclient.network.memory_pool import UnlimitedMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.network.tls.session_cache import TlsSessionCache
from kclient.network.tls.ssl_transport_layer import READ_SIZE, SslTransportLayer
from kclient.network.tls.store_loading import pem_file
from kclient.testing.certificate_authority import CertificateAuthority, Identity
from tests.support.virtual.pipe import Pipe, pipe

AUTHORITY = CertificateAuthority("authority")
SERVER = AUTHORITY.issue("server", ("kafka.example", "10.0.0.1"))


def server_context(identity: Identity = SERVER) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, identity)
    return context


def load(context: ssl.SSLContext, identity: Identity) -> None:
    with pem_file(identity.pem) as path:
        context.load_cert_chain(path)


def client_context(*authorities: CertificateAuthority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for authority in authorities or (AUTHORITY,):
        context.load_verify_locations(cadata=authority.pem)
    return context


Ends = tuple[SslTransportLayer, SslTransportLayer]


def ends(
    client: ssl.SSLContext | None = None,
    server: ssl.SSLContext | None = None,
    host: str = "kafka.example",
    piece: Callable[[], int] = lambda: 1 << 30,
    sessions: TlsSessionCache | None = None,
) -> Ends:
    near, far = pipe(piece)
    scratch = bytearray(READ_SIZE)
    return (
        SslTransportLayer(
            near,
            client or client_context(),
            scratch,
            server_hostname=host,
            sessions=sessions,
        ),
        SslTransportLayer(far, server or server_context(), scratch, server_side=True),
    )


def shake(*layers: SslTransportLayer) -> None:
    for _ in range(20_000):
        for layer in layers:
            if not layer.ready():
                layer.handshake()
            layer.flush()
        if all(layer.ready() and not layer.wants_write for layer in layers):
            return
    pytest.fail("the handshake does not end")


def send_all(sender: SslTransportLayer, receiver: SslTransportLayer, data: bytes) -> bytes:
    """Write data, and read it at the other end."""
    left, found = memoryview(data), bytearray()
    buffer = memoryview(bytearray(100_000))
    while len(found) < len(data):
        if left:
            left = left[sender.write([left[:7], b"", left[7:]]) :]
        sender.flush()
        found += buffer[: receiver.read_into(buffer)]
    assert not sender.wants_write
    return bytes(found)


@pytest.mark.parametrize("seed", range(6))
def test_bytes_arrive_in_pieces_of_any_size(seed: int) -> None:
    chance = random.Random(seed)
    largest = chance.choice([1, 5, 300, 70_000])
    client, server = ends(piece=lambda: chance.randint(0, largest))
    shake(client, server)
    size = 3_000 if largest < 100 else 700_000
    for _ in range(3):
        data = chance.randbytes(chance.randint(1, size))
        assert send_all(client, server, data) == data
        assert send_all(server, client, data) == data


def test_few_encrypted_bytes_are_ahead_of_a_full_socket() -> None:
    client, server = ends()
    shake(client, server)
    pipe = client.socket
    assert isinstance(pipe, Pipe)
    pipe.piece = lambda: 0
    data = bytes(10 << 20)
    assert client.write([data]) == 256 * 1024
    assert client.write([data]) == 0
    assert client.wants_write
    pipe.piece = lambda: 1 << 30
    assert client.flush()
    assert not client.wants_write


def test_unread_bytes_are_reported_as_buffered() -> None:
    client, server = ends()
    shake(client, server)
    server.write([b"0123456789"])
    four = memoryview(bytearray(4))
    buffered = [client.has_buffered]
    assert client.read_into(four) == 4
    buffered.append(client.has_buffered)
    assert client.read_into(memoryview(bytearray(100))) == 6
    assert [*buffered, client.has_buffered] == [False, True, False]
    assert client.read_into(four) == 0


def test_low_water_mark_leaves_a_record_out() -> None:
    client, _ = ends()
    pipe = client.socket
    assert isinstance(pipe, Pipe)
    for size in (10_000_000, 10_000_000, 100_000, 5, 0):
        client.expect(size)
    assert pipe.marks == [1 << 20, 100_000 - 16_896, 1]


@pytest.mark.parametrize("notify", [True, False])
def test_end_of_the_stream(notify: bool) -> None:
    client, server = ends()
    shake(client, server)
    server.write([b"last"])
    if notify:
        server.close()
        server.close()
    else:
        server.socket.close()
    buffer = memoryview(bytearray(10))
    assert client.read_into(buffer) == 4
    with pytest.raises(EOFError):
        client.read_into(buffer)
    client.close()


def frames_until_the_end(client: SslTransportLayer) -> list[bytes]:
    """Return the frames that a client receives before the connection ends."""
    frames: list[bytes] = []
    while True:
        receive = NetworkReceive("1", 1000, UnlimitedMemoryPool())
        try:
            receive.read_from(client)
        except (EOFError, OSError, KafkaError):
            return frames
        assert receive.completed
        frames.append(bytes(receive.payload))


def truncated(version: ssl.TLSVersion, frames: Sequence[bytes], left_out: int) -> list[bytes]:
    """Return the frames that a client receives if the stream lacks its last bytes."""
    client, server = ends(server=limited(version, server_context()))
    shake(client, server)
    for frame in frames:
        server.write([len(frame).to_bytes(4), frame])
    pipe = client.socket
    assert isinstance(pipe, Pipe)
    pipe.waiting = pipe.waiting[: max(0, len(pipe.waiting) - left_out)]
    server.socket.close()
    return frames_until_the_end(client)


@pytest.mark.fault("A8")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_truncated_stream_has_only_whole_frames(version: ssl.TLSVersion) -> None:
    """An attacker may end the stream at any byte, without close_notify."""
    sent = [b"first", b"second frame"]
    found = [truncated(version, sent, left_out) for left_out in range(150)]
    assert found[0] == sent
    assert found.count(sent) == 1
    assert found.count([]) > 10
    assert all(frames in (sent, sent[:1], []) for frames in found)


def both(client: SslTransportLayer, server: SslTransportLayer) -> None:
    """Run the handshake; the server's failures are those of the client."""
    for _ in range(10):
        client.handshake()
        try:
            server.handshake()
        except KafkaError:
            server.flush()


OTHER = CertificateAuthority("other")


def limited(version: ssl.TLSVersion, context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.fault("C15")
@pytest.mark.parametrize(
    ("client", "server", "host", "text"),
    [
        (
            client_context(OTHER),
            server_context(),
            "kafka.example",
            "signed by an unknown issuer 'authority'; add the issuer to ssl.truststore",
        ),
        (
            client_context(),
            server_context(),
            "other.example",
            "not valid for 'other.example'; its names are DNS:kafka.example, IP Address:10.0.0.1",
        ),
        (client_context(), server_context(), "10.0.0.2", "not valid for '10.0.0.2'"),
        (
            client_context(),
            server_context(AUTHORITY.issue("old", ("kafka.example",), (-9, -2))),
            "kafka.example",
            "the certificate expired on .* GMT",
        ),
        (
            client_context(),
            server_context(AUTHORITY.issue("new", ("kafka.example",), (2, 9))),
            "kafka.example",
            "the certificate is valid from .* GMT",
        ),
        (
            limited(ssl.TLSVersion.TLSv1_2, client_context()),
            limited(ssl.TLSVersion.TLSv1_3, server_context()),
            "kafka.example",
            "no TLS version or cipher suite in common",
        ),
    ],
)
def test_failed_handshake_names_its_cause(
    client: ssl.SSLContext, server: ssl.SSLContext, host: str, text: str
) -> None:
    near, far = ends(client, server, host)
    with pytest.raises(SslAuthenticationError, match=text) as caught:
        both(near, far)
    assert isinstance(caught.value.__cause__, ssl.SSLError)
    with pytest.raises(KafkaError):  # the peer gets an alert
        shake(far)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("own", [None, OTHER])
def test_refused_client_certificate(
    version: ssl.TLSVersion, own: CertificateAuthority | None
) -> None:
    server = limited(version, server_context())
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=AUTHORITY.pem)
    client = client_context()
    if own is not None:
        load(client, own.issue("client"))
    near, far = ends(client, server)

    def shake_and_read() -> None:
        both(near, far)
        near.read_into(memoryview(bytearray(10)))  # only this fails with TLS 1.3

    text = "this client's certificate|requires a client certificate|no TLS version or cipher"
    with pytest.raises(SslAuthenticationError, match=text):
        shake_and_read()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_of_a_host_and_context_are_resumed(version: ssl.TLSVersion) -> None:
    contexts = limited(version, client_context()), limited(version, client_context())
    accepting, sessions = server_context(), TlsSessionCache()

    def connect(context: ssl.SSLContext, host: str) -> bool:
        client, server = ends(context, accepting, host, sessions=sessions)
        shake(client, server)
        assert send_all(server, client, b"response") == b"response"
        return client.is_resumed

    names = "kafka.example", "10.0.0.1"
    assert [connect(contexts[0], names[0]) for _ in range(3)] == [False, True, True]
    assert [connect(contexts[0], names[1]) for _ in range(2)] == [False, True]
    assert [connect(contexts[1], names[0]) for _ in range(2)] == [False, True]
    assert not connect(contexts[0], names[0])


def test_session_cache_is_bounded() -> None:
    context, sessions = client_context(), TlsSessionCache()
    client, server = ends(context, sessions=sessions)
    shake(client, server)
    send_all(server, client, b"response")
    session = sessions.get(context, "kafka.example")
    assert session is not None
    for number in range(1001):
        sessions.put(context, str(number), session)
    assert sessions.get(context, "kafka.example") is None
    assert sessions.get(context, "0") is None
    assert sessions.get(context, "1") is session


def test_peer_without_tls() -> None:
    client, server = ends()
    client.handshake()
    pipe = client.socket
    assert isinstance(pipe, Pipe)
    pipe.waiting = b"HTTP/1.1 400 Bad Request\r\n"
    with pytest.raises(SslAuthenticationError, match="the peer does not speak TLS"):
        client.handshake()
    other, far = ends()
    other.handshake()
    far.socket.close()
    with pytest.raises(DisconnectedError, match="the port may be one without TLS"):
        other.handshake()
    server.close()


def test_server_words_failures_from_its_view() -> None:
    for sent, text in (
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "the client speaks HTTP, and this listener TLS"),
        (b"\x00\x00\x00\x2a\x00\x12\x00\x03kclient", "the client does not speak TLS"),
    ):
        _, server = ends()
        pipe = server.socket
        assert isinstance(pipe, Pipe)
        pipe.waiting = sent
        with pytest.raises(SslAuthenticationError, match=text):
            server.handshake()
    client, server = ends(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    text = "the client does not trust the certificate of this listener .TLSV1_ALERT_UNKNOWN_CA"
    client.handshake()
    server.handshake()
    with pytest.raises(SslAuthenticationError, match="unknown issuer"):
        client.handshake()
    with pytest.raises(SslAuthenticationError, match=text):
        server.handshake()


@pytest.mark.fault("A8")
def test_any_damage_ends_the_connection() -> None:
    chance = random.Random(7)
    for _ in range(60):
        client, server = ends()
        shake(client, server)
        server.write([chance.randbytes(500)])
        pipe = client.socket
        assert isinstance(pipe, Pipe)
        position = chance.randrange(len(pipe.waiting))
        damaged = bytearray(pipe.waiting)
        damaged[position] ^= 1 << chance.randrange(8)
        pipe.waiting = bytes(damaged)
        server.socket.close()
        with pytest.raises((KafkaError, OSError, EOFError)):
            client.read_into(memoryview(bytearray(1000)))
