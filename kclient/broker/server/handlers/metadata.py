"""The cluster's brokers, topics and partitions, with the addresses of the listener of the request.

- Metadata, versions 0-13.
- DescribeCluster, versions 0-2.

Controllers are described on their own listeners; here a DescribeCluster request for them fails with
UNSUPPORTED_ENDPOINT_TYPE.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kclient.broker.metadata.metadata_image import (
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import CLUSTER_NAME, AclOperation, ResourceType
from kclient.common.broker_errors import (
    NONE,
    InvalidTopicError,
    LeaderNotAvailableError,
    ListenerNotFoundError,
    TopicAuthorizationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedEndpointTypeError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import Node, topic_name_problem
from kclient.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.types import INT32_MIN

_NULL_MEANS_ALL = 1
_LISTENER_ERRORS = 6
_NULLABLE_NAME = 12
_MANY = 500
"""Number of topics and partitions above which a request is handled as a long one."""
_BROKERS = 1
_DENIED = TopicAuthorizationError()


def _metadata(
    services: BrokerServices, request: Request, body: MetadataRequest
) -> MetadataResponse | None:
    """Return brokers and topics; create missing topics where automatic creation is enabled."""
    image = services.metadata.image
    missing = _topics_to_create(services, request, image, body)
    creatable = _creatable(services, request, missing)
    refused = {name: _DENIED for name in missing if name not in creatable}
    if not creatable:
        return _response(services, request, body, image, refused)
    services.topic_creation.create(
        creatable,
        lambda errors: request.respond(
            _response(services, request, body, image, {**errors, **refused})
        ),
    )
    return None


class _View(NamedTuple):
    """Metadata as seen at the listener of a request.

    Attributes:
        image: The metadata.
        nodes: Brokers that clients of the listener can connect to, by id.
        no_listener: Error of a partition whose leader has no such listener.
    """

    image: MetadataImage
    nodes: dict[int, Node]
    no_listener: int

    @classmethod
    def of(cls, image: MetadataImage, request: Request) -> "_View":
        nodes = {node.id: node for node in image.live_nodes(request.listener_name)}
        is_old = request.header.api_version < _LISTENER_ERRORS
        error = LeaderNotAvailableError if is_old else ListenerNotFoundError
        return cls(image, nodes, code_of(error()))

    def leader_error(self, leader: int) -> int:
        if leader in self.nodes:
            return NONE
        if leader in self.image.brokers:
            return self.no_listener
        return code_of(LeaderNotAvailableError())


def _response(
    services: BrokerServices,
    request: Request,
    body: MetadataRequest,
    image: MetadataImage,
    errors: Mapping[str, KafkaError],
) -> MetadataResponse:
    """Return the response; `errors` are those of the topics that were to be created."""
    view = _View.of(image, request)
    if _is_for_all(request, body):
        shown = services.auth.shown_topics(request, image.topics)
        responses = [_topic(view, image.topics[name]) for name in shown]
    else:
        responses = [
            _requested(view, each, errors)
            if _may_describe(services, request, image, each)
            else _unauthorized(image, each)
            for each in _distinct(body.topics or ())
        ]
    if request.header.api_version < _NULLABLE_NAME:
        for response in responses:
            response.name = response.name or ""
    if body.include_topic_authorized_operations:
        for response in responses:
            if response.error_code == NONE:
                response.topic_authorized_operations = services.auth.authorized_operations(
                    request, ResourceType.TOPIC, response.name or ""
                )
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in view.nodes.values()
        ],
        cluster_id=services.cluster_id,
        controller_id=services.config.node_id,
        topics=responses,
        cluster_authorized_operations=(
            _cluster_operations(services, request)
            if body.include_cluster_authorized_operations
            else INT32_MIN
        ),
    )


def _may_describe(
    services: BrokerServices, request: Request, image: MetadataImage, wanted: MetadataRequestTopic
) -> bool:
    """Return whether a client may describe a topic; it may learn that an id is unknown."""
    found = _find(image, wanted)
    name = wanted.name if found is None else found.name
    return name is None or services.auth.authorize_topic(request, AclOperation.DESCRIBE, name)


def _unauthorized(image: MetadataImage, wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    """Return what a client learns of a topic that it may not describe: nothing."""
    return MetadataResponseTopic(
        error_code=code_of(_DENIED), name=wanted.name, topic_id=wanted.topic_id
    )


def _cluster_operations(services: BrokerServices, request: Request) -> int:
    """Return the operations of the client on the cluster, or 0 if it may not describe it."""
    if not services.auth.authorize_cluster(request, AclOperation.DESCRIBE):
        return 0
    return services.auth.authorized_operations(request, ResourceType.CLUSTER, CLUSTER_NAME)


def _creatable(services: BrokerServices, request: Request, missing: list[str]) -> list[str]:
    """Return the topics that the client may create, of those that are missing."""
    auth, operation = services.auth, AclOperation.CREATE
    if not missing or auth.authorize_cluster(request, operation, is_logged=False):
        return missing
    return [name for name in missing if auth.authorize_topic(request, operation, name)]


def _is_for_all(request: Request, body: MetadataRequest) -> bool:
    return body.topics is None or (not body.topics and request.header.api_version < _NULL_MEANS_ALL)


def _creates_topics(services: BrokerServices, body: MetadataRequest) -> bool:
    return body.allow_auto_topic_creation and services.config.auto_create_topics_enable


def _topics_to_create(
    services: BrokerServices, request: Request, image: MetadataImage, body: MetadataRequest
) -> list[str]:
    if not _creates_topics(services, body):
        return []
    return [
        topic.name
        for topic in _distinct(body.topics or ())
        if topic.name is not None
        and topic.name not in image.topics
        and topic_name_problem(topic.name) is None
        and _may_describe(services, request, image, topic)
    ]


def _is_long(services: BrokerServices, request: Request, body: MetadataRequest) -> bool:
    """Return whether the response is large."""
    image = services.metadata.image
    if _is_for_all(request, body):
        found: Iterable[TopicImage | None] = image.topics.values()
    else:
        found = [_find(image, topic) for topic in body.topics or ()]
    return sum(1 if topic is None else 1 + len(topic.partitions) for topic in found) > _MANY


def _find(image: MetadataImage, wanted: MetadataRequestTopic) -> TopicImage | None:
    if wanted.name is None:
        return image.topic_by_id(wanted.topic_id)
    return image.topics.get(wanted.name)


def _distinct(topics: Iterable[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Return each topic once, so that a repeated topic does not enlarge the response."""
    by_key = {topic.topic_id if topic.name is None else topic.name: topic for topic in topics}
    return list(by_key.values())


