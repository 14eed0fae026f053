"""Clients of the applications: the blocking ones, or those for asyncio.

Applications are generators. With blocking clients an application is a task that waits as a thread
does, and so are the background loops of its clients. With clients for asyncio, the same application
runs as a coroutine in an event loop of its process, in virtual time: nothing in it blocks. Polls
and flushes of these clients are cancelled at random, and made again.
"""

import asyncio
import math
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from kclient import (
    AdminClient,
    Consumer,
    ConsumerRecord,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
    aio,
)
from kclient.common.runtime import Clock, Runtime
from kclient.common.waiting import Steps, perform
from kclient.consumer.rebalance_listener import PartitionsCallback
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.produce_request_result import OnDelivery
from kclient.testing.virtual import VirtualProcess, VirtualTask, VirtualWorld

T = TypeVar("T")

# Longest wait of a rebalance callback.
_CALLBACK_S = 0.3
_CANCELLED_CHANCE = 0.15


class Driver(Protocol):
    """Runs the steps of an application in its process.

    Attributes:
        runtime: Runtime of the clients.
    """

    @property
    def runtime(self) -> Runtime: ...

    def run(self, name: str, steps: Steps[Any]) -> VirtualTask:
        """Run steps as a task."""
        ...

    def sleep(self, seconds: float) -> Steps[None]:
        """Wait in steps."""
        ...


class BlockingProcess:
    """Driver of a process whose clients block the calling task.

    Attributes:
        runtime: Runtime of the clients.
    """

    def __init__(self, process: VirtualProcess) -> None:
        self.runtime = process.runtime
        self._process = process

    def run(self, name: str, steps: Steps[T]) -> VirtualTask:
        """Run steps as a task."""
        return self._process.spawn(name, lambda: perform(steps, self.runtime.clock))

    def sleep(self, seconds: float) -> Steps[None]:
        """Wait in the calling task."""
        return at_once(lambda: self._process.sleep(seconds))


def at_once(call: Callable[[], T]) -> Steps[T]:
    """Return a call that blocks, as steps without a wait."""
    yield from ()
    return call()


class BlockingProducer:
    """Public producer with calls in steps, which block."""

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._producer: Producer[bytes, bytes] = Producer(options, runtime=runtime)
        self._core = self._producer._core

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Steps[DeliveryFuture]:
        """Queue a record."""
        return at_once(
            lambda: self._producer.send(topic, value, partition=partition, on_delivery=on_delivery)
        )

    def flush(self, timeout: float) -> Steps[None]:
        """Wait until each queued record has its outcome."""
        return at_once(lambda: self._producer.flush(timeout))

    def init_transactions(self, timeout: float) -> Steps[None]:
        """Get the producer id."""
        return at_once(lambda: self._producer.init_transactions(timeout))

    def begin_transaction(self) -> Steps[None]:
        """Begin a transaction."""
        return at_once(self._producer.begin_transaction)

    def commit_transaction(self, timeout: float) -> Steps[None]:
        """Commit the transaction."""
        return at_once(lambda: self._producer.commit_transaction(timeout))

    def abort_transaction(self, timeout: float) -> Steps[None]:
        """Abort the transaction."""
        return at_once(lambda: self._producer.abort_transaction(timeout))

    def close(self, timeout: float) -> Steps[object]:
        """Close."""
        return at_once(lambda: self._producer.close(timeout))


class BlockingAdmin:
    """Public admin client with calls in steps, which block."""

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._admin = AdminClient(options, runtime=runtime)

    def create_topics(self, *topics: NewTopic) -> Steps[object]:
        """Create topics."""
        return at_once(lambda: self._admin.create_topics(topics))

    def list_topics(self) -> Steps[object]:
        """List the topics."""
        return at_once(self._admin.list_topics)

    def partition_count(self, topic: str) -> Steps[object]:
        """Describe a topic."""
        return at_once(lambda: self._admin.describe_topics([topic]))

    def describe_cluster(self) -> Steps[object]:
        """Describe the cluster."""
        return at_once(self._admin.describe_cluster)

    def list_groups(self) -> Steps[object]:
        """List the groups."""
        return at_once(self._admin.list_groups)

    def group_offsets(self, group_id: str) -> Steps[object]:
        """Return the committed offsets of a group."""
        return at_once(lambda: self._admin.list_consumer_group_offsets(group_id))

    def close(self) -> Steps[None]:
        """Close."""
        return at_once(self._admin.close)


