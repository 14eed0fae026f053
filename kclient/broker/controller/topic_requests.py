"""Requests for topics as a controller serves them: messages to plans, and plans to responses.

- CreateTopics: without the settings of the created topics, which the broker that forwards the
  request adds for clients that may describe them.
- CreatePartitions, DeleteTopics.

(Kafka: ControllerApis)
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    TopicPlan,
    TopicRequest,
)
from kclient.common.broker_errors import (
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.uuids import ZERO_UUID
from kclient.protocol.message import Request
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

KeyT = TypeVar("KeyT")
PlanT = TypeVar("PlanT")

TopicKey = tuple[str | None, bytes]
"""A topic's name or, where that is None, its id."""


def create_topics(
    controller: QuorumController,
    request: CreateTopicsRequest,
    on_done: Callable[[CreateTopicsResponse | KafkaError], None],
) -> None:
    """Create topics in one batch; a rejected topic does not affect the others."""
    distinct = {topic.name: topic for topic in request.topics}
    outcomes: dict[str, TopicPlan | KafkaError] = {}
    outcomes.update(_duplicates(topic.name for topic in request.topics))
    wanted: dict[str, TopicRequest] = {}
    for name, topic in distinct.items():
        try:
            if name not in outcomes:
                wanted[name] = _topic_request(topic)
        except KafkaError as error:
            outcomes[name] = error

    def on_planned(plans: list[TopicPlan | KafkaError]) -> None:
        outcomes.update(zip(wanted, plans, strict=True))
        on_done(
            CreateTopicsResponse(topics=[_topic_result(name, outcomes[name]) for name in distinct])
        )

    controller.create_topics(list(wanted.values()), on_planned, validate_only=request.validate_only)


def create_partitions(
    controller: QuorumController,
    request: CreatePartitionsRequest,
    on_done: Callable[[CreatePartitionsResponse | KafkaError], None],
) -> None:
    """Add partitions to topics in one batch; a rejected topic does not affect the others."""
    distinct = {topic.name: topic for topic in request.topics}
    outcomes: dict[str, PartitionsPlan | KafkaError] = {}
    outcomes.update(_duplicates(topic.name for topic in request.topics))
    wanted = [
        _partitions_request(topic) for name, topic in distinct.items() if name not in outcomes
    ]

    def on_planned(plans: list[PartitionsPlan | KafkaError]) -> None:
        outcomes.update(zip((each.name for each in wanted), plans, strict=True))
        results = [_partitions_result(name, outcomes[name]) for name in distinct]
        on_done(CreatePartitionsResponse(results=results))

    controller.create_partitions(wanted, on_planned, validate_only=request.validate_only)


def delete_topics(
    controller: QuorumController,
    request: DeleteTopicsRequest,
    on_done: Callable[[DeleteTopicsResponse | KafkaError], None],
) -> None:
    """Delete topics in one batch; a rejected topic does not affect the others."""
    named = Counter((topic.name, topic.topic_id) for topic in topics_to_delete(request))
    outcomes: dict[TopicKey, DeletionPlan | KafkaError] = {
        key: InvalidRequestError(problem)
        for key, count in named.items()
        if (problem := naming_problem(key, count)) is not None
    }
    wanted = [key for key in named if key not in outcomes]

    def on_planned(plans: list[DeletionPlan | KafkaError]) -> None:
        outcomes.update(zip(wanted, plans, strict=True))
        results = [_deletion_result(key, outcomes[key]) for key in named]
        on_done(DeleteTopicsResponse(responses=results))

    controller.delete_topics(wanted, on_planned)


def handle_request(
    controller: QuorumController, request: Request, on_done: Callable[[Any], None]
) -> None:
    """Handle a request for topics, or one of `QuorumController.handle`.

    Args:
        controller: The controller.
        request: The request.
        on_done: Gets the response when its records are committed, or the `KafkaError`.
    """
    match request:
        case CreateTopicsRequest():
            create_topics(controller, request, on_done)
        case CreatePartitionsRequest():
            create_partitions(controller, request, on_done)
        case DeleteTopicsRequest():
            delete_topics(controller, request, on_done)
        case _:
            controller.handle(request, on_done)


def topics_to_delete(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """Return the topics of a request in any version."""
    return request.topics or [DeleteTopicState(name=name) for name in request.topic_names]


def naming_problem(key: TopicKey, count: int) -> str | None:
    """Return why a topic is not named in a valid way, or None."""
    name, topic_id = key
    if count > 1:
        return "Duplicate topic name or id."
    if (name is None) == (topic_id == ZERO_UUID):
        return "Exactly one of topic name and topic id must be set."
    return None


def _duplicates(names: Iterable[str]) -> dict[str, KafkaError]:
    return {
        name: InvalidRequestError("Duplicate topic name.")
        for name, count in Counter(names).items()
        if count > 1
    }


def _topic_request(topic: CreatableTopic) -> TopicRequest:
    assignments = {item.partition_index: item.broker_ids for item in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise InvalidReplicaAssignmentError("Found multiple manual assignments for a partition.")
    configs = {config.name: config.value for config in topic.configs}
    return TopicRequest(
        topic.name, topic.num_partitions, topic.replication_factor, assignments, configs
    )


def _topic_result(name: str, outcome: TopicPlan | KafkaError) -> CreatableTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatableTopicResult(
            name=name, error_code=code_of(outcome), error_message=str(outcome)
        )
    return CreatableTopicResult(
        name=name,
        topic_id=outcome.topic_id,
        error_message=None,
        num_partitions=outcome.num_partitions,
        replication_factor=outcome.replication_factor,
    )


def _partitions_request(topic: CreatePartitionsTopic) -> PartitionsRequest:
    assignments = topic.assignments
    return PartitionsRequest(
        topic.name,
        topic.count,
        None if assignments is None else [item.broker_ids for item in assignments],
    )


def _partitions_result(
    name: str, outcome: PartitionsPlan | KafkaError
) -> CreatePartitionsTopicResult:
    if isinstance(outcome, KafkaError):
        return CreatePartitionsTopicResult(
            name=name, error_code=code_of(outcome), error_message=str(outcome) or None
        )
    return CreatePartitionsTopicResult(name=name)


def _deletion_result(key: TopicKey, outcome: DeletionPlan | KafkaError) -> DeletableTopicResult:
    name, topic_id = key
    if isinstance(outcome, KafkaError):
        return DeletableTopicResult(
            name=name,
            topic_id=topic_id,
            error_code=code_of(outcome),
            error_message=str(outcome),
        )
    return DeletableTopicResult(name=outcome.topic.name, topic_id=outcome.topic.topic_id)
