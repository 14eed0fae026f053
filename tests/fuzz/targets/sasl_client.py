"""SASL exchanges of a client with a hostile broker, and the renewal of the session.

The first byte of an input selects the mechanism, the second the size of the pieces in which the
bytes arrive; the others are the frames of the broker. The client is authenticated by SCRAM only if
the broker has proved that it knows the password, and the password of SCRAM is never sent.
"""

import base64
import hashlib
import hmac
import struct
from collections.abc import Callable, Iterator
from random import Random

from kclient.common.errors import KafkaError
from kclient.common.secret import Secret
from kclient.network.sasl.client_authenticator import SaslClientAuthenticator
from kclient.network.sasl.credentials import FixedCredentials, OAuthBearerToken, UserCredentials
from kclient.network.sasl.mechanism import SaslClient
from kclient.network.sasl.oauthbearer import OAuthBearerSaslClient
from kclient.network.sasl.plain import PlainSaslClient
from kclient.network.sasl.scram import SCRAM_MECHANISMS, ScramKeys, ScramSaslClient
from kclient.protocol.headers import decode_response, encode_response
from kclient.protocol.message import Response
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from tests.fuzz.message_mutation import MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import CANARY, MEBIBYTE, Target
from tests.fuzz.targets.frames import expected_frames, framed
from tests.support.clients.memory_transport import MemoryTransport
from tests.support.clients.wire import joined
from tests.support.virtual.virtual_home import VirtualHome

_HOME = VirtualHome()
_SCRAM = SCRAM_MECHANISMS["SCRAM-SHA-256"]
_PASSWORD = Secret(CANARY.decode())
_USER = "alice"
_NONCE = "nonceOfTheClient"
_CREDENTIALS = FixedCredentials(UserCredentials(_USER, _PASSWORD))
_FIRST_ID = 2**31 - 8
_LIFETIME_MS = 1000
_MAX_SIZE = 512 * 1024
_MAX_STEPS = 200_000


