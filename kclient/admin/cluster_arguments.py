"""Checks of arguments for settings, replicas, the quorum and quotas, made before any request.

Each returns what it checked, or raises `InvalidTypeError` or `InvalidArgumentError` with the
expected form.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from kclient.admin.admin_types import (
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
    FeatureUpdate,
    QuotaMatchType,
    RaftVoterEndpoint,
    TopicPartitionReplica,
)
from kclient.admin.arguments import check_int, check_list, check_partition, check_str_values
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import TopicPartition, check_topic_name
from kclient.common.upgrade_type import UpgradeType
from kclient.common.uuids import text_to_uuid

K = TypeVar("K")
V = TypeVar("V")
E = TypeVar("E", bound=IntEnum)

_MAX_PORT = 65_535
_NUMBERED = {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}
_WITHOUT_VALUE = {AlterConfigOpType.DELETE}


def check_enum(what: str, value: object, kind: type[E]) -> E:
    """Return a member of an enumeration."""
    if not isinstance(value, kind):
        names = ", ".join(member.name for member in kind)
        raise InvalidTypeError(
            f"{what}: got {describe(value)}, expected a {kind.__name__}: {names}"
        )
    return value


def _mapping(what: str, given: Mapping[K, V], of: str) -> Mapping[K, V]:
    if not isinstance(given, Mapping):
        raise InvalidTypeError(f"{what}: got {describe(given)}, expected a dict of {of}")
    if not given:
        raise InvalidArgumentError(f"{what}: got {{}}, expected at least one item")
    return given


def check_instance(what: str, value: object, kind: type[V]) -> V:
    """Return an instance of a class."""
    if not isinstance(value, kind):
        raise InvalidTypeError(f"{what}: got {describe(value)}, expected a {kind.__name__}")
    return value


def check_text(what: str, value: object) -> None:
    """Reject anything but a non-empty str."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what}: got {describe(value)}, expected a str")
    if not value:
        raise InvalidArgumentError(f"{what}: got '', expected a non-empty str")


def _check_resource(resource: object) -> None:
    checked = check_instance("resource", resource, ConfigResource)
    kind, name = (
        check_enum("type of a ConfigResource", checked.type, ConfigResourceType),
        checked.name,
    )
    what = f"name of a {kind.name} resource"
    if kind in _NUMBERED:
        if not isinstance(name, str):
            raise InvalidTypeError(f"{what}: got {describe(name)}, expected a str")
        if name and not (name.isascii() and name.isdecimal()):
            raise InvalidArgumentError(f"{what}: got {describe(name)}, expected a broker id or ''")
    elif kind is ConfigResourceType.TOPIC:
        check_topic_name(name)
    else:
        check_text(what, name)


def check_resources(
    resources: ConfigResource | Iterable[ConfigResource],
) -> list[ConfigResource]:
    """Return resources with settings, at least one."""
    wanted = check_list("resources", resources, ConfigResource)
    for resource in wanted:
        _check_resource(resource)
    return wanted


def check_changes(
    configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
) -> dict[ConfigResource, list[AlterConfigOp]]:
    """Return changes of settings by resource."""
    checked = {}
    for resource, changes in _mapping("configs", configs, "ConfigResource to changes").items():
        _check_resource(resource)
        checked[resource] = check_list(f"changes of {resource.name!r}", changes, AlterConfigOp)
        for change in checked[resource]:
            _check_change(check_instance("configs", change, AlterConfigOp))
    return checked


def _check_change(change: AlterConfigOp) -> None:
    check_text("name of a setting", change.name)
    kind = check_enum(f"op_type of {change.name!r}", change.op_type, AlterConfigOpType)
    if kind in _WITHOUT_VALUE:
        if change.value is not None:
            raise InvalidArgumentError(
                f"value of {change.name!r}: got {describe(change.value)}, expected None to delete"
            )
    elif not isinstance(change.value, str):
        raise InvalidTypeError(
            f"value of {change.name!r}: got {describe(change.value)}, expected a str; write "
            "numbers and booleans as in Kafka's documentation"
        )


def check_configs(
    configs: Mapping[ConfigResource, Mapping[str, str]],
) -> Mapping[ConfigResource, Mapping[str, str]]:
    """Return settings by resource."""
    for resource, settings in _mapping("configs", configs, "ConfigResource to settings").items():
        _check_resource(resource)
        check_str_values(f"configs of {resource.name!r}", settings)
    return configs


def check_types(
    types: ConfigResourceType | Iterable[ConfigResourceType],
) -> list[ConfigResourceType]:
    """Return kinds of resources, perhaps none."""
    if isinstance(types, ConfigResourceType):
        return [types]
    if isinstance(types, str | bytes) or not isinstance(types, Iterable):
        raise InvalidTypeError(f"types: got {describe(types)}, expected a list")
    return [check_enum("types", kind, ConfigResourceType) for kind in types]


