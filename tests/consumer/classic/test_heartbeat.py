"""Heartbeats during waiting calls and during code of the application."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pytest

from kclient.common.errors import KafkaError
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer import Consumer, ConsumerRecords
from kclient.consumer.assignors import Assignment, MemberSubscription, RangeAssignor
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets

_UNKNOWN_MEMBER_ID = 25
_NOT_LEADER_OR_FOLLOWER = 6
_COORDINATOR_LOAD_IN_PROGRESS = 14

_SESSION_MS = 6_000
_BUSY_S = 20.0
_MOST_BEATS = 21
_FEWEST_BEATS = 17  # one each second, and a little latency


class Member:
    """A member of the group and the calls of its callbacks."""

    def __init__(self, world: ConsumerWorld, **options: object) -> None:
        self.world = world
        self.reported: list[str] = []
        self.consumer = world.consumer(
            group_id="g",
            session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=1_000,
            default_api_timeout_ms=int(_BUSY_S * 1000),
            **options,
        )

    def join(self) -> Consumer:
        self.consumer.subscribe(
            "orders",
            on_assigned=lambda _: self.reported.append("assigned"),
            on_revoked=lambda _: self.reported.append("revoked"),
            on_lost=lambda _: self.reported.append("lost"),
        )
        self.world.join(self.consumer)
        return self.consumer


def no_coordinator_for(api: ApiKey) -> Callable[[ConsumerWorld], None]:
    return lambda world: world.broker.fail(api, *[_COORDINATOR_LOAD_IN_PROGRESS] * 1000)


def no_offsets(world: ConsumerWorld) -> None:
    world.broker.fail(ApiKey.LIST_OFFSETS, *[_NOT_LEADER_OR_FOLLOWER] * 1000)


def nothing(_: ConsumerWorld) -> None:
    pass


Prepare = Callable[[ConsumerWorld], None]
Wait = Callable[[Consumer], object]

WAITS: dict[str, tuple[Prepare, Wait]] = {
    "poll": (nothing, lambda consumer: consumer.poll(_BUSY_S)),
    "poll_columns": (nothing, lambda consumer: consumer.poll_columns(_BUSY_S)),
    "position": (no_offsets, lambda consumer: consumer.position(ORDERS_0)),
    "lag": (no_offsets, lambda consumer: consumer.lag(ORDERS_0)),
    "beginning_offsets": (no_offsets, lambda consumer: consumer.beginning_offsets([ORDERS_0])),
    "end_offsets": (no_offsets, lambda consumer: consumer.end_offsets([ORDERS_0])),
    "offsets_for_times": (no_offsets, lambda consumer: consumer.offsets_for_times({ORDERS_0: 1})),
    "committed": (
        no_coordinator_for(ApiKey.OFFSET_FETCH),
        lambda consumer: consumer.committed([ORDERS_0]),
    ),
    "commit": (
        no_coordinator_for(ApiKey.OFFSET_COMMIT),
        lambda consumer: consumer.commit({ORDERS_0: 1}),
    ),
    "close": (
        no_coordinator_for(ApiKey.OFFSET_COMMIT),
        lambda consumer: consumer.close(timeout=_BUSY_S),
    ),
}
"""Each public call that may wait, with the condition that makes it wait."""


def test_table_has_every_call_that_may_wait() -> None:
    waiting = {
        name
        for name, call in inspect.getmembers(Consumer, inspect.isfunction)
        if not name.startswith("_") and "timeout" in inspect.signature(call).parameters
    }
    assert waiting | {"lag"} == set(WAITS)


@pytest.mark.fault("R16", "R23")
@pytest.mark.parametrize("call", WAITS)
def test_waiting_call_sends_heartbeats(world: ConsumerWorld, call: str) -> None:
    prepare, wait = WAITS[call]
    member = Member(world, retry_backoff_ms=500)
    if call in {"position", "lag"}:
        prepare(world)  # the position must not be found before the call
    consumer = member.join()
    if call == "close":
        consumer.seek(ORDERS_0, 0)  # there is something to commit
    prepare(world)
    before, before_ms = world.broker.group.heartbeats, world.clock.now_ms
    with suppress(KafkaError):
        wait(consumer)
    assert world.clock.now_ms - before_ms >= (_BUSY_S - 1) * 1000, "the call did not wait"
    assert _FEWEST_BEATS <= world.broker.group.heartbeats - before <= _MOST_BEATS
    if call != "close":
        world.broker.failures.clear()
        consumer.poll(0.0)
        assert member.reported == ["assigned"]


@pytest.mark.fault("R14")
def test_waiting_call_does_not_count_as_poll(world: ConsumerWorld) -> None:
    member = Member(world, max_poll_interval_ms=10_000)
    consumer = member.join()
    no_offsets(world)
    with pytest.raises(KafkaError):
        consumer.end_offsets([ORDERS_0])
    assert world.broker.group.left == ["member-1"]
    consumer.poll(0.0)
    assert member.reported == ["assigned", "lost"]


# --- code of the application


class Slow:
    """Takes long once, when armed, and counts the heartbeats sent during that time."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.armed = True
        self.beats: list[int] = []

    def __call__(self, *_: object) -> None:
        if self.armed and not self.beats:
            before = self.world.broker.group.heartbeats
            self.world.background(_BUSY_S * 1000)
            self.beats.append(self.world.broker.group.heartbeats - before)

    def then(self, value: object) -> object:
        self()
        return value


