"""Every response that a producer or a consumer gets, given to real ones in a virtual world.

An input says who asks, which API is lied about, at which of its requests, and with what body. The
application hears of nothing but KafkaErrors, no call takes longer than it may, and no client spins.
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
"""Makes a call, which may be refused, but must not take long."""

Application = Callable[[VirtualProcess, Timed], None]


def run(data: bytes) -> None:
    """Let an application talk to a broker that lies."""
    if len(data) < _HEAD.size:
        return
    who, api, when = _HEAD.unpack_from(data)
    with suppress(ValueError):
        _play(_APPLICATIONS[who % len(_APPLICATIONS)], ApiKey(api), data[_HEAD.size :], when)


def _play(
    application: Application, lie_about: ApiKey | None, body: bytes, when: int
) -> HostileBroker:
    with VirtualWorld(1, latency_ms=(1.0, 1.0), switch_probability=0.0) as world:
        broker = HostileBroker(world, lie_about, body, when)
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
def _honest(who: int) -> dict[ApiKey, tuple[int, bytes]]:
    """Return the version and the body of what an honest broker answers, by API."""
    return _play(_APPLICATIONS[who], None, b"", 0).told


def seeds() -> Iterator[bytes]:
    """Yield each honest answer, given once, to all and to every other request."""
    for who in range(len(_APPLICATIONS)):
        for api, (version, body) in _honest(who).items():
            empty = REQUESTS[api].response_type().encode_bytes(version)
            for when, content in ((0xFF, body), (0x01, empty), (0xFE, empty), (0x02, b"")):
                yield _HEAD.pack(who, api, when) + content


def _records(random: Random) -> bytes:
    batch = made_batch(random)
    return mutate_batches(batch, random) if random.random() < 0.7 else batch


_MUTATOR = MessageMutator(("g", "member-1", *ADDRESS[:1]), _records)


def mutate(data: bytes, random: Random) -> bytes:
    """Change the answer as a message, sometimes when it is given."""
    if len(data) < _HEAD.size or random.random() < 0.02:
        return spoil(data, random)
    who, api, when = _HEAD.unpack_from(data)
    if random.random() < 0.2:
        when = random.choice((0x01, 0x02, 0x03, 0x0E, 0x55, 0xFF))
    known = _honest(who % len(_APPLICATIONS))
    if api not in known:
        api = random.choice(list(known))
    version = known[ApiKey(api)][0]
    response = REQUESTS[api].response_type
    body = _MUTATOR.mutated(response, version, data[_HEAD.size :], random)
    return _HEAD.pack(who, api, when) + body


# The world and the clients themselves take most of it.
TARGET = Target(run, seeds, mutate, lambda size: 32 * MEBIBYTE + 60 * size)