def check_filter(
    components: object,
) -> list[ClientQuotaFilterComponent]:
    """Return conditions on entities, perhaps none."""
    if isinstance(components, ClientQuotaFilterComponent):
        components = [components]
    if isinstance(components, str | bytes) or not isinstance(components, Iterable):
        raise InvalidTypeError(f"components: got {describe(components)}, expected a list")
    listed = list(components)
    for each in listed:
        component = check_instance("components", each, ClientQuotaFilterComponent)
        check_text("entity_type", component.entity_type)
        kind = check_enum("match_type", component.match_type, QuotaMatchType)
        if kind is QuotaMatchType.EXACT:
            check_text("match", component.match)
        elif component.match is not None:
            raise InvalidArgumentError(
                f"match: got {describe(component.match)}, expected None for {kind.name}"
            )
    return listed


def check_quota_changes(
    alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
) -> Mapping[ClientQuotaEntity, Mapping[str, float | None]]:
    """Return changes of quotas by entity."""
    for entity, values in _mapping("alterations", alterations, "entity to quotas").items():
        entries = check_instance("alterations", entity, ClientQuotaEntity).entries
        if not entries:
            raise InvalidArgumentError("alterations: got an empty entity, expected a type")
        for kind, name in entries:
            check_text("entity type", kind)
            if name is not None:
                check_text(f"name of the {kind}", name)
        for key, value in _mapping(f"quotas of {dict(entries)}", values, "name to number").items():
            check_text("name of a quota", key)
            if value is not None and (not _is_number(value)):
                raise InvalidTypeError(
                    f"quota {key!r}: got {describe(value)}, expected a number, or None to remove it"
                )
    return alterations


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_reassignments(
    reassignments: Mapping[TopicPartition, Iterable[int] | None],
) -> dict[TopicPartition, list[int] | None]:
    """Return target replicas by partition."""
    checked: dict[TopicPartition, list[int] | None] = {}
    for key, replicas in _mapping("reassignments", reassignments, "partition to brokers").items():
        check_partition(key)
        partition = TopicPartition(*key)
        if replicas is None:
            checked[partition] = None
            continue
        listed = check_list(f"replicas of {key}", replicas, int)
        for broker_id in listed:
            check_int(f"replica of {key}", broker_id, 0)
        if len(set(listed)) < len(listed):
            raise InvalidArgumentError(
                f"replicas of {key}: got {listed}, expected each broker once"
            )
        checked[partition] = listed
    return checked


def check_broker_ids(broker_ids: int | Iterable[int]) -> list[int]:
    """Return broker ids, each once."""
    listed = check_list("broker_ids", broker_ids, int)
    for broker_id in listed:
        check_int("broker_ids", broker_id, 0)
    return list(dict.fromkeys(listed))


def check_replicas(replicas: Sequence[TopicPartitionReplica]) -> list[TopicPartitionReplica]:
    """Return replicas."""
    for each in replicas:
        replica = check_instance("replicas", each, TopicPartitionReplica)
        check_topic_name(replica.topic)
        check_int(f"partition of {replica.topic!r}", replica.partition, 0)
        check_int("broker_id", replica.broker_id, 0)
    return list(replicas)


def check_assignment(
    assignment: Mapping[TopicPartitionReplica, str],
) -> Mapping[TopicPartitionReplica, str]:
    """Return paths of directories by replica."""
    check_replicas(list(_mapping("replica_assignment", assignment, "replica to path")))
    for replica, path in assignment.items():
        check_text(f"directory of {replica}", path)
    return assignment


def check_voter(voter_id: int, directory_id: str) -> None:
    """Reject an invalid id of a node or of its directory."""
    check_int("voter_id", voter_id, 0)
    check_text("voter_directory_id", directory_id)
    text_to_uuid(directory_id)


def check_endpoints(
    endpoints: RaftVoterEndpoint | Iterable[RaftVoterEndpoint],
) -> list[RaftVoterEndpoint]:
    """Return addresses of a controller."""
    listed = check_list("endpoints", endpoints, RaftVoterEndpoint)
    for each in listed:
        endpoint = check_instance("endpoints", each, RaftVoterEndpoint)
        check_text("listener of an endpoint", endpoint.listener)
        check_text("host of an endpoint", endpoint.host)
        check_int("port of an endpoint", endpoint.port, 1)
        if endpoint.port > _MAX_PORT:
            raise InvalidArgumentError(
                f"port of an endpoint: got {endpoint.port}, expected 1 to {_MAX_PORT}"
            )
    return listed


def check_updates(updates: Mapping[str, FeatureUpdate]) -> Mapping[str, FeatureUpdate]:
    """Return new levels by feature."""
    for name, each in _mapping("feature_updates", updates, "feature to FeatureUpdate").items():
        check_text("name of a feature", name)
        update = check_instance(f"update of {name!r}", each, FeatureUpdate)
        check_int(f"max_version_level of {name!r}", update.max_version_level, 0)
        kind = check_enum(f"upgrade_type of {name!r}", update.upgrade_type, UpgradeType)
        if update.max_version_level == 0 and kind is UpgradeType.UPGRADE:
            raise InvalidArgumentError(
                f"upgrade_type of {name!r}: got UPGRADE to level 0, expected a downgrade"
            )
    return updates
