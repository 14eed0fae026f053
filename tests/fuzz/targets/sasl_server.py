"""SASL exchanges of a client with a running broker, before and after SaslHandshake.

An input is a byte stream of a client: frames after their sizes. A token `FINAL` is replaced by the
valid final message of SCRAM for the server's last challenge. Requests are handled only with the
principal of a user whose secret is in the input, and other clients log in as before.
"""

import base64
import hashlib
import hmac
import shutil
from collections.abc import Callable, Iterator
from random import Random

from kclient.broker.metadata.storage_formatter import FormatOptions, format_storage
from kclient.broker.network.request_channel import Request
from kclient.common.errors import KafkaError
from kclient.network.sasl.scram import SCRAM_MECHANISMS, ScramKeys, salted_password
from kclient.network.system_runtime import system_runtime
from kclient.protocol.headers import decode_request_header, decode_response, encode_request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord
from kclient.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kclient.protocol.registry import REQUESTS
from tests.fuzz.message_mutation import MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.stepped_broker import Line, SteppedBroker
from tests.fuzz.target import CANARY, MEBIBYTE, Target
from tests.fuzz.targets.frames import expected_frames, framed
from tests.fuzz.workspace import workspace
from tests.support.clients.wire import joined

FINAL = b"@final"
NONCE = b"nonceOfTheClient"
_USER = b"alice"
_SCRAM = SCRAM_MECHANISMS["SCRAM-SHA-256"]
_SALT = b"salt" * 5
_KEYS = ScramKeys.of(_SCRAM.hash_name, salted_password(_SCRAM.hash_name, CANARY, _SALT, 4096))
_GOOD = b"\0%s\0%s" % (_USER, CANARY)
_FIRST = b"n,,n=%s,r=%s" % (_USER, NONCE)
_MAX_FRAMES = 12
_MAX_SIZE = 524288
_LONG_MS = 61_000.0
_INPUTS_PER_BROKER = 2000
_MODULES = "org.apache.kafka.common.security"
_SETTINGS: dict[str, object] = {
    "listeners": "FUZZ://127.0.0.1:9092",
    "listener.security.protocol.map": "FUZZ:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.fuzz.plain.sasl.jaas.config": (
        f'{_MODULES}.plain.PlainLoginModule required user_alice="{CANARY.decode()}";'
    ),
    "listener.name.fuzz.scram-sha-256.sasl.jaas.config": (
        f"{_MODULES}.scram.ScramLoginModule required;"
    ),
    "listener.name.fuzz.plain.connections.max.reauth.ms": 60_000,
    "connection.failed.authentication.delay.ms": 100,
}


class _Stage:
    """Broker that receives the inputs; replaced at intervals."""

    def __init__(self) -> None:
        self._broker: SteppedBroker | None = None
        self._inputs = 0
        self.principals: set[str] = set()

    def broker(self) -> SteppedBroker:
        """Return a broker with the user."""
        self._inputs += 1
        if self._inputs % _INPUTS_PER_BROKER == 0:
            self.finish()
        if self._broker is None:
            directory = workspace("sasl_server") / "data"
            shutil.rmtree(directory, ignore_errors=True)
            credential = UserScramCredentialRecord(
                name=_USER.decode(),
                mechanism=_SCRAM.code,
                salt=_SALT,
                stored_key=_KEYS.stored_key,
                server_key=_KEYS.server_key,
                iterations=4096,
            )
            options = FormatOptions(
                cluster_id="cluster-of-the-test-22",
                node_id=1,
                directories=[directory],
                credentials=[credential],
            )
            format_storage(system_runtime(), options)
            self._broker = SteppedBroker(directory, **_SETTINGS)
            self._broker.server.intercept(self._note)
        self.principals.clear()
        return self._broker

    def _note(self, request: Request, handle: Callable[[Request], None]) -> None:
        self.principals.add(str(request.principal))
        handle(request)

    def finish(self) -> None:
        """Stop the broker."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None


_STAGE = _Stage()


def run(stream: bytes) -> None:
    """Send a client's byte stream to the broker."""
    frames = expected_frames(stream, _MAX_SIZE)
    if len(frames) > _MAX_FRAMES:
        return
    broker = _STAGE.broker()
    line = broker.connect()
    responses: list[bytes] = []
    for frame in frames:
        line.send(framed(_completed(frame, responses)))
        broker.pass_time()
        responses += line.received()
    line.send(stream[sum(len(frame) + 4 for frame in frames) :])
    broker.pass_time()
    responses += line.received()
    _check_principals(stream)
    assert len(responses) <= len(frames)
    other = broker.connect()
    _log_in(other)
    broker.pass_time(_LONG_MS)
    assert not line.is_open or _STAGE.principals
    line.close()
    other.close()


