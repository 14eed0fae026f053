"""Calls of a controller with their outcomes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TypeVar

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicControl,
    TopicPlan,
    TopicRequest,
)
from kclient.broker.metadata.metadata_image import TopicImage
from kclient.broker.server.served_api import BrokerServices
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    start_broker,
)

OutcomeT = TypeVar("OutcomeT")


class BrokerCalls:
    """Calls of the controller of a broker, with their outcomes as soon as the broker has them."""

    def __init__(self, services: BrokerServices) -> None:
        self._services = services

    def create_topics(
        self,
        requests: Sequence[TopicRequest],
        on_done: Callable[[list[TopicPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Create topics."""
        done = self._applied(on_done)
        self._services.raft.submit(
            lambda each: each.create_topics(requests, done, validate_only=validate_only)
        )

    def create_partitions(
        self,
        requests: Sequence[PartitionsRequest],
        on_done: Callable[[list[PartitionsPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Add partitions to topics."""
        done = self._applied(on_done)
        self._services.raft.submit(
            lambda each: each.create_partitions(requests, done, validate_only=validate_only)
        )

    def delete_topics(
        self,
        named: Sequence[tuple[str | None, bytes]],
        on_done: Callable[[list[DeletionPlan | KafkaError]], None],
    ) -> None:
        """Delete topics."""
        done = self._applied(on_done)
        self._services.raft.submit(lambda each: each.delete_topics(named, done))

    def _applied(self, on_done: Callable[[OutcomeT], None]) -> Callable[[OutcomeT], None]:
        def on_committed(outcome: OutcomeT) -> None:
            offset = self._services.raft.controller.image.offset
            self._services.metadata.await_image(
                lambda image: image.offset >= offset, inf, lambda: on_done(outcome)
            )

        return on_committed


Controller = QuorumController | BrokerCalls


def outcome_of(call: Callable[[Callable[[OutcomeT], None]], None]) -> OutcomeT:
    """Return what a call reports, in this thread or in another one."""
    outcomes: list[OutcomeT] = []
    done = threading.Event()

    def on_done(outcome: OutcomeT) -> None:
        outcomes.append(outcome)
        done.set()

    call(on_done)
    assert done.wait(30)
    (outcome,) = outcomes
    return outcome


def create_topics(
    controller: Controller, requests: Sequence[TopicRequest], *, validate_only: bool = False
) -> list[TopicPlan | KafkaError]:
    """Create topics; return the plan of each, or the error."""
    return outcome_of(
        lambda on_done: controller.create_topics(requests, on_done, validate_only=validate_only)
    )


def create_topic(controller: Controller, request: TopicRequest) -> TopicPlan:
    """Create a topic, or raise the error."""
    (outcome,) = create_topics(controller, [request])
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def create_partitions(
    controller: Controller,
    requests: Sequence[PartitionsRequest],
    *,
    validate_only: bool = False,
) -> list[PartitionsPlan | KafkaError]:
    """Add partitions to topics; return them, or the error, for each topic."""
    return outcome_of(
        lambda on_done: controller.create_partitions(requests, on_done, validate_only=validate_only)
    )


def delete_topics(
    controller: Controller, named: Sequence[tuple[str | None, bytes]]
) -> list[DeletionPlan | KafkaError]:
    """Delete topics; return each, or the error."""
    return outcome_of(lambda on_done: controller.delete_topics(named, on_done))


def assert_created(errors: Mapping[str, KafkaError]) -> None:
    """Check the result of an automatic creation of topics: clients are to retry."""
    assert all(isinstance(error, UnknownTopicOrPartitionError) for error in errors.values())


NO_ID = bytes(16)


def cluster_of(
    *brokers: int, topics: TopicControl | None = None
) -> tuple[QuorumController, MemoryQuorum]:
    """Return an active controller with unfenced brokers, and its quorum."""
    quorum = MemoryQuorum()
    controller = controller_of(quorum, 100, ManualClock(), topics=topics)
    quorum.elect(100)
    for broker in brokers:
        start_broker(controller, broker)
    return controller, quorum


def add_partitions(
    controller: Controller,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None = None,
) -> None:
    """Add partitions to one topic, or raise the error."""
    (outcome,) = create_partitions(controller, [PartitionsRequest(name, count, assignments)])
    if isinstance(outcome, KafkaError):
        raise outcome


def delete_topic(controller: Controller, name: str | None, topic_id: bytes) -> TopicImage:
    """Delete one topic, or raise the error."""
    (outcome,) = delete_topics(controller, [(name, topic_id)])
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome.topic
