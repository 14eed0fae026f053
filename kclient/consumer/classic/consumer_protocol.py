"""Encoding of subscriptions and assignments (Kafka: ConsumerProtocol).

They are written in the latest version, as by Kafka's consumer, and read in any version.
"""

from collections.abc import Iterable

from kclient.common.types import TopicPartition
from kclient.consumer.assignors import Assignment, MemberSubscription
from kclient.protocol.messages.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedTopicPartitions,
)

PROTOCOL_TYPE = "consumer"


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """Encode a subscription."""
    return ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            OwnedTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(subscription.owned_partitions).items()
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    ).encode_versioned(ConsumerProtocolSubscription.max_version)


def decode_subscription(data: bytes, group_instance_id: str | None) -> MemberSubscription:
    """Decode the subscription of a member.

    Raises:
        ProtocolError: The bytes are not a valid subscription.
    """
    message = ConsumerProtocolSubscription.decode_versioned(data)
    return MemberSubscription(
        tuple(message.topics),
        message.user_data,
        tuple(
            TopicPartition(owned.topic, number)
            for owned in message.owned_partitions
            for number in owned.partitions
        ),
        message.generation_id,
        group_instance_id,
        message.rack_id,
    )


def encode_assignment(assignment: Assignment) -> bytes:
    """Encode an assignment."""
    return ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    ).encode_versioned(ConsumerProtocolAssignment.max_version)


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment; empty bytes are an empty assignment.

    Raises:
        ProtocolError: The bytes are not a valid assignment.
    """
    if not data:
        return Assignment(())
    message = ConsumerProtocolAssignment.decode_versioned(data)
    return Assignment(
        tuple(
            TopicPartition(assigned.topic, number)
            for assigned in message.assigned_partitions
            for number in assigned.partitions
        ),
        message.user_data,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics
