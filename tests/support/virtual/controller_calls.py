"""Calls of the controller that return the outcome, for logs that commit at once."""

from collections.abc import Mapping, Sequence

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicPlan,
    TopicRequest,
)
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError


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