def _salted(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return a salted password that takes no time; iterations are those of the input."""
    return hmac.digest(password, salt + b"%d" % iterations, hash_name)


def _scram() -> ScramSaslClient:
    return ScramSaslClient(_SCRAM, _USER, _PASSWORD, _salted, lambda: _NONCE)


def _token() -> OAuthBearerSaslClient:
    return OAuthBearerSaslClient(OAuthBearerToken(_PASSWORD, 9e12, {}))


_MECHANISMS: tuple[Callable[[], SaslClient], ...] = (
    _scram,
    lambda: PlainSaslClient(_USER, _PASSWORD),
    _token,
)


def run(data: bytes) -> None:
    """Authenticate at a broker that sends the frames."""
    if len(data) < 2:
        return
    new_client = _MECHANISMS[data[0] % len(_MECHANISMS)]
    transport = MemoryTransport(1 + data[1] if data[1] < 40 else 1 << 20)
    authenticator = SaslClientAuthenticator(
        "1", transport, new_client, _CREDENTIALS, "c", _HOME.runtime
    )
    stream, renewals = data[2:], 0
    with refusals():
        left = _authenticate(authenticator, transport, stream)
        if authenticator.complete():
            _check_proof(new_client, stream[: len(stream) - len(left)])
            renewals = _renew(authenticator, transport, left)
    assert data not in _GOOD or (authenticator.complete() and renewals == 1)
    if new_client is _scram:
        assert CANARY not in transport.sent
    authenticator.close()
    authenticator.close()


def _authenticate(
    authenticator: SaslClientAuthenticator, transport: MemoryTransport, stream: bytes
) -> bytes:
    """Run the first exchange; return what the client has not read."""
    transport.received = stream
    for _ in range(_MAX_STEPS):
        before = len(transport.received)
        authenticator.authenticate()
        if authenticator.complete():
            return transport.received
        if len(transport.received) == before and not authenticator.wants_write():
            return b""
    raise AssertionError("the exchange does not end")


def _check_proof(new_client: Callable[[], SaslClient], stream: bytes) -> None:
    """Check the signature of the server, if the mechanism has one."""
    if new_client is _scram:
        server_first, server_final = [
            bytes(decode_response(frame, SaslAuthenticateResponse, _version(stream))[1].auth_bytes)
            for frame in expected_frames(stream, _MAX_SIZE)[2:4]
        ]
        assert server_final.startswith(b"v=")
        sent = base64.b64decode(server_final[2:].partition(b",")[0])  # its last bits are unused
        assert sent == _signature(server_first), server_final


def _version(stream: bytes) -> int:
    """Return the version of SaslAuthenticate that the client has chosen."""
    _, versions = decode_response(expected_frames(stream, _MAX_SIZE)[0], ApiVersionsResponse, 0)
    offered = {row.api_key: row.max_version for row in versions.api_keys}
    return min(2, offered[36])


def _signature(server_first: bytes) -> bytes:
    nonce, salt, iterations = (part[2:] for part in server_first.split(b",")[:3])
    salted = _salted(_SCRAM.hash_name, CANARY, base64.b64decode(salt), int(iterations))
    keys = ScramKeys.of(_SCRAM.hash_name, salted)
    bare = f"n={_USER},r={_NONCE}".encode()
    signed = b",".join((bare, server_first, b"c=biws,r=" + nonce))
    return hmac.digest(keys.server_key, signed, hashlib.sha256)


def _renew(
    authenticator: SaslClientAuthenticator, transport: MemoryTransport, stream: bytes
) -> int:
    """Run further exchanges with the remaining frames, as a channel does; return how many."""
    renewals = 0
    for frame in expected_frames(stream, _MAX_SIZE):
        if not authenticator.reauthenticating:
            _HOME.sleep(_LIFETIME_MS)
            if not authenticator.must_reauthenticate():
                return renewals
            authenticator.start_reauthentication()
        while authenticator.wants_write():
            authenticator.write()
        authenticator.handle_response(memoryview(frame))
        renewals += not authenticator.reauthenticating
    return renewals


# --- inputs


def _response(response: Response, version: int, number: int) -> bytes:
    return framed(joined(encode_response(response, version, _FIRST_ID + number % 8)))


def _offer(most: int = 2) -> bytes:
    rows = [
        ApiVersion(api_key=key, min_version=0, max_version=last)
        for key, last in ((17, 1), (18, 4), (36, most))
    ]
    return _response(ApiVersionsResponse(api_keys=rows), 0, 0)


def _shake(mechanism: str, number: int = 1) -> bytes:
    return _response(SaslHandshakeResponse(mechanisms=[mechanism]), 1, number)


def _reply(token: bytes, number: int, version: int = 2, lifetime_ms: int = _LIFETIME_MS) -> bytes:
    return _response(
        SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms), version, number
    )


_SERVER_FIRST = f"r={_NONCE}andOfTheServer,s={base64.b64encode(b'salt').decode()},i=4096".encode()
_SERVER_FINAL = b"v=" + base64.b64encode(_signature(_SERVER_FIRST))
_REFUSED = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")
_CHALLENGES = (
    _SERVER_FIRST,
    _SERVER_FINAL,
    b"e=invalid-proof",
    b'{"status":"invalid_token"}',
    _SERVER_FIRST.replace(b"4096", b"2147483647"),
    _SERVER_FIRST.replace(b"4096", b"-1"),
    _SERVER_FIRST.replace(_NONCE.encode(), b"x"),
    b"m=ext," + _SERVER_FIRST,
    b"",
)


def _good(who: int, number: int = 1) -> bytes:
    """Return the responses of a good exchange after the versions."""
    if who == 0:
        first, final = _reply(_SERVER_FIRST, number + 1), _reply(_SERVER_FINAL, number + 2)
        return _shake(_SCRAM.name, number) + first + final
    return _shake(("", "PLAIN", "OAUTHBEARER")[who], number) + _reply(b"", number + 1)


_GOOD = {
    bytes([who, piece]) + _offer() + _good(who) + _good(who, 4 if who == 0 else 3)
    for who in range(len(_MECHANISMS))
    for piece in (0, 255)
}


def seeds() -> Iterator[bytes]:
    """Yield good exchanges with renewals, refusals, and servers that break the protocol."""
    yield from sorted(_GOOD)
    for who in range(len(_MECHANISMS)):
        for piece in (0, 255):
            front = bytes([who, piece]) + _offer()
            yield front + _shake("x") + _response(_REFUSED, 2, 2)
            for challenge in _CHALLENGES:
                yield front + _shake("x") + _reply(challenge, 2) + _reply(challenge, 3)
                yield front + _shake("x") + _reply(_SERVER_FIRST, 2) + _reply(challenge, 3)
        yield bytes([who, 255]) + _offer(0) + _shake("x") + _reply(_SERVER_FIRST, 2, 0)
    yield b"\0\xff" + struct.pack(">i", _MAX_SIZE + 1)
    yield b"\0\xffHTTP/1.1 400 Bad Request\r\n\r\n"


_MUTATOR = MessageMutator(("PLAIN", _SCRAM.name), contents=_CHALLENGES)


def mutate(data: bytes, random: Random) -> bytes:
    """Change, repeat or remove a frame, or change random bytes."""
    frames = expected_frames(data[2:], _MAX_SIZE)
    if not frames or random.random() < 0.1:
        return spoil(data, random)
    place = random.randrange(len(frames))
    action = random.random()
    if action < 0.1:
        frames.insert(random.randrange(len(frames) + 1), frames[place])
    elif action < 0.15:
        del frames[place]
    else:
        frames[place] = _mutated(frames[place], place, random)
    options = random.randbytes(2) if random.random() < 0.1 else data[:2]
    return options + b"".join(map(framed, frames))


def _mutated(frame: bytes, place: int, random: Random) -> bytes:
    """Change a response; the first is that to ApiVersions, the second that to SaslHandshake."""
    if place == 0:
        return frame[:4] + _MUTATOR.mutated(ApiVersionsResponse, 0, frame[4:], random)
    if place == 1:
        return frame[:4] + _MUTATOR.mutated(SaslHandshakeResponse, 1, frame[4:], random)
    try:
        _, response = decode_response(frame, SaslAuthenticateResponse, 2)
    except KafkaError:
        return spoil(frame, random)
    if random.random() < 0.5:
        response.auth_bytes = spoil(bytes(response.auth_bytes), random)
        return frame[:5] + response.encode_bytes(2)
    return frame[:5] + _MUTATOR.mutated(SaslAuthenticateResponse, 2, frame[5:], random)


TARGET = Target(run, seeds, mutate, lambda size: MEBIBYTE + 60 * size)
