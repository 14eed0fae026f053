"""OffsetDelete, version 0: deletes committed offsets of a group (KIP-496).

Offsets of topics that a member consumes are kept. Differences from Apache Kafka: none.
"""

from functools import partial

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

Codes = dict[TopicPartition, int]


def handle(services: BrokerServices, request: Request, body: OffsetDeleteRequest) -> None:
    """Delete offsets of existing partitions; respond with an error code for each."""
    if not services.auth.authorize_group(request, AclOperation.DELETE, body.group_id):
        raise GroupAuthorizationError(f"Not authorized to access group: {body.group_id}")
    refused = _refusals(services, request, body)
    wanted = [
        partition for partition in dict.fromkeys(_partitions(body)) if partition not in refused
    ]
    respond = partial(_respond, request, body, refused)
    services.groups.delete_offsets(body.group_id, wanted, respond)


def _partitions(body: OffsetDeleteRequest) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, part.partition_index)
        for topic in body.topics
        for part in topic.partitions
    ]


def _refusals(services: BrokerServices, request: Request, body: OffsetDeleteRequest) -> Codes:
    image = services.metadata.image
    names = dict.fromkeys(topic.name for topic in body.topics)
    readable = {
        name for name in names if services.auth.authorize_topic(request, AclOperation.READ, name)
    }
    codes: Codes = {}
    for partition in _partitions(body):
        if partition.topic not in readable:
            codes[partition] = code_of(TopicAuthorizationError)
        elif partition.partition < 0 or image.partition(partition) is None:
            codes[partition] = code_of(UnknownTopicOrPartitionError)
    return codes


def _respond(
    request: Request, body: OffsetDeleteRequest, refused: Codes, outcome: Codes | KafkaError
) -> None:
    if isinstance(outcome, KafkaError):
        request.respond(OffsetDeleteResponse(error_code=code_of(outcome)))
        return
    codes = refused | outcome
    request.respond(
        OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=part.partition_index,
                            error_code=codes[TopicPartition(topic.name, part.partition_index)],
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )
    )


APIS = (ServedApi(OffsetDeleteRequest, handle),)
