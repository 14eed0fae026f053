"""IncrementalAlterConfigs and AlterConfigs (Kafka: ConfigurationControlManager).

Settings of topics, groups and client metrics are validated here. Those of brokers are validated by
the broker that receives the request, which knows its keys, but for those that are topics' too. It
also refuses resources and settings that are named twice. Each resource succeeds or fails alone.
 A record of a broker is written even if the value is the
same: it makes the broker read its files, such as key stores, again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kclient.broker.controller.cluster_view import MIN_ISR_CONFIG, ClusterView, ControllerResult
from kclient.broker.controller.feature_control import members_without_elr
from kclient.broker.log.config_check import check_value
from kclient.broker.log.log_config import TOPIC_CONFIG, check_new_configs
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
)
from kclient.broker.metadata.resource_configs import check_client_metrics, check_group_configs
from kclient.common.broker_errors import (
    NONE,
    BrokerIdNotRegisteredError,
    InvalidConfigurationError,
    InvalidRequestError,
    InvalidTopicError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.config_def import ConfigKey, ConfigType
from kclient.common.errors import KafkaError
from kclient.common.types import topic_name_problem
from kclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kclient.protocol.messages.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
)

SET, DELETE, APPEND, SUBTRACT = range(4)
"""Operations of IncrementalAlterConfigs."""

_SERVER_LISTS = {
    name: key
    for key in TOPIC_CONFIG.keys.values()
    if key.type is ConfigType.LIST
    for name in key.server_keys
}
"""Settings of brokers that are lists, with the settings of topics that they are defaults of."""
_MAX_VALUE = 32_767
_NO_DEFAULT = {
    TOPIC_RESOURCE: "Default topic resources are not allowed.",
    CLIENT_METRICS_RESOURCE: "Subscription name can't be empty",
    GROUP_RESOURCE: "Default group resources are not allowed.",
}
"""Errors for resources without a name."""
_TOPIC_KEYS_OF_BROKERS = frozenset({MIN_ISR_CONFIG, "unclean.leader.election.enable"})
"""Settings of brokers that the controller itself reads."""


class _Change(NamedTuple):
    """Change of one setting."""

    name: str
    operation: int
    value: str | None


def incremental_alter_configs(
    view: ClusterView, request: IncrementalAlterConfigsRequest
) -> ControllerResult[IncrementalAlterConfigsResponse]:
    """Plan changes of single settings."""
    wanted = [
        (
            (each.resource_type, each.resource_name),
            [
                _Change(config.name, config.config_operation, config.value)
                for config in each.configs
            ],
        )
        for each in request.resources
    ]
    records, errors = _alter(view, wanted)
    response = IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResourceResponse(
                error_code=NONE if error is None else code_of(error),
                error_message=None if error is None else str(error),
                resource_type=kind,
                resource_name=name,
            )
            for (kind, name), error in errors.items()
        ]
    )
    return ControllerResult(() if request.validate_only else records, response)


def alter_configs(
    view: ClusterView, request: AlterConfigsRequest
) -> ControllerResult[AlterConfigsResponse]:
    """Plan the replacement of all settings of resources."""
    wanted = []
    for each in request.resources:
        resource = (each.resource_type, each.resource_name)
        changes = [_Change(config.name, SET, config.value) for config in each.configs]
        named = {change.name for change in changes}
        changes += [
            _Change(name, DELETE, None)
            for name in view.image.config(*resource)
            if name not in named
        ]
        wanted.append((resource, changes))
    records, errors = _alter(view, wanted)
    response = AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=NONE if error is None else code_of(error),
                error_message=None if error is None else str(error),
                resource_type=kind,
                resource_name=name,
            )
            for (kind, name), error in errors.items()
        ]
    )
    return ControllerResult(() if request.validate_only else records, response)


def _alter(
    view: ClusterView, wanted: Sequence[tuple[ConfigResource, Sequence[_Change]]]
) -> tuple[list[MetadataRecord], dict[ConfigResource, KafkaError | None]]:
    """Return the records of the valid changes, and the error of each resource or None."""
    records: list[MetadataRecord] = []
    errors: dict[ConfigResource, KafkaError | None] = {}
    for resource, changes in wanted:
        error: KafkaError | None = None
        try:
            records += _resource_records(view, resource, changes)
        except KafkaError as problem:
            error = problem
        errors[resource] = error
    return records, errors


def _resource_records(
    view: ClusterView, resource: ConfigResource, changes: Sequence[_Change]
) -> list[MetadataRecord]:
    """Return the records of one resource; raise the error if it is refused."""
    _check_name(view, resource)
    current = view.image.config(*resource)
    values = {each.name: _new_value(resource[0], current, each) for each in changes}
    _check_min_isr(view, resource, values)
    _check_lengths(values)
    _check_values(resource[0], current, values)
    _check_existence(view, resource)
    changed = {name: value for name, value in values.items() if current.get(name) != value}
    written = values if resource[0] == BROKER_RESOURCE else changed
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=resource[0], resource_name=resource[1], name=name, value=value)
        for name, value in written.items()
    ]
    if MIN_ISR_CONFIG in changed and view.elr_enabled:
        # What is eligible was decided by the value before.
        topic = resource[1] if resource[0] == TOPIC_RESOURCE else ""
        records += [*members_without_elr(view, topic), ClearElrRecord(topic_name=topic)]
    return records


def _check_name(view: ClusterView, resource: ConfigResource) -> None:
    kind, name = resource
    if kind == BROKER_RESOURCE:
        _check_node(view, name)
    elif kind not in _NO_DEFAULT:
        raise InvalidRequestError(f"Unexpected resource type {kind}.")
    elif not name:
        raise InvalidRequestError(_NO_DEFAULT[kind])
    elif kind == TOPIC_RESOURCE:
        problem = topic_name_problem(name)
        if problem is not None:
            raise InvalidTopicError(f"Topic name is invalid: {problem}")


def _check_existence(view: ClusterView, resource: ConfigResource) -> None:
    if resource[0] == TOPIC_RESOURCE and view.image.topic(resource[1]) is None:
        raise UnknownTopicOrPartitionError(f"The topic '{resource[1]:.250}' does not exist.")


def _check_node(view: ClusterView, name: str) -> None:
    if not name:
        return
    if not (name.isascii() and name.isdigit()):
        raise InvalidRequestError(f"Node id must be an integer, but it is: {name:.80}")
    if int(name) not in view.image.brokers and int(name) not in view.image.controllers:
        raise BrokerIdNotRegisteredError(f"No node with id {name} found.")


def _check_lengths(values: Mapping[str, str | None]) -> None:
    for value in values.values():
        if value is not None and len(value) > _MAX_VALUE:
            raise InvalidConfigurationError(
                "The configuration value cannot be added because it exceeds the maximum value size "
                f"of {_MAX_VALUE} bytes."
            )


def _new_value(kind: int, current: Mapping[str, str], change: _Change) -> str | None:
    if change.operation == DELETE:
        return None
    if change.operation not in (SET, APPEND, SUBTRACT):
        raise InvalidRequestError(f"Unknown operation type {change.operation}")
    if change.value is None:
        raise InvalidRequestError(f"Null value not supported for : {change.name:.80}")
    if change.operation == SET:
        return change.value
    if not _is_list(kind, change.name):
        operation = "APPEND" if change.operation == APPEND else "SUBTRACT"
        raise InvalidConfigurationError(
            f"Can't {operation} to key {change.name:.80} because its type is not LIST."
        )
    present = _items(current.get(change.name, _default_list(kind, change.name)))
    given = change.value.split(",")
    if change.operation == APPEND:
        return ",".join(dict.fromkeys([*present, *given]))
    for item in given:
        if item in present:
            present.remove(item)
    return ",".join(present)


def _items(text: str) -> list[str]:
    return [item for item in text.split(",") if item]


def _is_list(kind: int, name: str) -> bool:
    key = _key(kind, name)
    return key is not None and key.type is ConfigType.LIST


def _default_list(kind: int, name: str) -> str:
    key = _key(kind, name)
    return ",".join(key.default) if key is not None and isinstance(key.default, tuple) else ""


def _key(kind: int, name: str) -> ConfigKey | None:
    """Return a setting of topics, or of brokers that is their default."""
    if kind == BROKER_RESOURCE:
        return _SERVER_LISTS.get(name)
    return TOPIC_CONFIG.keys.get(name) if kind == TOPIC_RESOURCE else None


def _check_values(kind: int, current: Mapping[str, str], values: Mapping[str, str | None]) -> None:
    """Check the new values of a resource, with those that it keeps."""
    complete = {**current, **values}
    given = {name: value for name, value in complete.items() if value is not None}
    if kind == TOPIC_RESOURCE:
        check_new_configs(given)
    elif kind == BROKER_RESOURCE:
        for name in _TOPIC_KEYS_OF_BROKERS & given.keys():
            check_value(TOPIC_CONFIG.keys[name], given[name])
    elif kind == CLIENT_METRICS_RESOURCE:
        check_client_metrics(given)
    else:
        check_group_configs(given)


def _check_min_isr(
    view: ClusterView, resource: ConfigResource, values: Mapping[str, str | None]
) -> None:
    """With eligible leader replicas, the cluster has one value, which topics may override."""
    if resource[0] != BROKER_RESOURCE or MIN_ISR_CONFIG not in values or not view.elr_enabled:
        return
    if resource[1]:
        raise InvalidConfigurationError(
            f"Broker-level {MIN_ISR_CONFIG} cannot be altered while ELR is enabled."
        )
    if values[MIN_ISR_CONFIG] is None:
        raise InvalidConfigurationError(
            f"Cluster-level {MIN_ISR_CONFIG} cannot be removed while ELR is enabled."
        )
