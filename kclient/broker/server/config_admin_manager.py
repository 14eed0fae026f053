"""Checks of changes of settings before they are sent to the controller (Kafka: ConfigAdminManager).

Settings of brokers are checked by the broker that has them, since it knows its keys.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kclient.broker.controller.configuration_control import APPEND, DELETE, SUBTRACT
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
)
from kclient.broker.network.request_channel import Request
from kclient.broker.server.dynamic_broker_config import broker_key, check_broker_configs
from kclient.broker.server.runtime_loggers import check_level
from kclient.broker.server.served_api import BrokerServices
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    InvalidConfigurationError,
    InvalidRequestError,
    TopicAuthorizationError,
)
from kclient.common.config_def import ConfigType
from kclient.common.errors import KafkaError

LOGGER_RESOURCE = 8
_ALTERED = frozenset({TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE})


class Change(NamedTuple):
    """Change of one setting."""

    name: str
    operation: int
    value: str | None


Wanted = Sequence[tuple[ConfigResource, Sequence[Change]]]


def refusals(
    services: BrokerServices, request: Request, wanted: Wanted, *, is_complete: bool
) -> list[KafkaError | None]:
    """Return for each resource why it is refused, or None.

    All others are sent to the controller, but for loggers, which only this process has.

    Args:
        services: Components of the broker.
        request: The request.
        wanted: Changes by resource.
        is_complete: Whether settings that are not named are removed (AlterConfigs).
    """
    counts = Counter(resource for resource, _ in wanted)
    found: list[KafkaError | None] = []
    for resource, changes in wanted:
        try:
            if counts[resource] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            _check_form(changes)
            if resource[0] == LOGGER_RESOURCE and not is_complete:
                _check_loggers(services, request, resource[1], changes)
                found.append(None)
                continue
            if resource[0] not in _ALTERED:
                raise InvalidRequestError(f"Unknown resource type {resource[0]}")
            if resource[0] == BROKER_RESOURCE:
                present = services.metadata.image.config(*resource)
                _check_broker(services, resource[1], {} if is_complete else present, changes)
            _authorize(services, request, resource)
        except KafkaError as error:
            found.append(error)
        else:
            found.append(None)
    return found


def _check_loggers(
    services: BrokerServices, request: Request, name: str, changes: Sequence[Change]
) -> None:
    services.auth.require_cluster(request, AclOperation.ALTER_CONFIGS)
    node_id = services.config.node_id
    _check_number(name)
    if name != str(node_id):
        raise InvalidRequestError(
            f"Unexpected node id. Expected {node_id}, but received {name:.80}"
        )
    for change in changes:
        check_level(*change)


def _check_form(changes: Sequence[Change]) -> None:
    if len({each.name for each in changes}) < len(changes):
        raise InvalidRequestError("Error due to duplicate config keys")
    nulls = [each.name for each in changes if each.operation != DELETE and each.value is None]
    if nulls:
        names = ", ".join(f"{name:.250}" for name in nulls)
        raise InvalidRequestError(f"Null value not supported for : {names}")


def _authorize(services: BrokerServices, request: Request, resource: ConfigResource) -> None:
    kind, name = resource
    operation = AclOperation.ALTER_CONFIGS
    if kind == TOPIC_RESOURCE:
        if not services.auth.authorize_topic(request, operation, name):
            raise TopicAuthorizationError("Topic authorization failed.")
    elif kind == GROUP_RESOURCE:
        if not services.auth.authorize_group(request, operation, name):
            raise GroupAuthorizationError("Group authorization failed.")
    else:
        services.auth.require_cluster(request, operation)


def _check_broker(
    services: BrokerServices, name: str, present: Mapping[str, str], changes: Sequence[Change]
) -> None:
    if name:
        _check_node_id(name, services.config.node_id)
    values = dict(present)
    for change in changes:
        if change.operation == DELETE:
            values.pop(change.name, None)
        elif change.operation in (APPEND, SUBTRACT):
            _check_is_list(change)
        elif change.value is not None:
            values[change.name] = change.value
    check_broker_configs(values)


def _check_number(name: str) -> None:
    if not (name.isascii() and name.removeprefix("-").isdigit()):
        raise InvalidRequestError(f"Node id must be an integer, but it is: {name:.250}")


def _check_node_id(name: str, node_id: int) -> None:
    _check_number(name)
    if name != str(node_id):
        raise InvalidRequestError(
            f"Unexpected broker id, expected {node_id}, but received {name:.80}"
        )


def _check_is_list(change: Change) -> None:
    key = broker_key(change.name)
    if key is None:
        raise InvalidConfigurationError(f"Unknown config name: {change.name:.250}")
    if key.type is not ConfigType.LIST:
        kind = "append" if change.operation == APPEND else "subtract"
        raise InvalidConfigurationError(
            f"Config value {kind} is not allowed for config key: {change.name}"
        )
