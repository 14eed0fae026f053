"""The compiled hot path behaves as the reference."""

import gc
import inspect
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from os import environ
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient import Producer
from kclient.common.errors import ClosedError, InvalidTypeError, KafkaError
from kclient.record import IMPLEMENTATION, RecordBatch, reference

NOW_NS = 1_700_000_000_123_999_999


class Twin(NamedTuple):
    path: Any
    record: Any


def twins() -> list[Twin]:
    readable = Twin(import_module("kclient.producer.hot_path.reference"), reference)
    try:
        compiled = import_module("kclient.producer.hot_path._speed")
    except ImportError:  # built without a compiler
        return [readable]
    return [readable, Twin(compiled, import_module("kclient.record._speed"))]


TWINS = twins()


class Text(str):
    __slots__ = ()


class Blob(bytes):
    __slots__ = ()


class Result:
    def __init__(self) -> None:
        self.deliveries: list[tuple[int, Any, object]] = []


class Batch:
    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.result = Result()
        self.is_filled = False
        self.larger: list[bytearray] = []

    def grow(self) -> bool:
        if self.larger:
            self.builder.move_to(self.larger.pop(0))
            return True
        return False


class World:
    """A producer of one implementation, with a topic of three partitions."""

    def __init__(self, twin: Twin) -> None:
        self.seen: list[object] = []
        self.closed = False
        path, seen = twin.path, self.seen

        def send_slow(_: object, *arguments: object) -> str:
            seen.append(arguments)
            return "slow path"

        future = type("Future", (path.RecordHandle,), {"__slots__": ()})
        sending = type("Sending", (path.SendPath,), {"_send_slow": send_slow})
        self.batches = [Batch(twin.record.RecordBatchBuilder(bytearray(140))) for _ in range(3)]
        self.queues = tuple(path.OpenQueue(threading.RLock(), future) for _ in self.batches)
        for queue, batch in zip(self.queues, self.batches, strict=True):
            queue.set_open_batch(batch)
        self.topic = path.TopicView()
        self.topic.partition_count = 3
        self.topic.queues = self.queues
        self.topic.sticky_queue = self.queues[1]
        self.topic.used = False
        self.sending = sending(
            {"t": self.topic},
            self.append,
            lambda: NOW_NS,
        )
        self.sending._fast_path_enabled = True

    def append(self, info: object, queue: object, missed: object, *rest: object) -> str:
        if self.closed:
            raise ClosedError("closed")
        assert missed is (self.topic.sticky_queue if queue is None else queue)
        assert info is self.topic
        number = None if queue is None else self.queues.index(queue)
        self.seen.append((number, *rest))
        return "to a new batch"

    def send(self, topic: Any, arguments: dict[str, Any]) -> object:
        try:
            sent = self.sending.send(topic, **arguments)
        except KafkaError as error:
            return type(error), str(error)
        if isinstance(sent, str):
            return sent
        size_fields = sent._timestamp_ms, sent._key_size, sent._value_size
        batch = next(batch for batch in self.batches if batch.result is sent._result)
        return self.batches.index(batch), sent._index, *size_fields

    def outcome(self) -> object:
        assert not any(held(queue.lock) for queue in self.queues)
        return (
            self.topic.used,
            self.seen,
            [
                (
                    bytes(batch.builder.seal()),
                    [(index, f._index, call) for index, f, call in batch.result.deliveries],
                )
                for batch in self.batches
                if batch.builder.record_count
            ],
            [
                (batch.is_filled, queue.open_batch is batch)
                for batch, queue in zip(self.batches, self.queues, strict=True)
            ],
        )


def held(lock: Any) -> bool:
    """Return whether a lock is held, also shortly after."""
    asking = threading.Thread(target=lambda: lock.__enter__() and lock.__exit__(None, None, None))
    asking.daemon = True
    asking.start()
    asking.join(0.2)
    return asking.is_alive()


class CountingLock:
    """A lock that is not the system's."""

    def __init__(self) -> None:
        self.entered = self.left = 0

    def __enter__(self) -> bool:
        self.entered += 1
        return True

    def __exit__(self, *raised: object) -> None:
        self.left += 1


def on_delivery(*_: object) -> None:
    """Do nothing."""


