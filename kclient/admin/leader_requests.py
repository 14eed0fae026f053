"""Requests to the leaders of partitions, with a value or an error for each partition."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kclient.admin.node_requests import Ask, ask_nodes
from kclient.admin.requester import Requester, item_error
from kclient.admin.results import Outcomes
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

V = TypeVar("V")


def ask_leaders(
    requester: Requester, partitions: Sequence[TopicPartition], ask: Ask[TopicPartition, V]
) -> Steps[Outcomes[TopicPartition, V]]:
    """Ask the leader of each partition; see `ask_nodes`."""
    return ask_nodes(
        requester, partitions, lambda waiting: partition_leaders(requester, waiting), ask
    )


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