class BlockingConsumer:
    """Public consumer with calls in steps, which block."""

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._consumer: Consumer[Any, Any] = Consumer(options, runtime=runtime)
        self._core = self._consumer._core
        self.assignment = self._consumer.assignment
        self.seek = self._consumer.seek
        self.commit_async = self._consumer.commit_async

    def subscribe(
        self,
        topics: list[str],
        on_assigned: PartitionsCallback,
        on_revoked: PartitionsCallback,
        on_lost: PartitionsCallback,
    ) -> None:
        """Subscribe to topics."""
        self._consumer.subscribe(
            topics, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost
        )

    def poll(self, timeout: float) -> Steps[list[ConsumerRecord]]:
        """Return records."""
        return at_once(lambda: list(self._consumer.poll(timeout)))

    def position(self, partition: TopicPartition, timeout: float) -> Steps[int]:
        """Return the position of a partition."""
        return at_once(lambda: self._consumer.position(partition, timeout))

    def end_offsets(
        self, partitions: list[TopicPartition], timeout: float
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the ends of partitions."""
        return at_once(lambda: self._consumer.end_offsets(partitions, timeout))

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float
    ) -> Steps[None]:
        """Commit offsets."""
        return at_once(lambda: self._consumer.commit(offsets, timeout))

    def close(self, timeout: float) -> Steps[None]:
        """Close."""
        return at_once(lambda: self._consumer.close(timeout))


class Awaited(Generic[T]):
    """A wait for a coroutine, as a step of an application.

    Attributes:
        result: Result of the coroutine.
    """

    result: T

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

    def block(self, clock: Clock, until_ms: float = math.inf) -> None:
        """Refuse to block the event loop."""
        raise AssertionError(f"{self._coroutine} was awaited by a call that blocks, at {clock}")

    async def run(self) -> None:
        """Run the coroutine."""
        self.result = await self._coroutine


def awaited(coroutine: Coroutine[Any, Any, T]) -> Steps[T]:
    """Return a coroutine as steps."""
    call = Awaited(coroutine)
    yield call
    return call.result


async def in_loop(steps: Steps[T]) -> T:
    """Run the steps of an application in an event loop."""
    try:
        wait = next(steps)
        while True:
            assert isinstance(wait, Awaited)
            try:
                await wait.run()
            except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                wait = steps.throw(error)
            else:
                wait = next(steps)
    except StopIteration as returned:
        result: T = returned.value
        return result


class AsyncProcess:
    """Driver of a process with an event loop.

    Attributes:
        runtime: Runtime of the clients.
    """

    def __init__(self, process: VirtualProcess) -> None:
        self.runtime = process.runtime
        self._process = process

    def run(self, name: str, steps: Steps[Any]) -> VirtualTask:
        """Run steps in an event loop."""
        return self._process.spawn_async(name, lambda: in_loop(steps))

    def sleep(self, seconds: float) -> Steps[None]:
        """Wait in the event loop."""
        return awaited(asyncio.sleep(seconds))


async def impatient(
    lot: random.Random, timeout: float, call: Callable[[float], Coroutine[Any, Any, T]]
) -> T:
    """Make a call that may be repeated, and cancel it at random."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    while lot.random() < _CANCELLED_CHANCE:
        left = max(0.0, end - loop.time())
        try:
            async with asyncio.timeout(lot.choice((0.0, lot.uniform(0.0, left)))):
                return await call(left)
        except TimeoutError as error:
            if not isinstance(error.__cause__, asyncio.CancelledError):
                raise  # of the call
    return await call(max(0.0, end - loop.time()))


class AsyncProducer:
    """Producer for asyncio with calls in steps."""

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._producer: aio.Producer[bytes, bytes] = aio.Producer(options, runtime=runtime)
        self._core = self._producer._core
        self._lot = runtime.random

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Steps[DeliveryFuture]:
        """Queue a record."""
        return awaited(
            self._producer.send(topic, value, partition=partition, on_delivery=on_delivery)
        )

    def flush(self, timeout: float) -> Steps[None]:
        """Wait until each queued record has its outcome."""
        return awaited(impatient(self._lot, timeout, self._producer.flush))

    def init_transactions(self, timeout: float) -> Steps[None]:
        """Get the producer id."""
        return awaited(impatient(self._lot, timeout, self._producer.init_transactions))

    def begin_transaction(self) -> Steps[None]:
        """Begin a transaction."""
        return awaited(self._producer.begin_transaction())

    def commit_transaction(self, timeout: float) -> Steps[None]:
        """Commit the transaction."""
        return awaited(impatient(self._lot, timeout, self._producer.commit_transaction))

    def abort_transaction(self, timeout: float) -> Steps[None]:
        """Abort the transaction."""
        return awaited(impatient(self._lot, timeout, self._producer.abort_transaction))

    def close(self, timeout: float) -> Steps[object]:
        """Close."""
        return awaited(self._producer.close(timeout))


class AsyncAdmin:
    """Admin client for asyncio with calls in steps."""

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._admin = aio.AdminClient(options, runtime=runtime)

    def create_topics(self, *topics: NewTopic) -> Steps[object]:
        """Create topics."""
        return awaited(self._admin.create_topics(topics))

    def list_topics(self) -> Steps[object]:
        """List the topics."""
        return awaited(self._admin.list_topics())

    def partition_count(self, topic: str) -> Steps[object]:
        """Describe a topic."""
        return awaited(self._admin.describe_topics([topic]))

    def describe_cluster(self) -> Steps[object]:
        """Describe the cluster."""
        return awaited(self._admin.describe_cluster())

    def list_groups(self) -> Steps[object]:
        """List the groups."""
        return awaited(self._admin.list_groups())

    def group_offsets(self, group_id: str) -> Steps[object]:
        """Return the committed offsets of a group."""
        return awaited(self._admin.list_consumer_group_offsets(group_id))

    def close(self) -> Steps[None]:
        """Close."""
        return awaited(self._admin.close())


class AsyncConsumer:
    """Consumer for asyncio with calls in steps."""

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._consumer: aio.Consumer[Any, Any] = aio.Consumer(options, runtime=runtime)
        self._core = self._consumer._core
        self._lot = runtime.random
        self.assignment = self._consumer.assignment
        self.seek = self._consumer.seek
        self.commit_async = self._consumer.commit_async

    def subscribe(
        self,
        topics: list[str],
        on_assigned: PartitionsCallback,
        on_revoked: PartitionsCallback,
        on_lost: PartitionsCallback,
    ) -> None:
        """Subscribe to topics, with callbacks that are coroutine functions."""
        self._consumer.subscribe(
            topics,
            on_assigned=self._slow(on_assigned),
            on_revoked=self._slow(on_revoked),
            on_lost=self._slow(on_lost),
        )

    def _slow(self, callback: PartitionsCallback) -> PartitionsCallback:
        """Return a coroutine function that waits before the callback, at random."""

        async def run(partitions: list[TopicPartition]) -> None:
            await asyncio.sleep(self._lot.choice((0.0, self._lot.uniform(0.0, _CALLBACK_S))))
            callback(partitions)

        return run

    def poll(self, timeout: float) -> Steps[list[ConsumerRecord]]:
        """Return records."""

        async def poll(left: float) -> list[ConsumerRecord]:
            return list(await self._consumer.poll(left))

        return awaited(impatient(self._lot, timeout, poll))

    def position(self, partition: TopicPartition, timeout: float) -> Steps[int]:
        """Return the position of a partition, in the steps of the core: a callback asks for it."""
        return self._core.position(partition, timeout)

    def end_offsets(
        self, partitions: list[TopicPartition], timeout: float
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the ends of partitions."""
        return awaited(self._consumer.end_offsets(partitions, timeout))

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float
    ) -> Steps[None]:
        """Commit offsets."""
        return awaited(self._consumer.commit(offsets, timeout))

    def close(self, timeout: float) -> Steps[None]:
        """Close."""
        return awaited(self._consumer.close(timeout))


@dataclass(frozen=True)
class Clients:
    """Kind of the clients of a run.

    Attributes:
        name: Name of the kind.
        drive: Creates the driver of a process.
        producer: Creates a producer.
        admin: Creates an admin client.
        consumer: Creates a consumer.
        may_block: Whether code of the application that runs inside a call may wait.
    """

    name: str
    drive: Callable[[VirtualWorld, VirtualProcess], Driver]
    producer: Callable[..., "BlockingProducer | AsyncProducer"]
    admin: Callable[..., "BlockingAdmin | AsyncAdmin"]
    consumer: Callable[..., "BlockingConsumer | AsyncConsumer"]
    may_block: bool


BLOCKING = Clients(
    "blocking",
    lambda _, process: BlockingProcess(process),
    BlockingProducer,
    BlockingAdmin,
    BlockingConsumer,
    may_block=True,
)
ASYNC = Clients(
    "asyncio",
    lambda _, process: AsyncProcess(process),
    AsyncProducer,
    AsyncAdmin,
    AsyncConsumer,
    may_block=False,
)
KINDS: Mapping[str, Clients] = {each.name: each for each in (BLOCKING, ASYNC)}
