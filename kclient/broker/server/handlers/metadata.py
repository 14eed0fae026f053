"""Metadata, versions 0-13.

Differences from Apache Kafka: there is no authorizer, so authorized operations are all that apply.
"""

from collections.abc import Iterable

from kclient.broker.controller.metadata_image import (
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import (
    NONE,
    InvalidTopicError,
    LeaderNotAvailableError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.types import topic_name_problem
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.types import INT32_MIN

TOPIC_OPERATIONS = 3576
"""READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, as bits."""
CLUSTER_OPERATIONS = 8096
"""As TOPIC_OPERATIONS, for the cluster: CLUSTER_ACTION and IDEMPOTENT_WRITE, no READ or WRITE."""

_NULL_MEANS_ALL = 1
_NULLABLE_NAME = 12
_AUTO_CREATE = "auto.create.topics.enable"
_MANY = 500
"""Partitions and topics in one response that take longer than others should wait for."""


def handle(services: BrokerServices, request: Request, body: MetadataRequest) -> MetadataResponse:
    """Tell of brokers and topics; create topics that are asked for and missing."""
    image = services.controller.image
    topics = body.topics
    if topics is None or (not topics and request.header.api_version < _NULL_MEANS_ALL):
        answers = [_topic(image, topic) for topic in image.topics.values()]
    else:
        create = body.allow_auto_topic_creation and services.config[_AUTO_CREATE]
        answers = [_answer(services, image, wanted, create=create) for wanted in _distinct(topics)]
    if request.header.api_version < _NULLABLE_NAME:
        for answer in answers:
            answer.name = answer.name or ""
    if body.include_topic_authorized_operations:
        for answer in answers:
            answer.topic_authorized_operations = TOPIC_OPERATIONS
    with_cluster = body.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in image.live_brokers()
        ],
        cluster_id=services.cluster_id,
        controller_id=services.config.node_id,
        topics=answers,
        cluster_authorized_operations=CLUSTER_OPERATIONS if with_cluster else INT32_MIN,
    )


def _is_long(services: BrokerServices, request: Request, body: MetadataRequest) -> bool:
    """Return whether topics have to be created, or the response is large."""
    image = services.controller.image
    topics = body.topics
    if topics is None or (not topics and request.header.api_version < _NULL_MEANS_ALL):
        found = list(image.topics.values())
    else:
        named = [image.topics.get(topic.name or "") for topic in topics]
        found = [topic for topic in named if topic is not None]
        missing = len(found) < len(named)
        if missing and body.allow_auto_topic_creation and services.config[_AUTO_CREATE]:
            return True
    return sum(len(topic.partitions) for topic in found) + len(topics or ()) > _MANY


def _distinct(topics: Iterable[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Return each topic once: what is asked for a thousand times must not be told so often."""
    by_key = {topic.topic_id if topic.name is None else topic.name: topic for topic in topics}
    return list(by_key.values())


def _answer(
    services: BrokerServices, image: MetadataImage, wanted: MetadataRequestTopic, *, create: bool
) -> MetadataResponseTopic:
    if wanted.name is None:
        topic = image.topic_by_id(wanted.topic_id)
        if topic is None:
            code = code_of(UnknownTopicIdError())
            return MetadataResponseTopic(error_code=code, topic_id=wanted.topic_id, name=None)
        return _topic(image, topic)
    topic = image.topics.get(wanted.name)
    if topic is not None:
        return _topic(image, topic)
    return MetadataResponseTopic(
        error_code=code_of(_absence(services, wanted.name, create=create)), name=wanted.name
    )


def _absence(services: BrokerServices, name: str, *, create: bool) -> Exception:
    if topic_name_problem(name) is not None:
        return InvalidTopicError()
    if create:
        return services.topic_creation.create(name)
    return UnknownTopicOrPartitionError()


def _topic(image: MetadataImage, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            _partition(image, number, registration)
            for number, registration in enumerate(topic.partitions)
        ],
    )


def _partition(
    image: MetadataImage, number: int, registration: PartitionRegistration
) -> MetadataResponsePartition:
    live = registration.leader in image.brokers
    return MetadataResponsePartition(
        error_code=NONE if live else code_of(LeaderNotAvailableError()),
        partition_index=number,
        leader_id=registration.leader if live else -1,
        leader_epoch=registration.leader_epoch,
        replica_nodes=list(registration.replicas),
        isr_nodes=list(registration.isr),
        offline_replicas=[id_ for id_ in registration.replicas if id_ not in image.brokers],
    )


def _failed(body: MetadataRequest, code: int) -> MetadataResponse:
    return MetadataResponse(
        error_code=code,
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in body.topics or ()
        ],
    )


API = ServedApi(MetadataRequest, handle, _failed, is_long=_is_long)
