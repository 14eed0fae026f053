"""Responses of all APIs and versions, and all messages that are stored.

An input begins with the numbers of the message and its version.
"""

import struct
from collections.abc import Iterator
from random import Random

from kclient.protocol.headers import decode_response, encode_response
from kclient.protocol.message import Message, Request, Response
from kclient.protocol.registry import REQUESTS
from tests.fuzz.message_mutation import MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.round_trip import decode_and_return, memory_of_decoding
from tests.fuzz.target import Target
from tests.protocol.catalogue import MESSAGES
from tests.protocol.samples import full
from tests.support.clients.wire import joined

_HEAD = struct.Struct(">hh")
_STORED_BASE = 1000
_STORED = [kind for kind in MESSAGES if not issubclass(kind, Request | Response)]
_KINDS: dict[int, type[Message]] = {
    **{int(key): request.response_type for key, request in REQUESTS.items()},
    **{_STORED_BASE + index: kind for index, kind in enumerate(_STORED)},
}
_MUTATOR = MessageMutator()


def run(data: bytes) -> None:
    """Decode a message as a client or a broker does."""
    if len(data) < _HEAD.size:
        return
    number, version = _HEAD.unpack_from(data)
    kind = _KINDS.get(number)
    if kind is None:
        return
    body = memoryview(data)[_HEAD.size :]
    with refusals():
        kind.check_version(version)
        if issubclass(kind, Response):
            decode_response(body, kind, version)
            position = len(body) - len(_body_of(kind, body, version))
            decode_and_return(kind, body[position:], version)
        else:
            decode_and_return(kind, body, version)


def _body_of(kind: type[Response], frame: memoryview, version: int) -> memoryview:
    """Return a response without its header."""
    header = len(joined(encode_response(kind(), version, 0))) - len(kind().encode_bytes(version))
    return frame[header:]


def seeds() -> Iterator[bytes]:
    """Yield each message, empty and with all fields."""
    for number, kind in _KINDS.items():
        for version in range(kind.min_version, kind.max_version + 1):
            for message in (kind(), full(kind, version)):
                yield _HEAD.pack(number, version) + _encoded(message, version)


def _encoded(message: Message, version: int) -> bytes:
    if isinstance(message, Response):
        return joined(encode_response(message, version, 1))
    return message.encode_bytes(version)


def mutate(data: bytes, random: Random) -> bytes:
    """Change the body as a message, rarely other bytes."""
    if len(data) < _HEAD.size or random.random() < 0.05:
        return spoil(data, random)
    number, version = _HEAD.unpack_from(data)
    kind = _KINDS.get(number)
    if kind is None or version not in kind.valid_versions or random.random() < 0.05:
        number, kind = random.choice(list(_KINDS.items()))
        version = random.randint(kind.min_version, kind.max_version)
    body = data[_HEAD.size :]
    if issubclass(kind, Response):
        rest = bytes(_body_of(kind, memoryview(body), version))
        header = body[: len(body) - len(rest)]
    else:
        rest, header = body, b""
    rest = _MUTATOR.mutated(kind, version, rest, random)
    return _HEAD.pack(number, version) + header + rest


TARGET = Target(run, seeds, mutate, memory_of_decoding)