async def coroutine(*_: object) -> None:
    """Do nothing, later."""


def usually(usual: st.SearchStrategy[Any], *odd: object) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, st.sampled_from(odd))


PAYLOADS = usually(st.none() | st.binary(max_size=20), Blob(b"b"), bytearray(b"b"), "text", 7)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "value": PAYLOADS,
        "key": PAYLOADS,
        "headers": usually(st.none(), [], [("h", b"v")], (("h", None),), [(1, b"v")], "wrong"),
        "partition": usually(st.none() | st.integers(0, 2), 3, -1, True, 1.0, 2**64, "0"),
        "timestamp_ms": usually(
            st.none() | st.integers(0, 2**63 - 1), -1, True, 2**63, 2**70, -(2**70), 1.5
        ),
        "on_delivery": usually(st.none(), on_delivery, print, coroutine, 7),
    },
)
SENDS = st.lists(st.tuples(usually(st.just("t"), Text("t"), "other", None, b"t"), ARGUMENTS))


@given(sends=SENDS)
def test_implementations_behave_alike(sends: list[tuple[Any, dict[str, Any]]]) -> None:
    worlds = [World(twin) for twin in TWINS]
    for topic, arguments in sends:
        first, *others = [world.send(topic, arguments) for world in worlds]
        assert others == [first] * len(others)
    first_outcome, *other_outcomes = [world.outcome() for world in worlds]
    assert other_outcomes == [first_outcome] * len(other_outcomes)


