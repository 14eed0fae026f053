"""IncrementalAlterConfigs and AlterConfigs (Kafka: ConfigurationControlManager).

Settings of topics, groups and client metrics are validated here. Those of brokers are validated by
the broker that receives the request, which knows its keys, but for those that are topics' too.
Each resource succeeds or fails alone. A record of a broker is written even if the value is the
same: it makes the broker read its files, such as key stores, again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kclient.broker.controller.cluster_view import MIN_ISR_CONFIG, ClusterView, ControllerResult
from kclient.broker.controller.feature_control import members_without_elr
from kclient.broker.log.log_config import TOPIC_CONFIG, check_new_configs
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigResource,
)
from kclient.common.broker_errors import (
    NONE,
    BrokerIdNotRegisteredError,
    InvalidConfigurationError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.common.config_def import ConfigType
from kclient.common.errors import KafkaError
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

_CLIENT_METRICS = {"interval.ms": (100, 3_600_000), "match": None, "metrics": None}
"""Settings of client metrics, with the limits of numbers; the others are lists."""
_GROUPS = frozenset(
    f"{kind}.{name}"
    for kind in ("consumer", "share", "streams")
    for name in ("heartbeat.interval.ms", "session.timeout.ms")
) | {"share.record.lock.duration.ms", "streams.num.standby.replicas"}
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
    counts = Counter(resource for resource, _ in wanted)
    records: list[MetadataRecord] = []
    errors: dict[ConfigResource, KafkaError | None] = {}
    for resource, changes in wanted:
        error: KafkaError | None = None
        try:
            if counts[resource] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            records += _resource_records(view, resource, changes)
        except KafkaError as problem:
            error = problem
        errors[resource] = error
    return records, errors


def _resource_records(
    view: ClusterView, resource: ConfigResource, changes: Sequence[_Change]
) -> list[MetadataRecord]:
    """Return the records of one resource; raise the error if it is refused."""
    _check_resource(view, resource)
    repeated = [name for name, count in Counter(each.name for each in changes).items() if count > 1]
    if repeated:
        raise InvalidConfigurationError(
            f"Error due to duplicate config keys : {', '.join(repeated)}"
        )
    current = view.image.config(*resource)
    values = {each.name: _new_value(resource[0], current, each) for each in changes}
    _check_values(resource[0], values)
    _check_min_isr(view, resource, values)
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


def _check_resource(view: ClusterView, resource: ConfigResource) -> None:
    kind, name = resource
    if kind == TOPIC_RESOURCE:
        if view.image.topic(name) is None:
            raise UnknownTopicOrPartitionError(f"The topic '{name:.250}' does not exist.")
    elif kind == BROKER_RESOURCE:
        _check_node(view, name)
    elif kind in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        if not name:
            what = "group" if kind == GROUP_RESOURCE else "client metrics"
            raise InvalidRequestError(f"Default {what} resources are not allowed.")
    else:
        raise InvalidRequestError(f"Unexpected resource type {kind}.")


def _check_node(view: ClusterView, name: str) -> None:
    if not name:
        return
    if not (name.isascii() and name.isdigit()):
        raise InvalidRequestError(f"Node id must be an integer, but it is: {name:.80}")
    if int(name) not in view.image.brokers and int(name) not in view.image.controllers:
        raise BrokerIdNotRegisteredError(f"No node with id {name} found.")


def _new_value(kind: int, current: Mapping[str, str], change: _Change) -> str | None:
    if change.operation == DELETE:
        return None
    if change.operation not in (SET, APPEND, SUBTRACT):
        raise InvalidRequestError(f"Unknown operation type {change.operation}")
    if change.value is None:
        raise InvalidConfigurationError(f"Null value not supported for : {change.name:.80}")
    if change.operation == SET:
        return change.value
    if not _is_list(kind, change.name):
        operation = "APPEND" if change.operation == APPEND else "SUBTRACT"
        raise InvalidConfigurationError(
            f"Can't {operation} to key {change.name:.80} because its type is not LIST."
        )
    present = _items(current.get(change.name, _default_list(kind, change.name)))
    given = _items(change.value)
    if change.operation == APPEND:
        return ",".join(dict.fromkeys([*present, *given]))
    return ",".join(item for item in present if item not in given)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _is_list(kind: int, name: str) -> bool:
    if kind == CLIENT_METRICS_RESOURCE:
        return name in _CLIENT_METRICS and _CLIENT_METRICS[name] is None
    key = TOPIC_CONFIG.keys.get(name)
    return kind == TOPIC_RESOURCE and key is not None and key.type is ConfigType.LIST


def _default_list(kind: int, name: str) -> str:
    if kind != TOPIC_RESOURCE:
        return ""
    default = TOPIC_CONFIG.keys[name].default
    return ",".join(default) if isinstance(default, tuple) else ""


def _check_values(kind: int, values: Mapping[str, str | None]) -> None:
    """Check the new values of a resource."""
    given = {name: value for name, value in values.items() if value is not None}
    if kind == TOPIC_RESOURCE:
        check_new_configs(given)
    elif kind == BROKER_RESOURCE:
        read_here = {name: given[name] for name in _TOPIC_KEYS_OF_BROKERS if name in given}
        check_new_configs(read_here)
    elif kind == CLIENT_METRICS_RESOURCE:
        _check_numbers("client metrics", given, _CLIENT_METRICS)
    else:
        _check_numbers("group", given, dict.fromkeys(_GROUPS, (0, 2**31 - 1)))


def _check_numbers(
    what: str, given: Mapping[str, str], limits: Mapping[str, tuple[int, int] | None]
) -> None:
    for name, value in given.items():
        if name not in limits:
            raise InvalidConfigurationError(f"Unknown {what} config name: {name:.80}")
        limit = limits[name]
        if limit is None:
            continue
        is_number = value.isascii() and value.isdigit() and len(value) < 20
        if not is_number or not limit[0] <= int(value) <= limit[1]:
            raise InvalidConfigurationError(
                f"{name}: got {value!r:.80}, expected a number from {limit[0]} to {limit[1]}"
            )


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
