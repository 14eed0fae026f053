"""Clients of the applications: the blocking ones, or ones in steps.

Applications are generators. With blocking clients an application is a task that waits as a thread
does, and so are the background loops of its clients. With clients in steps, the same application
runs as a coroutine would on an event loop, and so do the loops: nothing in its process blocks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kclient import (
    AdminClient,
    Consumer,
    ConsumerRecord,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from kclient.common.runtime import Runtime
from kclient.common.waiting import Steps, perform
from kclient.consumer.rebalance_listener import PartitionsCallback
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.produce_request_result import OnDelivery
from kclient.testing.virtual import VirtualProcess, VirtualTask, VirtualWorld
from tests.support.clients.stepped_clients import SteppedAdmin, SteppedConsumer, SteppedProducer
from tests.support.virtual.stepped_process import SteppedProcess

T = TypeVar("T")


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

    def close(self) -> None:
        """Close."""
        self._admin.close()


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
    producer: Callable[..., "BlockingProducer | SteppedProducer"]
    admin: Callable[..., "BlockingAdmin | SteppedAdmin"]
    consumer: Callable[..., "BlockingConsumer | SteppedConsumer"]
    may_block: bool


BLOCKING = Clients(
    "blocking",
    lambda _, process: BlockingProcess(process),
    BlockingProducer,
    BlockingAdmin,
    BlockingConsumer,
    may_block=True,
)
STEPS = Clients(
    "steps",
    lambda world, process: SteppedProcess(process, world.scheduler),
    SteppedProducer,
    SteppedAdmin,
    SteppedConsumer,
    may_block=False,
)
KINDS: Mapping[str, Clients] = {each.name: each for each in (BLOCKING, STEPS)}
