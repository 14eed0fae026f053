"""Requests of all APIs and versions, sent to a running broker.

An input is a byte stream of a client: frames after their sizes. The broker sends a valid response
to each or closes the connection; another connection is served as before.
"""

import shutil
from collections.abc import Iterator
from random import Random

from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
)
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from kclient.protocol.registry import REQUESTS
from tests.fuzz.batch_mutation import made_batch, mutate_batches, plain_batch
from tests.fuzz.message_mutation import TOPIC, MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.stepped_broker import Line, SteppedBroker
from tests.fuzz.target import MEBIBYTE, Target
from tests.fuzz.targets.frames import expected_frames, framed
from tests.fuzz.workspace import workspace
from tests.support.clients.requests import filled_request, plain_request
from tests.support.clients.wire import joined
from tests.support.virtual.controller_calls import assert_created

_MAX_FRAMES = 8
_INPUTS_PER_BROKER = 200
_MAX_PARTITIONS = 20
_LONG_MS = 120_000.0
_PROBE = joined(encode_request(ApiVersionsRequest(), 0, 99, None))
_SUBSCRIPTION = bytes.fromhex("000000000001000666757a7a656400000000")


class _Stage:
    """Broker that receives the inputs; replaced at intervals, since topics accumulate."""

    def __init__(self) -> None:
        self._broker: SteppedBroker | None = None
        self._inputs = 0

    def broker(self) -> SteppedBroker:
        """Return a broker with the topic."""
        self._inputs += 1
        if self._inputs % _INPUTS_PER_BROKER == 0:
            self.finish()
        if self._broker is None:
            directory = workspace("broker") / "data"
            shutil.rmtree(directory, ignore_errors=True)
            self._broker = SteppedBroker(directory)
        if TOPIC not in self._broker.server.services.metadata.image.topics:
            self._broker.server.services.topic_creation.create([TOPIC], assert_created)
        return self._broker

    def finish(self) -> None:
        """Stop the broker; check that a new one can start on its data."""
        if self._broker is not None:
            self._broker.stop()
            SteppedBroker(workspace("broker") / "data").stop()
            self._broker = None

    def topic_id(self) -> bytes:
        """Return the present id of the topic."""
        return self.broker().server.services.metadata.image.topics[TOPIC].topic_id


_STAGE = _Stage()


def run(stream: bytes) -> None:
    """Send a client's byte stream to the broker."""
    frames = expected_frames(stream, 1 << 20)
    if len(frames) > _MAX_FRAMES or any(_is_costly(frame) for frame in frames):
        return
    broker = _STAGE.broker()
    line, other = broker.connect(), broker.connect()
    line.send(stream)
    broker.pass_time()
    _check_responses(line, frames)
    _check_served(other)
    broker.pass_time(_LONG_MS)
    line.close()
    late = broker.connect()
    _check_served(late)
    late.close()
    other.close()


def _is_costly(frame: bytes) -> bool:
    """Return whether a request is valid but takes long."""
    try:
        header, position = decode_request_header(frame)
        request = REQUESTS[header.api_key].decode(frame[position:], header.api_version)
    except KafkaError:
        return False
    if isinstance(request, CreateTopicsRequest):
        counts = [topic.num_partitions for topic in request.topics]
    elif isinstance(request, CreatePartitionsRequest):
        counts = [topic.count for topic in request.topics]
    else:
        return False
    return max(counts, default=0) > _MAX_PARTITIONS


def _check_responses(line: Line, frames: list[bytes]) -> None:
    """Match responses with requests in order; a missing response may be delayed."""
    asked = iter(frames)
    for response in line.received():
        correlation_id = int.from_bytes(response[:4], signed=True)
        for frame in asked:
            header, _ = decode_request_header(frame)
            if header.correlation_id == correlation_id:
                break
            assert header.api_key is ApiKey.PRODUCE, f"{header} has no response"
        else:
            raise AssertionError(f"unsolicited response: {response!r:.200}")
        _check_response(header, response)


def _check_response(header: RequestHeader, frame: bytes) -> None:
    request = REQUESTS[header.api_key]
    version = header.api_version if header.api_version in request.valid_versions else 0
    _, response = decode_response(frame, request.response_type, version)
    assert repr(response)


def _check_served(line: Line) -> None:
    (frame,) = line.ask(_PROBE)
    correlation_id, response = decode_response(frame, ApiVersionsResponse, 0)
    assert correlation_id == 99
    assert response.error_code == 0


def seeds() -> Iterator[bytes]:
    """Yield each request in each version, empty and with the topic, and sequences of them."""
    topic_id = _STAGE.topic_id()
    random = Random(2)
    for key, api in sorted(API_TABLE.items()):
        for version in api.versions:
            kind = REQUESTS[key]
            for request in (
                plain_request(kind, version),
                _meant(filled_request(kind, version, TOPIC, topic_id), random),
            ):
                yield framed(joined(encode_request(request, version, 1, "fuzz")))
    _STAGE.finish()


def _meant(request: Request, random: Random) -> Request:
    """Return a request that names existing objects."""
    if isinstance(request, ProduceRequest):
        request.topic_data[0].partition_data[0].index = 0
        request.topic_data[0].partition_data[0].records = plain_batch()
    return request


def _records(random: Random) -> bytes:
    batch = made_batch(random)
    return mutate_batches(batch, random) if random.random() < 0.5 else batch


_MUTATOR = MessageMutator(("1", "compact"), _records, (_SUBSCRIPTION,))


def mutate(stream: bytes, random: Random) -> bytes:
    """Change one request as a message, add one, or change random bytes."""
    frames = expected_frames(stream, 1 << 20)
    if not frames or random.random() < 0.05:
        return spoil(stream, random)
    place = random.randrange(len(frames))
    if random.random() < 0.15 and len(frames) < _MAX_FRAMES:
        frames.append(_new_frame(random, len(frames) + 1))
    else:
        frames[place] = _mutated_frame(frames[place], random)
    return b"".join(map(framed, frames))


def _new_frame(random: Random, number: int) -> bytes:
    key, api = random.choice(sorted(API_TABLE.items()))
    version = random.choice(list(api.versions))
    request = REQUESTS[key]
    body = _MUTATOR.made(request, version, random)
    empty = joined(encode_request(plain_request(request, version), version, number, "fuzz"))
    header = decode_request_header(empty)[1]
    return empty[:header] + body


def _mutated_frame(frame: bytes, random: Random) -> bytes:
    try:
        header, position = decode_request_header(frame)
        request = REQUESTS[header.api_key]
        body = _MUTATOR.mutated(request, header.api_version, frame[position:], random)
    except KafkaError:
        return spoil(frame, random)
    return frame[:position] + body


# Groups, topics, producers and records that a request creates are kept.
TARGET = Target(run, seeds, mutate, lambda size: 24 * MEBIBYTE + 60 * size, _STAGE.finish)