def _requested(
    view: _View, wanted: MetadataRequestTopic, errors: Mapping[str, KafkaError]
) -> MetadataResponseTopic:
    topic = _find(view.image, wanted)
    if topic is not None:
        return _topic(view, topic)
    if wanted.name is None:
        code = code_of(UnknownTopicIdError())
        return MetadataResponseTopic(error_code=code, topic_id=wanted.topic_id, name=None)
    absence: type[KafkaError] = UnknownTopicOrPartitionError
    if topic_name_problem(wanted.name) is not None:
        absence = InvalidTopicError
    code = code_of(errors.get(wanted.name, absence))
    return MetadataResponseTopic(error_code=code, name=wanted.name)


def _topic(view: _View, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            _partition(view, number, registration)
            for number, registration in enumerate(topic.partitions)
        ],
    )


def _partition(
    view: _View, number: int, registration: PartitionRegistration
) -> MetadataResponsePartition:
    error_code = view.leader_error(registration.leader)
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=number,
        leader_id=registration.leader if error_code == NONE else -1,
        leader_epoch=registration.leader_epoch,
        replica_nodes=list(registration.replicas),
        isr_nodes=list(registration.isr),
        offline_replicas=[id_ for id_ in registration.replicas if id_ not in view.nodes],
    )


def _failed(body: MetadataRequest, code: int) -> MetadataResponse:
    return MetadataResponse(
        error_code=code,
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in body.topics or ()
        ],
    )


def _describe_cluster(
    services: BrokerServices, request: Request, body: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Return the cluster id, the controller, and the brokers at the listener of the request."""
    if body.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=code_of(UnsupportedEndpointTypeError()),
            error_message=f"Unsupported endpoint type {body.endpoint_type}",
            endpoint_type=body.endpoint_type,
        )
    image = services.metadata.image
    shown = [
        broker
        for _, broker in sorted(image.brokers.items())
        if body.include_fenced_brokers or not broker.fenced
    ]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.config.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.id,
                host=node.host,
                port=node.port,
                rack=node.rack,
                is_fenced=broker.fenced,
            )
            for broker in shown
            if (node := broker.node(request.listener_name)) is not None
        ],
        cluster_authorized_operations=(
            _cluster_operations(services, request)
            if body.include_cluster_authorized_operations
            else INT32_MIN
        ),
    )


APIS = (
    ServedApi(MetadataRequest, _metadata, _failed, is_long=_is_long),
    ServedApi(DescribeClusterRequest, _describe_cluster),
)