class SlowInterceptor:
    """Takes its time in one of its methods."""

    def __init__(self, slow: Slow, method: str) -> None:
        self.slow = slow
        self.method = method

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        if self.method == "on_consume":
            self.slow()
        return records

    def on_commit(self, _: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if self.method == "on_commit":
            self.slow()

    def close(self) -> None:
        """Nothing to close."""


class SlowAssignor(RangeAssignor):
    """Takes its time in one of its methods."""

    def __init__(self, slow: Slow, method: str) -> None:
        super().__init__()
        self.slow = slow
        self.method = method

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        if self.method == "subscription_user_data":
            self.slow()
        return super().subscription_user_data(topics)

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        if self.method == "assign":
            self.slow()
        return super().assign(partition_counts, members)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        if self.method == "on_assignment":
            self.slow()


def read(world: ConsumerWorld, slow: Slow, **options: object) -> None:
    world.fill(3)
    consumer = Member(world, **options).join()
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]


def deserialize(kind: str) -> Callable[[ConsumerWorld, Slow], None]:
    return lambda world, slow: read(
        world, slow, **{kind: lambda _topic, _headers, data: slow.then(data)}
    )


def iterate(world: ConsumerWorld, slow: Slow) -> None:
    world.fill(3)
    member = Member(world, value_deserializer=lambda _topic, _headers, data: slow.then(data))
    consumer = member.join()
    assert offsets([next(consumer) for _ in range(3)]) == [0, 1, 2]


def intercept(method: str) -> Callable[[ConsumerWorld, Slow], None]:
    return lambda world, slow: read(
        world, slow, interceptor_classes=[SlowInterceptor(slow, method)]
    )


def intercept_commit(world: ConsumerWorld, slow: Slow) -> None:
    consumer = Member(world, interceptor_classes=[SlowInterceptor(slow, "on_commit")]).join()
    consumer.commit({ORDERS_0: 1})


def assign_by(method: str) -> Callable[[ConsumerWorld, Slow], None]:
    def rebalance(world: ConsumerWorld, slow: Slow) -> None:
        slow.armed = False
        assignor = SlowAssignor(slow, method)
        member = Member(world, partition_assignment_strategy=[assignor])
        consumer = member.join()
        slow.armed = True
        world.broker.group.rebalancing = True
        world.poll_until(consumer, lambda: member.reported[1:] == ["revoked", "assigned"])

    return rebalance


