"""Requests to the leaders of partitions, with a value or an error for each partition."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kclient.admin.requester import Requester, is_final, item_error
from kclient.admin.results import Outcomes
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

V = TypeVar("V")

Ask = Callable[[Node, list[TopicPartition]], Steps[Outcomes[TopicPartition, V]]]
"""Asks a broker for the partitions that it leads."""


def ask_leaders(
    requester: Requester, partitions: Sequence[TopicPartition], ask: Ask[V]
) -> Steps[Outcomes[TopicPartition, V]]:
    """Ask the leader of each partition; return the value or the error of each partition.

    Partitions with a retriable error are asked for again until the deadline. Those that a leader
    omits have no outcome.

    Raises:
        KafkaTimeoutError: The deadline passed, and no partition has an outcome.
    """
    outcomes: Outcomes[TopicPartition, V] = {}

    def attempt() -> Steps[None]:
        waiting = [partition for partition in partitions if partition not in outcomes]
        found = yield from _ask_once(requester, waiting, ask)
        problems = []
        for partition, outcome in found.items():
            if isinstance(outcome, KafkaError) and not is_final(outcome):
                problems.append(outcome)
            else:
                outcomes[partition] = outcome
        if problems:
            raise problems[0]

    try:
        yield from requester.retried(attempt)
    except KafkaError as error:
        if is_final(error) or not outcomes:
            raise
        outcomes |= {each: error for each in partitions if each not in outcomes}
    return outcomes


def _ask_once(
    requester: Requester, partitions: Sequence[TopicPartition], ask: Ask[V]
) -> Steps[Outcomes[TopicPartition, V]]:
    outcomes: Outcomes[TopicPartition, V] = {}
    by_leader: dict[Node, list[TopicPartition]] = {}
    for partition, leader in (yield from partition_leaders(requester, partitions)).items():
        if isinstance(leader, KafkaError):
            outcomes[partition] = leader
        else:
            by_leader.setdefault(leader, []).append(partition)
    for leader, led in by_leader.items():
        try:
            found = yield from ask(leader, led)
        except KafkaTimeoutError:
            raise
        except KafkaError as error:  # such as a lost connection
            outcomes |= dict.fromkeys(led, error)
        else:
            outcomes |= {each: found[each] for each in led if each in found}
    return outcomes


def partition_leaders(
    requester: Requester, partitions: Sequence[TopicPartition]
) -> Steps[Outcomes[TopicPartition, Node]]:
    """Look up the leader of each partition; return it or the error of each partition."""
    topics = [MetadataRequestTopic(name=name) for name in by_topic(partitions)]
    builder = SimpleBuilder(
        MetadataRequest(topics=topics, allow_auto_topic_creation=False), oldest=4
    )
    response = yield from requester.send_to_least_loaded(
        builder, MetadataResponse, lambda response: response
    )
    nodes = {
        broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    errors: dict[str, KafkaError] = {}
    leaders: dict[TopicPartition, Node | None] = {}
    for topic in response.topics:
        name = topic.name or ""
        error = item_error(f"topic {name!r}", topic.error_code, None)
        if error is not None:
            errors[name] = error
        for part in topic.partitions:
            leaders[TopicPartition(name, part.partition_index)] = nodes.get(part.leader_id)
    return {
        partition: errors.get(partition.topic) or _leader(leaders, partition)
        for partition in partitions
    }


def _leader(
    leaders: dict[TopicPartition, Node | None], partition: TopicPartition
) -> Node | KafkaError:
    if partition not in leaders:
        return UnknownTopicOrPartitionError(f"partition {partition}: it does not exist")
    leader = leaders[partition]
    return leader or LeaderNotAvailableError(f"partition {partition}: it has no leader")


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers by topic."""
    grouped: dict[str, list[int]] = {}
    for topic, number in partitions:
        grouped.setdefault(topic, []).append(number)
    return grouped