def _check_principals(stream: bytes) -> None:
    """Check that nothing was handled for a client that has not shown a secret, and else is."""
    assert stream not in _ACCEPTED or _STAGE.principals
    if _GOOD not in stream and FINAL not in stream:
        assert not _STAGE.principals, f"requests of {_STAGE.principals}"
    assert _STAGE.principals <= {f"User:{_USER.decode()}"}


def _completed(frame: bytes, responses: list[bytes]) -> bytes:
    """Replace the token `FINAL` of a frame."""
    if FINAL not in frame:
        return frame
    server_first = _challenge(responses)
    if frame.startswith(FINAL):
        return _final(server_first) + frame[len(FINAL) :]
    try:
        header, position = decode_request_header(frame)
        request = REQUESTS[header.api_key].decode(frame[position:], header.api_version)
        if isinstance(request, SaslAuthenticateRequest):
            token = bytes(request.auth_bytes).replace(FINAL, _final(server_first), 1)
            changed = SaslAuthenticateRequest(auth_bytes=token)
            return frame[:position] + changed.encode_bytes(header.api_version)
    except KafkaError:
        return frame
    return frame


def _challenge(responses: list[bytes]) -> bytes:
    """Return the last server-first message, in a response or bare."""
    for frame in reversed(responses):
        start = frame.find(b"r=" + NONCE)
        if start >= 0:
            end = frame.find(b",i=4096", start)
            return frame[start : end + len(b",i=4096")]
    return b""


def _final(server_first: bytes) -> bytes:
    nonce = server_first[2:].partition(b",")[0]
    without = b"c=biws,r=" + nonce
    signed = b",".join((_FIRST[3:], server_first, without))
    signature = hmac.digest(_KEYS.stored_key, signed, hashlib.sha256)
    proof = bytes(a ^ b for a, b in zip(_KEYS.client_key, signature, strict=True))
    return b"%s,p=%s" % (without, base64.b64encode(proof))


def _log_in(line: Line) -> None:
    """Authenticate another client, which has a response to each request."""
    (frame,) = line.ask(_request(SaslHandshakeRequest(mechanism="PLAIN"), 1))
    assert decode_response(frame, SaslHandshakeResponse, 1)[1].error_code == 0
    (frame,) = line.ask(_request(SaslAuthenticateRequest(auth_bytes=_GOOD), 2))
    assert decode_response(frame, SaslAuthenticateResponse, 2)[1].error_code == 0
    (frame,) = line.ask(_request(ApiVersionsRequest(), 0))
    assert decode_response(frame, ApiVersionsResponse, 0)[1].error_code == 0


def _request(request: object, version: int, number: int = 1) -> bytes:
    return joined(encode_request(request, version, number, "fuzz"))  # type: ignore[arg-type]


def _handshake(mechanism: str, version: int = 1) -> bytes:
    return _request(SaslHandshakeRequest(mechanism=mechanism), version, 2)


def _token(token: bytes, version: int = 2) -> bytes:
    return _request(SaslAuthenticateRequest(auth_bytes=token), version, 3)


