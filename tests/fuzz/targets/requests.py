"""Requests of all APIs and versions, as received frames with header."""

import struct
from collections.abc import Iterator
from random import Random

from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_request_header, encode_request
from kclient.protocol.message import Request
from kclient.protocol.registry import REQUESTS
from tests.fuzz.message_mutation import TOPIC, TOPIC_ID, MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.round_trip import decode_and_return, memory_of_decoding
from tests.fuzz.target import Target
from tests.protocol.samples import full
from tests.support.clients.requests import filled_request, plain_request
from tests.support.clients.wire import joined

_FRONT = struct.Struct(">hhi")
_MUTATOR = MessageMutator()


def run(frame: bytes) -> None:
    """Parse a frame as the broker does."""
    with refusals():
        header, position = decode_request_header(frame)
        request = REQUESTS[header.api_key]
        if header.api_key is ApiKey.API_VERSIONS and header.api_version > request.max_version:
            return  # accepted without reading the body, so that the broker can respond
        decode_and_return(request, memoryview(frame)[position:], header.api_version)


def seeds() -> Iterator[bytes]:
    """Yield each request: empty, with all fields, and as a client sends it."""
    for request in REQUESTS.values():
        for version in range(request.min_version, request.max_version + 1):
            made = full(request, version)
            assert isinstance(made, Request)
            filled = filled_request(request, version, TOPIC, TOPIC_ID)
            for message in (made, filled, plain_request(request, version)):
                yield joined(encode_request(message, version, 1, "fuzz"))


def mutate(frame: bytes, random: Random) -> bytes:
    """Change the body of a frame as a message, rarely other bytes."""
    if random.random() < 0.1:
        return spoil(frame, random)
    if random.random() < 0.05:
        return _another_version(frame, random)
    try:
        header, position = decode_request_header(frame)
    except KafkaError:
        return spoil(frame, random)
    request = REQUESTS[header.api_key]
    if header.api_version not in request.valid_versions:
        return _another_version(frame, random)
    body = _MUTATOR.mutated(request, header.api_version, frame[position:], random)
    return frame[:position] + body


def _another_version(frame: bytes, random: Random) -> bytes:
    request = random.choice(list(REQUESTS.values()))
    version = random.randint(request.min_version, request.max_version)
    return _FRONT.pack(request.api_key, version, 1) + frame[_FRONT.size :]


TARGET = Target(run, seeds, mutate, memory_of_decoding)
