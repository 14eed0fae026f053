"""DescribeConfigs, versions 1-4: settings of topics, brokers, loggers, groups and client metrics.

Differences from Apache Kafka: fewer settings of brokers are dynamic, all others are read-only.
"""

from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kclient.broker.network.request_channel import Request
from kclient.broker.server.config_admin_manager import LOGGER_RESOURCE
from kclient.broker.server.config_helper import (
    ConfigEntry,
    client_metrics_entries,
    group_entries,
    logger_entries,
    only,
)
from kclient.broker.server.runtime_loggers import levels
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    NONE,
    GroupAuthorizationError,
    InvalidRequestError,
    InvalidTopicError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import topic_name_problem
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_MANY = 10
"""Number of resources above which a request is handled as a long one."""


def handle(
    services: BrokerServices, request: Request, body: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe each resource once."""
    distinct = {(wanted.resource_type, wanted.resource_name): wanted for wanted in body.resources}
    return DescribeConfigsResponse(
        results=[_result(services, request, body, resource) for resource in distinct.values()]
    )


def _result(
    services: BrokerServices,
    request: Request,
    body: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_code=NONE,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        _authorize(services, request, resource)
        entries = only(_entries(services, resource), resource.configuration_keys)
    except KafkaError as error:
        result.error_code, result.error_message = code_of(error), str(error) or None
    else:
        result.configs = [_described(entry, body) for entry in entries]
    return result


def _authorize(
    services: BrokerServices, request: Request, resource: DescribeConfigsResource
) -> None:
    kind, name = resource.resource_type, resource.resource_name
    operation = AclOperation.DESCRIBE_CONFIGS
    if kind == TOPIC_RESOURCE:
        if not services.auth.authorize_topic(request, operation, name):
            raise TopicAuthorizationError("Topic authorization failed.")
    elif kind == GROUP_RESOURCE:
        if not services.auth.authorize_group(request, operation, name):
            raise GroupAuthorizationError("Group authorization failed.")
    else:
        services.auth.require_cluster(request, operation)


def _entries(services: BrokerServices, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC_RESOURCE:
        return _topic_entries(services, name)
    if kind == BROKER_RESOURCE:
        if name == "":
            return services.configs.cluster_entries(services.metadata.image)
        if name != str(services.config.node_id):
            raise InvalidRequestError(
                f"Unexpected broker id, expected {services.config.node_id} or empty string, but "
                f"received {name:.80}"
            )
        return services.configs.broker_entries(services.metadata.image)
    if kind == GROUP_RESOURCE:
        if not name:
            raise InvalidRequestError("Group name must not be empty")
        return group_entries(services.metadata.image, name)
    if kind == CLIENT_METRICS_RESOURCE:
        if not name:
            raise InvalidRequestError("Client metrics subscription name must not be empty")
        return client_metrics_entries(services.metadata.image, name)
    if kind == LOGGER_RESOURCE:
        return _logger_entries(services, name)
    raise InvalidRequestError(f"Unsupported resource type: {kind}")


def _logger_entries(services: BrokerServices, name: str) -> list[ConfigEntry]:
    node_id = services.config.node_id
    if not name:
        raise InvalidRequestError("Broker id must not be empty")
    if not (name.isascii() and name.removeprefix("-").isdigit()):
        raise InvalidRequestError(f"Broker id must be an integer, but it is: {name:.80}")
    if name != str(node_id):
        raise InvalidRequestError(
            f"Unexpected broker id, expected {node_id} but received {name:.80}"
        )
    return logger_entries(levels())


def _topic_entries(services: BrokerServices, name: str) -> list[ConfigEntry]:
    problem = topic_name_problem(name)
    if problem is not None:
        raise InvalidTopicError(f"Topic name {name!r:.80} is illegal: {problem}")
    image = services.metadata.image
    if name not in image.topics:
        raise UnknownTopicOrPartitionError("")
    return services.configs.topic_entries(image, name)


def _described(entry: ConfigEntry, body: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=None if entry.is_sensitive else entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if body.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.doc if body.include_documentation else None,
    )


def _failed(body: DescribeConfigsRequest, code: int) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=code,
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in body.resources
        ]
    )


def _is_long(_services: BrokerServices, _request: Request, body: DescribeConfigsRequest) -> bool:
    return len(body.resources) > _MANY


APIS = (ServedApi(DescribeConfigsRequest, handle, _failed, is_long=_is_long),)
