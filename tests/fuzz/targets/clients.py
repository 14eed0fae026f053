"""Responses to producers and consumers, received by real clients in a virtual world.

An input selects the client, the API with forged responses, the requests that get them, and their
body. The application sees only KafkaErrors, calls end within their timeouts, and clients do not
send requests in a busy loop.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from random import Random
from typing import Any

from kclient import Consumer, Producer, TopicPartition
from kclient.producer import DeliveryFuture
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.registry import REQUESTS
from kclient.testing.virtual import SimulationError, VirtualProcess, VirtualWorld
from tests.fuzz.batch_mutation import made_batch, mutate_batches
from tests.fuzz.hostile_broker import ADDRESS, TOPIC, HostileBroker
from tests.fuzz.message_mutation import MessageMutator
from tests.fuzz.mutation import spoil
from tests.fuzz.oracle import refusals
from tests.fuzz.target import MEBIBYTE, Target

_HEAD = struct.Struct(">BBB")
_SERVERS = f"{ADDRESS[0]}:{ADDRESS[1]}"
_CALL_SECONDS = 1.0
_SLACK_SECONDS = 0.5
_POLLS = 8
_MAX_REQUESTS = 600
_RUN_MS = 600_000.0

Timed = Callable[[Callable[[], object]], None]
"""Run a call, which may fail but must end within its timeout."""

Application = Callable[[VirtualProcess, Timed], None]


def run(data: bytes) -> None:
    """Run an application against a broker with forged responses."""
    if len(data) < _HEAD.size:
        return
    who, api, when = _HEAD.unpack_from(data)
    with suppress(ValueError):
        _play(_APPLICATIONS[who % len(_APPLICATIONS)], ApiKey(api), data[_HEAD.size :], when)


def _play(
    application: Application, forged_api: ApiKey | None, body: bytes, when: int
) -> HostileBroker:
    with VirtualWorld(1, latency_ms=(1.0, 1.0), switch_probability=0.0) as world:
        broker = HostileBroker(world, forged_api, body, when)
        world.net.peers[ADDRESS] = lambda: broker
        process = world.machine("app").process("app")

        def timed(call: Callable[[], object]) -> None:
            before_ms = world.clock.monotonic_ms()
            with refusals():
                call()
            taken = (world.clock.monotonic_ms() - before_ms) / 1000
            assert taken <= _CALL_SECONDS + _SLACK_SECONDS, f"a call took {taken} s"

        task = process.spawn("main", lambda: application(process, timed))
        try:
            world.run(until=lambda: task.over, timeout_ms=_RUN_MS)
        except SimulationError as verdict:
            raise AssertionError(f"{type(verdict).__name__}: {verdict}") from verdict
        assert len(broker.asked) <= _MAX_REQUESTS, f"{len(broker.asked)} requests"
    return broker


def _consumer(process: VirtualProcess, **options: Any) -> Consumer:
    return Consumer(
        bootstrap_servers=_SERVERS,
        runtime=process.runtime,
        auto_offset_reset="earliest",
        default_api_timeout_ms=1000,
        request_timeout_ms=800,
        **options,
    )


def _read(consumer: Consumer, timed: Timed) -> None:
    for _ in range(_POLLS):
        timed(lambda: consumer.poll(_CALL_SECONDS))
    for partition in consumer.assignment():
        timed(partial(consumer.committed, [partition]))
        timed(partial(consumer.end_offsets, [partition]))
        timed(partial(consumer.offsets_for_times, {partition: 1005}))
        timed(partial(consumer.position, partition))
    timed(lambda: consumer.poll(_CALL_SECONDS))
    timed(lambda: consumer.commit(timeout=_CALL_SECONDS))
    timed(lambda: consumer.close(timeout=_CALL_SECONDS))


def _member(process: VirtualProcess, timed: Timed) -> None:
    consumer = _consumer(process, group_id="g", session_timeout_ms=6000)
    consumer.subscribe([TOPIC])
    _read(consumer, timed)


def _reader(process: VirtualProcess, timed: Timed) -> None:
    consumer = _consumer(process, isolation_level="read_committed")
    with refusals():
        consumer.assign([TopicPartition(TOPIC, 0)])
    _read(consumer, timed)


def _producer(process: VirtualProcess, timed: Timed) -> None:
    producer = Producer(
        bootstrap_servers=_SERVERS,
        runtime=process.runtime,
        max_block_ms=1000,
        linger_ms=1,
        request_timeout_ms=800,
        delivery_timeout_ms=900,
    )
    futures: list[DeliveryFuture] = []
    for _ in range(4):
        timed(lambda: futures.append(producer.send(TOPIC, b"value")))
        timed(lambda: producer.partitions_for(TOPIC))
    timed(lambda: producer.flush(_CALL_SECONDS))
    for future in futures:
        timed(partial(future.result, _CALL_SECONDS))
    timed(lambda: producer.close(_CALL_SECONDS))
    assert all(future.done() for future in futures)


_APPLICATIONS: tuple[Application, ...] = (_member, _reader, _producer)


# --- inputs


@cache
def _valid_bodies(who: int) -> dict[ApiKey, tuple[int, bytes]]:
    """Return version and body of the valid responses, by API."""
    return _play(_APPLICATIONS[who], None, b"", 0).valid_bodies


def seeds() -> Iterator[bytes]:
    """Yield each valid response, used once, for all and for every other request."""
    for who in range(len(_APPLICATIONS)):
        for api, (version, body) in _valid_bodies(who).items():
            empty = REQUESTS[api].response_type().encode_bytes(version)
            for when, content in ((0xFF, body), (0x01, empty), (0xFE, empty), (0x02, b"")):
                yield _HEAD.pack(who, api, when) + content


def _records(random: Random) -> bytes:
    batch = made_batch(random)
    return mutate_batches(batch, random) if random.random() < 0.7 else batch


_MUTATOR = MessageMutator(("g", "member-1", *ADDRESS[:1]), _records)


def mutate(data: bytes, random: Random) -> bytes:
    """Change the response as a message, sometimes the selected requests."""
    if len(data) < _HEAD.size or random.random() < 0.02:
        return spoil(data, random)
    who, api, when = _HEAD.unpack_from(data)
    if random.random() < 0.2:
        when = random.choice((0x01, 0x02, 0x03, 0x0E, 0x55, 0xFF))
    known = _valid_bodies(who % len(_APPLICATIONS))
    if api not in known:
        api = random.choice(list(known))
    version = known[ApiKey(api)][0]
    response = REQUESTS[api].response_type
    body = _MUTATOR.mutated(response, version, data[_HEAD.size :], random)
    return _HEAD.pack(who, api, when) + body


# Mostly memory of the world and the clients.
TARGET = Target(run, seeds, mutate, lambda size: 32 * MEBIBYTE + 60 * size)