@pytest.fixture(params=TWINS, ids=lambda twin: twin.path.__name__.rpartition(".")[2])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_record_without_key_goes_to_the_sticky_partition(world: World) -> None:
    assert world.send("t", {"value": b"abc"}) == (1, 0, NOW_NS // 1_000_000, -1, 3)
    assert world.topic.used


def test_key_determines_the_partition(world: World) -> None:
    chosen = (reference.murmur2(b"k") & 0x7FFFFFFF) % 3
    assert world.send("t", {"key": b"k"}) == (chosen, 0, NOW_NS // 1_000_000, 1, -1)


def test_callback_is_stored_with_its_future(world: World) -> None:
    world.send("t", {"value": b"a"})
    world.send("t", {"value": b"b", "on_delivery": on_delivery})
    [(index, future, call)] = world.batches[1].result.deliveries
    assert (index, future._index, call) == (1, 1, on_delivery)


def test_full_batch_needs_a_new_batch(world: World) -> None:
    world.send("t", {"value": b"a"})
    assert world.send("t", {"value": bytes(200)}) == "to a new batch"
    assert world.seen == [(None, NOW_NS // 1_000_000, None, bytes(200), b"\0", None)]
    assert world.batches[1].is_filled
    assert world.queues[1].open_batch is None


def test_open_batch_grows_until_the_record_fits(world: World) -> None:
    world.send("t", {"value": b"a"})
    world.batches[1].larger = [bytearray(180), bytearray(400), bytearray(800)]
    assert world.send("t", {"value": bytes(200)}) == (1, 1, NOW_NS // 1_000_000, -1, 200)
    assert len(world.batches[1].larger) == 1
    assert not world.batches[1].is_filled
    sealed = RecordBatch(world.batches[1].builder.seal())
    assert [record.value for record in sealed.records()] == [b"a", bytes(200)]


def test_no_open_batch_needs_a_new_batch(world: World) -> None:
    world.queues[2].set_open_batch(None)
    assert world.send("t", {"partition": 2, "timestamp_ms": 5}) == "to a new batch"
    assert world.seen == [(2, 5, None, None, b"\0", None)]


def test_no_sticky_partition_needs_a_new_batch(world: World) -> None:
    world.topic.sticky_queue = None
    assert world.send("t", {}) == "to a new batch"


def shut(world: World) -> None:
    world.sending._fast_path_enabled = False


def remove(world: World) -> None:
    world.sending._topics.clear()


def close(world: World) -> None:
    world.closed = True
    for queue in world.queues:
        queue.set_open_batch(None)


@pytest.mark.parametrize("change", [shut, remove, close])
def test_unusual_arguments_take_the_slow_path(
    world: World, change: Callable[[World], None]
) -> None:
    change(world)
    assert world.send("t", {"value": b"v", "key": b"k"}) == "slow path"
    assert world.seen == [("t", b"v", b"k", None, None, None, None)]
    assert world.batches[0].builder.record_count == 0


class Reentrant(World):
    """A producer of one partition in which each step of an append may send other records.

    Finalizers send them, as the garbage collector runs them at any allocation, and so do headers
    while they are encoded, and batches while they get more memory.
    """

    def __init__(self, twin: Twin, seed: int) -> None:
        super().__init__(twin)
        self.record = twin.record
        self.random = Random(seed)
        self.sent: list[tuple[bytes, Any]] = []
        self.depth = 0
        self.batches = []
        self.topic.partition_count = 1
        self.topic.sticky_queue = self.queues[0]
        self.queues[0].set_open_batch(None)

    def append(self, info: object, queue: object, missed: object, *rest: Any) -> Any:
        """Append to a new batch, as an accumulator."""
        with self.queues[0].lock:
            if self.queues[0].open_batch is None:
                builder = self.record.RecordBatchBuilder(bytearray(400))
                self.batches.append(GrowingBatch(builder, self.send_others))
                self.queues[0].set_open_batch(self.batches[-1])
            future = self.queues[0].append(*rest)
        return future or self.append(info, queue, missed, *rest)

    def send_one(self) -> None:
        value = b"%d " % self.random.getrandbits(64) + bytes(self.random.randrange(150))
        arguments: dict[str, Any] = {"value": value}
        if self.random.random() < 0.5:
            arguments["headers"] = SendingHeaders(self.send_others)
        if self.random.random() < 0.5:
            arguments["on_delivery"] = on_delivery
        self.sent.append((value, self.sending.send("t", **arguments)))

    def send_others(self) -> None:
        if self.depth > 2:
            return
        self.depth += 1
        for _ in range(self.random.choice([0, 0, 0, 1, 5])):
            self.send_one()
        self.depth -= 1

    def check(self) -> None:
        taken = set()
        records = {}
        for batch in self.batches:
            if batch.builder.record_count:
                sealed = RecordBatch(batch.builder.seal()).records()
                records[id(batch.result)] = [record.value for record in sealed]
        for value, future in self.sent:
            assert records[id(future._result)][future._index] == value
            taken.add((id(future._result), future._index))
        assert len(taken) == len(self.sent) == sum(map(len, records.values()))
        for batch in self.batches:
            indexes = [index for index, *_ in batch.result.deliveries]
            assert indexes == sorted(set(indexes))
            for index, future, _ in batch.result.deliveries:
                assert (future._result, future._index) == (batch.result, index)


class GrowingBatch(Batch):
    def __init__(self, builder: Any, send_others: Callable[[], None]) -> None:
        super().__init__(builder)
        self.send_others = send_others
        self.larger = [bytearray(1000)]

    def grow(self) -> bool:
        self.send_others()
        grown = super().grow()
        self.send_others()
        return grown


class SendingHeaders(list[Any]):
    def __init__(self, send_others: Callable[[], None]) -> None:
        super().__init__([("h", b"1"), ("n", None)])
        self.send_others = send_others

    def __iter__(self) -> Iterator[Any]:
        self.send_others()
        return super().__iter__()


class Collected:
    """Sends records when the garbage collector ends it."""

    def __init__(self, send_others: Callable[[], None]) -> None:
        self.itself = self
        self.send_others = send_others

    def __del__(self) -> None:
        self.send_others()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.path.__name__.rpartition(".")[2])
def test_records_sent_within_an_append_have_their_own_outcomes(twin: Twin, seed: int) -> None:
    world = Reentrant(twin, seed)
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(5, 2, 2)
    try:
        for _ in range(100):
            Collected(world.send_others)
            world.send_one()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert not held(world.queues[0].lock)
    world.check()


def test_failed_append_releases_the_lock(world: World) -> None:
    with pytest.raises(InvalidTypeError):
        world.sending.send("t", headers=[(1, b"")])
    assert not held(world.queues[1].lock)


def test_lock_excludes_appends_and_is_reentrant(world: World) -> None:
    lock = world.queues[1].lock
    sending = threading.Thread(target=world.send, args=("t", {"value": b"late"}), daemon=True)
    with lock:
        with lock:
            world.send("t", {"value": b"own"})
        sending.start()
        sending.join(0.05)
        assert sending.is_alive()
        assert world.batches[1].builder.record_count == 1
        assert held(lock)
    sending.join(10)
    assert world.batches[1].builder.record_count == 2
    assert not held(lock)


def test_lock_of_another_runtime_is_acquired_by_its_methods(world: World) -> None:
    lock = CountingLock()
    queue = type(world.queues[0])(lock, type(world.sending.send("t")))
    queue.set_open_batch(world.batches[0])
    world.topic.sticky_queue = queue
    assert world.send("t", {"value": b"v"}) == (0, 0, NOW_NS // 1_000_000, -1, 1)
    assert queue.lock is lock
    assert (lock.entered, lock.left) == (1, 1)


def test_threads_append_each_record_once(world: World) -> None:
    batch = Batch(type(world.batches[1].builder)(bytearray(1 << 20)))
    world.queues[1].set_open_batch(batch)

    def send_many() -> None:
        for _ in range(2_000):
            world.sending.send("t", b"v")
            with world.queues[1].lock:
                assert world.queues[1].open_batch is batch

    threads = [threading.Thread(target=send_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(RecordBatch(batch.builder.seal()).records()) == 8_000


def test_system_clock_is_the_default_timestamp(world: World) -> None:
    path = type(world.sending)
    sending = path({"t": world.topic}, world.append, time.time_ns)
    sending._fast_path_enabled = True
    before = time.time_ns() // 1_000_000
    timestamp_ms = sending.send("t", b"v")._timestamp_ms
    assert before <= timestamp_ms <= time.time_ns() // 1_000_000


def test_compiled_futures_are_not_tracked_by_the_garbage_collector() -> None:
    for twin in TWINS[1:]:
        world = World(twin)
        future = world.sending.send("t", b"v")
        assert not gc.is_tracked(future)
        assert sys.getsizeof(future) <= 48


@pytest.mark.parametrize("twin", TWINS)
def test_futures_of_a_subclass_with_fields_are_collected(twin: Twin) -> None:
    subclass = type("Subclass", (twin.path.RecordHandle,), {})
    future = subclass(None, 0, 0, -1, -1)
    future.itself = future
    seen = weakref.ref(future)
    del future
    gc.collect()
    assert seen() is None


def active_with(**environment: str) -> str:
    program = "from kclient.producer import hot_path; print(hot_path.SendPath.__module__)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**environ, "KCLIENT_PURE_PYTHON": "", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def test_the_environment_forces_the_reference() -> None:
    assert active_with(KCLIENT_PURE_PYTHON="1") == "kclient.producer.hot_path.reference"


def test_extension_is_used_if_it_was_built() -> None:
    expected = TWINS[-1].path.__name__
    assert active_with() == expected
    if environ.get("KCLIENT_REQUIRE_EXTENSION") == "1":
        assert expected == "kclient.producer.hot_path._speed"


def test_send_has_its_docstring_in_both_implementations() -> None:
    assert "on_delivery: Called as" in (Producer.send.__doc__ or "")
    readable = inspect.signature(TWINS[0].path.SendPath.send).parameters
    for twin in TWINS:
        parameters = inspect.signature(twin.path.SendPath.send).parameters
        assert [(each.name, each.kind, each.default) for each in parameters.values()] == [
            (each.name, each.kind, each.default) for each in readable.values()
        ]


def test_implementation_matches_that_of_the_record_code() -> None:
    compiled = Producer.__mro__[1].__module__.endswith("_speed")
    assert compiled <= (IMPLEMENTATION == "compiled")


class DerivedBytes(bytes):
    """Bytes that a producer copies."""


ROW = st.sampled_from([b"", b"x", None, bytearray(b"y"), "text", 3, DerivedBytes(b"z")])


@given(rows=st.lists(ROW))
def test_rows_of_other_types_are_found(rows: list[Any]) -> None:
    expected = all(row is None or type(row) is bytes for row in rows)
    assert [twin.path.all_bytes_or_none(rows) for twin in TWINS] == [expected] * len(TWINS)