_VERSIONS = _request(
    ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, 1
)
_METADATA = _request(MetadataRequest(topics=[]), 12, 4)
_PLAIN = (_handshake("PLAIN"), _token(_GOOD))
_SCRAM_EXCHANGE = (_handshake(_SCRAM.name), _token(_FIRST), _token(FINAL))

# The first five are those of clients that show a secret.
_EXCHANGES: tuple[tuple[bytes, ...], ...] = (
    (_VERSIONS, *_PLAIN, _METADATA),
    (_VERSIONS, *_SCRAM_EXCHANGE, _METADATA),
    (_handshake("PLAIN", 0), _GOOD, _METADATA),
    (_handshake(_SCRAM.name, 0), _FIRST, FINAL, _METADATA),
    (*_PLAIN, _METADATA, *_PLAIN, _METADATA),
    (*_PLAIN, *_SCRAM_EXCHANGE),
    (_handshake("PLAIN"), _token(b"\0alice\0wrong"), _METADATA),
    (_handshake("PLAIN"), _token(b"bob" + _GOOD), _METADATA),
    (_handshake(_SCRAM.name), _token(_FIRST.replace(b"n,,", b"n,a=bob,")), _METADATA),
    (_handshake(_SCRAM.name), _token(_FIRST.replace(b"alice", b"mallory")), _token(FINAL)),
    (_handshake(_SCRAM.name), _token(_FIRST), _token(FINAL + b",x=y"), _METADATA),
    (_handshake("CRAM-MD5"), _token(_GOOD)),
    (_METADATA, *_PLAIN),
    (_handshake("PLAIN"), _METADATA, _token(_GOOD)),
)

_ACCEPTED = {b"".join(map(framed, exchange)) for exchange in _EXCHANGES[:5]}


def seeds() -> Iterator[bytes]:
    """Yield exchanges with each mechanism, complete, wrong and repeated."""
    for exchange in _EXCHANGES:
        yield b"".join(map(framed, exchange))
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield bytes.fromhex("160301020001000100")
    yield framed(bytes(_MAX_SIZE)) + framed(_GOOD)
    yield (_MAX_SIZE + 1).to_bytes(4) + b"x"


_TOKENS = (_GOOD, _FIRST, FINAL, b"n,a=alice,n=alice,r=x", b"c=biws,r=x,p=YQ==", b"\0\0\0")
_MUTATOR = MessageMutator(("PLAIN", _SCRAM.name, "alice"), contents=_TOKENS)
_KINDS = (SaslHandshakeRequest, SaslAuthenticateRequest, ApiVersionsRequest, MetadataRequest)


def mutate(stream: bytes, random: Random) -> bytes:
    """Change, repeat, remove or exchange a frame, or change random bytes."""
    frames = expected_frames(stream, _MAX_SIZE)
    if not frames or random.random() < 0.05:
        return spoil(stream, random)
    place = random.randrange(len(frames))
    action = random.random()
    if action < 0.1:
        frames.insert(random.randrange(len(frames) + 1), frames[place])
    elif action < 0.2:
        del frames[place]
    elif action < 0.3:
        frames[place] = random.choice(random.choice(_EXCHANGES))
    else:
        frames[place] = _mutated(frames[place], random)
    return b"".join(map(framed, frames))


def _mutated(frame: bytes, random: Random) -> bytes:
    if random.random() < 0.1:
        kind = random.choice(_KINDS)
        version = random.choice(list(kind.valid_versions))
        front = decode_request_header(_request(kind(), version))[1]
        return _request(kind(), version)[:front] + _MUTATOR.made(kind, version, random)
    try:
        header, position = decode_request_header(frame)
        request = REQUESTS[header.api_key]
        body = _MUTATOR.mutated(request, header.api_version, frame[position:], random)
    except KafkaError:
        return spoil(frame, random)
    return frame[:position] + body


TARGET = Target(run, seeds, mutate, lambda size: 24 * MEBIBYTE + 60 * size, _STAGE.finish)
