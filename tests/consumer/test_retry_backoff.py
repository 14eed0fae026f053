"""Retry backoff of every API."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from kclient.common.errors import KafkaError
from kclient.consumer import Consumer
from kclient.protocol.api_keys import ApiKey
from kclient.testing.virtual import VirtualBroker, VirtualWorld
from tests.consumer.conftest import ORDERS_0, ConsumerWorld

_UNKNOWN_SERVER_ERROR = -1


_UNKNOWN_TOPIC_OR_PARTITION = 3


_NOT_LEADER_OR_FOLLOWER = 6


_COORDINATOR_LOAD_IN_PROGRESS = 14


_COORDINATOR_NOT_AVAILABLE = 15


_NOT_COORDINATOR = 16


_ILLEGAL_GENERATION = 22


_UNKNOWN_MEMBER_ID = 25


_REBALANCE_IN_PROGRESS = 27


_FENCED_LEADER_EPOCH = 74


_KAFKA_STORAGE_ERROR = 56


_UNKNOWN_LEADER_EPOCH = 75


_MEMBER_ID_REQUIRED = 79


_WATCHED_S = 30.0


# With retry.backoff.ms=100 and retry.backoff.max.ms=1000, with jitter: 7 in the first 2 s, then one
# per 0.8 s at most; and one immediate retry.
_MOST = 7 + 35 + 2


Work = Callable[[ConsumerWorld], None]


def keep_polling(world: ConsumerWorld, consumer: Consumer) -> None:
    deadline_ms = world.clock.now_ms + _WATCHED_S * 1000
    while world.clock.now_ms < deadline_ms:
        consumer.poll(0.05)


def join(world: ConsumerWorld) -> None:
    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders")
    keep_polling(world, consumer)


def stay(world: ConsumerWorld) -> None:
    consumer = world.subscribed(heartbeat_interval_ms=500, session_timeout_ms=120_000)
    keep_polling(world, consumer)


def fetch(world: ConsumerWorld) -> None:
    world.fill(3)
    keep_polling(world, world.assigned())


def commit_automatically(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned(group_id="g", auto_commit_interval_ms=200)
    world.read(consumer, 3)
    keep_polling(world, consumer)


def commit(world: ConsumerWorld) -> None:
    with pytest.raises(KafkaError):
        world.assigned(group_id="g").commit({ORDERS_0: 1}, timeout=_WATCHED_S)


def start(world: ConsumerWorld) -> None:
    keep_polling(world, world.assigned(group_id="g"))


def look_up(world: ConsumerWorld) -> None:
    with pytest.raises(KafkaError):
        world.consumer().end_offsets([ORDERS_0], timeout=_WATCHED_S)


def validate(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned()
    world.read(consumer, 3)
    world.broker.epoch += 1
    world.log().append(b"new")
    world.broker.arrived()
    keep_polling(world, consumer)


CASES: list[tuple[ApiKey, list[int], Work]] = [
    (
        ApiKey.JOIN_GROUP,
        [
            *(_COORDINATOR_LOAD_IN_PROGRESS, _COORDINATOR_NOT_AVAILABLE, _NOT_COORDINATOR),
            *(_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS),
            _MEMBER_ID_REQUIRED,
        ],
        join,
    ),
    (
        ApiKey.SYNC_GROUP,
        [
            *(_COORDINATOR_LOAD_IN_PROGRESS, _COORDINATOR_NOT_AVAILABLE, _NOT_COORDINATOR),
            *(_ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS),
        ],
        join,
    ),
    (
        ApiKey.HEARTBEAT,
        [_COORDINATOR_LOAD_IN_PROGRESS, _COORDINATOR_NOT_AVAILABLE, _NOT_COORDINATOR],
        stay,
    ),
    (
        ApiKey.FIND_COORDINATOR,
        [_COORDINATOR_LOAD_IN_PROGRESS, _COORDINATOR_NOT_AVAILABLE],
        join,
    ),
    (
        ApiKey.OFFSET_COMMIT,
        [_UNKNOWN_TOPIC_OR_PARTITION, _COORDINATOR_LOAD_IN_PROGRESS, _NOT_COORDINATOR],
        commit_automatically,
    ),
    (
        ApiKey.OFFSET_COMMIT,
        [_UNKNOWN_TOPIC_OR_PARTITION, _COORDINATOR_LOAD_IN_PROGRESS, _NOT_COORDINATOR],
        commit,
    ),
    (
        ApiKey.OFFSET_FETCH,
        [_COORDINATOR_LOAD_IN_PROGRESS, _COORDINATOR_NOT_AVAILABLE, _NOT_COORDINATOR],
        start,
    ),
    (ApiKey.LIST_OFFSETS, [_UNKNOWN_TOPIC_OR_PARTITION, _NOT_LEADER_OR_FOLLOWER], start),
    (ApiKey.LIST_OFFSETS, [_UNKNOWN_TOPIC_OR_PARTITION, _NOT_LEADER_OR_FOLLOWER], look_up),
    (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        [_NOT_LEADER_OR_FOLLOWER, _FENCED_LEADER_EPOCH],
        validate,
    ),
    (
        ApiKey.FETCH,
        [
            *(_UNKNOWN_TOPIC_OR_PARTITION, _NOT_LEADER_OR_FOLLOWER, _KAFKA_STORAGE_ERROR),
            *(_FENCED_LEADER_EPOCH, _UNKNOWN_LEADER_EPOCH, _UNKNOWN_SERVER_ERROR),
        ],
        fetch,
    ),
]


@pytest.mark.fault("R13")
@pytest.mark.parametrize(
    ("api", "code", "work"),
    [
        pytest.param(api, code, work, id=f"{api.name}-{code}-{work.__name__}")
        for api, codes, work in CASES
        for code in codes
    ],
)
def test_backoff_grows_for_every_api(
    world: ConsumerWorld, api: ApiKey, code: int, work: Work
) -> None:
    world.broker.fail(api, *[code] * 5_000)
    work(world)
    assert 15 <= world.broker.asked_for(api) <= _MOST
    assert world.broker.asked_for(ApiKey.FIND_COORDINATOR) <= _MOST
    assert world.broker.asked_for(ApiKey.METADATA) <= _MOST + 5


def fetch_times(world: ConsumerWorld, consumer: Consumer, count: int) -> list[float]:
    """Poll until the broker has received more fetches; return their times, milliseconds."""
    times: list[float] = []
    before = world.broker.asked_for(ApiKey.FETCH)
    deadline_ms = world.clock.now_ms + 20_000
    while len(times) < count:
        assert world.clock.now_ms < deadline_ms
        consumer.poll(0.01)
        received = world.broker.asked_for(ApiKey.FETCH) - before
        times += [world.clock.now_ms] * (received - len(times))
    return times


def test_fetch_backoff_resets_after_success(world: ConsumerWorld) -> None:
    world.fill(1)
    consumer = world.assigned(fetch_max_wait_ms=10)
    for _ in range(2):
        world.broker.fail(ApiKey.FETCH, *[_KAFKA_STORAGE_ERROR] * 5)
        times = fetch_times(world, consumer, 7)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert max(gaps) > 800
        assert gaps[0] < 300
        fetch_times(world, consumer, 3)


@pytest.mark.parametrize("code", [_UNKNOWN_SERVER_ERROR, 70, 71, 106])
def test_backoff_grows_for_failed_fetches(code: int) -> None:
    with VirtualWorld(seed=1, latency_ms=(0.1, 1.0)) as virtual:
        broker = VirtualBroker(virtual)
        process = virtual.machine("reader").process("reader")

        def read() -> None:
            with Consumer(
                bootstrap_servers=broker.bootstrap_servers, runtime=process.runtime
            ) as consumer:
                consumer.assign([ORDERS_0])
                until_ms = process.runtime.clock.monotonic_ms() + _WATCHED_S * 1000
                while process.runtime.clock.monotonic_ms() < until_ms:
                    consumer.poll(0.05)

        broker.faults.fail(ApiKey.FETCH, code, times=None)
        task = process.spawn("read", read)
        virtual.run(until=lambda: task.over, timeout_ms=60_000.0)
        fetches = [each for each in broker.faults.requests if each.api is ApiKey.FETCH]
        assert 15 <= len(fetches) <= _MOST


def test_backoff_grows_for_unwanted_assignments(
    world: ConsumerWorld,
) -> None:
    world.broker.add_topic("others")
    foreign = world.consumer(group_id="g")
    foreign.subscribe("others")
    world.poll_until(foreign, lambda: bool(foreign.assignment()))
    world.broker.group.given = world.broker.group.assignments["member-1"]
    foreign.close()
    before = world.broker.asked_for(ApiKey.JOIN_GROUP)
    join(world)
    assert world.broker.asked_for(ApiKey.JOIN_GROUP) - before <= _MOST


def heartbeat_gaps(world: ConsumerWorld, consumer: Consumer, count: int) -> list[float]:
    """Poll for some heartbeats; return the times between them, milliseconds."""
    beats, times = world.broker.group.heartbeats, list[float]()
    deadline_ms = world.clock.now_ms + 20_000
    while len(times) < count:
        assert world.clock.now_ms < deadline_ms
        consumer.poll(0.01)
        times += [world.clock.now_ms] * (world.broker.group.heartbeats - beats - len(times))
    return [later - earlier for earlier, later in pairwise(times)]


def test_backoff_resets_after_success(world: ConsumerWorld) -> None:
    consumer = world.subscribed(heartbeat_interval_ms=500)
    for _ in range(2):
        world.broker.fail(ApiKey.HEARTBEAT, *[_COORDINATOR_LOAD_IN_PROGRESS] * 5)
        gaps = heartbeat_gaps(world, consumer, 7)
        assert gaps[0] < 200
        assert gaps[3] > 400
