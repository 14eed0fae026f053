"""A controller on a log in memory, and its calls with their outcomes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from kclient.broker.controller.quorum_controller import (
    BrokerIdentity,
    QuorumController,
)
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicControl,
    TopicDefaults,
    TopicPlan,
    TopicRequest,
)
from kclient.broker.metadata.metadata_image import TopicImage
from kclient.common.broker_errors import (
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.network.endpoint import Endpoint, SecurityProtocol
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.metadata_records import (
    MetadataRecord,
)


def create_topics(
    controller: QuorumController, requests: Sequence[TopicRequest], *, validate_only: bool = False
) -> list[TopicPlan | KafkaError]:
    """Create topics; return the plan of each, or the error."""
    done: list[list[TopicPlan | KafkaError]] = []
    controller.create_topics(requests, done.append, validate_only=validate_only)
    (outcomes,) = done
    return outcomes


def create_topic(controller: QuorumController, request: TopicRequest) -> TopicPlan:
    """Create a topic, or raise the error."""
    (outcome,) = create_topics(controller, [request])
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def create_partitions(
    controller: QuorumController,
    requests: Sequence[PartitionsRequest],
    *,
    validate_only: bool = False,
) -> list[PartitionsPlan | KafkaError]:
    """Add partitions to topics; return them, or the error, for each topic."""
    done: list[list[PartitionsPlan | KafkaError]] = []
    controller.create_partitions(requests, done.append, validate_only=validate_only)
    (outcomes,) = done
    return outcomes


def delete_topics(
    controller: QuorumController, named: Sequence[tuple[str | None, bytes]]
) -> list[DeletionPlan | KafkaError]:
    """Delete topics; return each, or the error."""
    done: list[list[DeletionPlan | KafkaError]] = []
    controller.delete_topics(named, done.append)
    (outcomes,) = done
    return outcomes


def assert_created(errors: Mapping[str, KafkaError]) -> None:
    """Check the result of an automatic creation of topics: clients are to retry."""
    assert all(isinstance(error, UnknownTopicOrPartitionError) for error in errors.values())


DIRECTORY = b"\1" * 16


ENDPOINTS = (
    Endpoint("INTERNAL", "10.0.0.1", 9092),
    Endpoint("EXTERNAL", "broker.example", 19092, SecurityProtocol.SASL_SSL),
)


NO_ID = bytes(16)


class MemoryLog:
    """In-memory log of encoded records, which can fail or withhold the commits.

    Attributes:
        withheld: Callbacks of appends that are not committed yet; None to commit at once.
    """

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.full = False
        self.withheld: list[Callable[[KafkaError | None], None]] | None = None

    def replay(self) -> Iterator[tuple[int, MetadataRecord]]:
        for offset, value in enumerate(self.values):
            yield offset, MetadataRecord.decode_framed(value)

    def append(
        self, records: Sequence[MetadataRecord], on_committed: Callable[[KafkaError | None], None]
    ) -> int:
        if self.full:
            raise OSError("no space left")
        self.values += [record.encode_framed(type(record).max_version) for record in records]
        if self.withheld is None:
            on_committed(None)
        else:
            self.withheld.append(on_committed)
        return len(self.values) - 1


def registered(error: KafkaError | None) -> None:
    assert error is None


def runtime() -> Runtime:
    return system_runtime()._replace(random=Random(1))


def controller_on(log: MemoryLog, *, delete_enabled: bool = True) -> QuorumController:
    topics = TopicControl(TopicDefaults(1, 1), delete_enabled=delete_enabled)
    controller = QuorumController(runtime(), log, topics)
    controller.load()
    return controller


def cluster_of(*brokers: int) -> tuple[QuorumController, MemoryLog]:
    log = MemoryLog()
    controller = controller_on(log)
    for broker in brokers:
        controller.register_broker(BrokerIdentity(broker, ENDPOINTS, None, DIRECTORY), registered)
    return controller, log


def add_partitions(
    controller: QuorumController,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None = None,
) -> None:
    """Add partitions to one topic, or raise the error."""
    (outcome,) = create_partitions(controller, [PartitionsRequest(name, count, assignments)])
    if isinstance(outcome, KafkaError):
        raise outcome


def delete_topic(controller: QuorumController, name: str | None, topic_id: bytes) -> TopicImage:
    """Delete one topic, or raise the error."""
    (outcome,) = delete_topics(controller, [(name, topic_id)])
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome.topic