def be_called_back(event: str) -> Callable[[ConsumerWorld, Slow], None]:
    def subscribe(world: ConsumerWorld, slow: Slow) -> None:
        consumer = Member(world).consumer
        consumer.subscribe(
            "orders",
            on_assigned=slow if event == "on_assigned" else None,
            on_revoked=slow if event == "on_revoked" else None,
        )
        world.join(consumer)
        world.broker.group.rebalancing = True
        world.poll_until(consumer, lambda: world.broker.group.generation == 2)
        world.poll_until(consumer, lambda: bool(consumer.assignment()))

    return subscribe


def commit_callback(world: ConsumerWorld, slow: Slow) -> None:
    consumer = Member(world).join()
    consumer.commit_async({ORDERS_0: 1}, slow)
    world.poll_until(consumer, lambda: bool(slow.beats))


HOOKS: dict[str, Callable[[ConsumerWorld, Slow], None]] = {
    "key_deserializer": deserialize("key_deserializer"),
    "value_deserializer": deserialize("value_deserializer"),
    "value_deserializer, iterating": iterate,
    "on_consume": intercept("on_consume"),
    "on_commit": intercept_commit,
    "on_assigned": be_called_back("on_assigned"),
    "on_revoked": be_called_back("on_revoked"),
    "commit callback": commit_callback,
    "subscription_user_data": assign_by("subscription_user_data"),
    "assign": assign_by("assign"),
    "on_assignment": assign_by("on_assignment"),
}
"""Each kind of application code that runs inside a call of a member."""


@pytest.fixture
def slow(world: ConsumerWorld) -> Iterator[Slow]:
    made = Slow(world)
    yield made
    made.armed = False


@pytest.mark.fault("R16", "R23")
@pytest.mark.parametrize("hook", HOOKS)
def test_heartbeats_are_sent_during_application_code(
    world: ConsumerWorld, slow: Slow, hook: str
) -> None:
    HOOKS[hook](world, slow)
    assert len(slow.beats) == 1
    assert _FEWEST_BEATS <= slow.beats[0] <= _MOST_BEATS
    assert world.broker.group.left == []


@pytest.mark.fault("R14")
@pytest.mark.parametrize("iterating", [False, True])
@pytest.mark.parametrize("why", ["put out by the broker", "max.poll.interval.ms"])
def test_records_of_partitions_lost_while_decoding_are_not_returned(
    world: ConsumerWorld, slow: Slow, why: str, iterating: bool
) -> None:
    world.fill(3)
    member = Member(
        world,
        value_deserializer=lambda _topic, _headers, data: slow.then(data),
        max_poll_interval_ms=10_000 if why == "max.poll.interval.ms" else 300_000,
    )
    consumer = member.join()
    if why == "put out by the broker":
        world.broker.fail(ApiKey.HEARTBEAT, _UNKNOWN_MEMBER_ID)
    first = next(consumer) if iterating else world.read(consumer, 1)[0]
    assert len(slow.beats) == 1
    assert member.reported == ["assigned", "lost", "assigned"]
    assert first.offset == 0


@pytest.mark.fault("R16")
def test_data_arriving_while_decoding_is_read_in_order(world: ConsumerWorld, slow: Slow) -> None:
    world.fill(*[2] * 10)
    member = Member(
        world,
        value_deserializer=lambda _topic, _headers, data: slow.then(data),
        max_partition_fetch_bytes=200,
        max_poll_records=3,
    )
    assert offsets(world.read(member.join(), 20)) == list(range(20))
    assert len(slow.beats) == 1


@pytest.mark.fault("R16")
def test_deserializer_may_call_the_consumer(world: ConsumerWorld, slow: Slow) -> None:
    """A call inside a deserializer blocks the heartbeat task until it returns."""
    world.fill(3)
    seen: list[object] = []

    def deserialize_and_look(_topic: str, _headers: object, data: bytes) -> bytes:
        seen.append(consumer.committed([ORDERS_0])[ORDERS_0])
        slow()
        return data

    member = Member(world, value_deserializer=deserialize_and_look, enable_auto_commit=False)
    consumer = member.join()
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]
    assert seen == [None, None, None]
    assert slow.beats[0] >= _FEWEST_BEATS
