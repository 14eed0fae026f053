"""Admin calls for settings of resources, and for quotas of clients."""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kclient.admin.admin_types import (
    AlterConfigOp,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSynonym,
)
from kclient.admin.cluster_arguments import (
    check_changes,
    check_configs,
    check_filter,
    check_quota_changes,
    check_resources,
    check_types,
)
from kclient.admin.cluster_calls import describe_cluster
from kclient.admin.requester import Requester, item_error, raise_error
from kclient.admin.results import Outcomes, Results, raising_if_single
from kclient.client.client_request import SimpleBuilder
from kclient.common.config_source import ConfigSource
from kclient.common.errors import ProtocolError
from kclient.common.waiting import Steps
from kclient.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kclient.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    OpData,
)
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

Configs = dict[str, ConfigEntry]
_Result = (
    AlterConfigsResourceResponse | IncrementalAlterConfigsResourceResponse | DescribeConfigsResult
)

_OF_ONE_BROKER = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})
_KINDS = frozenset(ConfigResourceType)
_SOURCES = frozenset(ConfigSource)
_TYPES = {
    1: "BOOLEAN", 2: "STRING", 3: "INT", 4: "SHORT", 5: "LONG", 6: "DOUBLE", 7: "LIST", 8: "CLASS",
    9: "PASSWORD",
}  # fmt: skip
_HAS_TYPES = 3


def describe_configs(
    requester: Requester,
    resources: ConfigResource | Iterable[ConfigResource],
    *,
    include_synonyms: bool = False,
    include_documentation: bool = False,
    timeout: float | None = None,
) -> Steps[Results[ConfigResource, dict[str, ConfigEntry]]]:
    """Return the settings of resources by dotted name (DescribeConfigs, KIP-133, KIP-226).

    Args:
        resources: Such as ``ConfigResource(ConfigResourceType.TOPIC, "orders")``.
        include_synonyms: Whether each setting has the settings that its value can come from.
        include_documentation: Whether each setting has its description (KIP-569).
        timeout: Timeout in seconds.

    Returns:
        Settings or error by resource.

    Raises:
        UnknownTopicOrPartitionError: There is no such topic; the error of this resource.
        InvalidRequestError: There is no such broker; the error of this resource.
        UnsupportedVersionError: The broker has no descriptions.
    """
    wanted = check_resources(resources)
    requester.limit(timeout)
    request = DescribeConfigsRequest(
        include_synonyms=include_synonyms, include_documentation=include_documentation
    )
    return raising_if_single(_describe(requester, wanted, request), resources, ConfigResource)


def _describe(
    requester: Requester, resources: Sequence[ConfigResource], request: DescribeConfigsRequest
) -> Steps[Results[ConfigResource, Configs]]:
    # Each broker is asked itself, since a broker returns its static configuration for itself only.
    # Any broker can report that an id is unknown.
    grouped = _by_broker(dict.fromkeys(resources))
    nodes = {}
    if set(grouped) != {None}:
        nodes = {node.id: node for node in (yield from describe_cluster(requester)).nodes}
    outcomes: Outcomes[ConfigResource, Configs] = {}
    for broker_id, asked in grouped.items():
        listed = [
            DescribeConfigsResource(
                resource_type=resource.type, resource_name=resource.name, configuration_keys=None
            )
            for resource in asked
        ]
        builder = SimpleBuilder(
            DescribeConfigsRequest(
                resources=listed,
                include_synonyms=request.include_synonyms,
                include_documentation=request.include_documentation,
            ),
            oldest=_HAS_TYPES if request.include_documentation else None,
        )
        node = None if broker_id is None else nodes.get(broker_id)
        if node is None:
            steps = requester.send_to_least_loaded(builder, DescribeConfigsResponse, _described)
        else:
            steps = requester.send_to_node(node, builder, DescribeConfigsResponse, _described)
        outcomes |= yield from steps
    return Results("describe_configs", outcomes, resources)


def _described(response: DescribeConfigsResponse) -> Outcomes[ConfigResource, Configs]:
    outcomes: Outcomes[ConfigResource, Configs] = {}
    for result in response.results:
        error = item_error(_named(result), result.error_code, result.error_message)
        outcomes[_resource(result)] = error or {each.name: _entry(each) for each in result.configs}
    return outcomes


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=None if config.is_sensitive else config.value,
        source=_source(config.config_source),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(
                each.name, None if config.is_sensitive else each.value, _source(each.source)
            )
            for each in config.synonyms
        ),
        type=_TYPES.get(config.config_type),
        documentation=config.documentation,
    )


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in _SOURCES else ConfigSource.UNKNOWN


def _resource(result: _Result) -> ConfigResource:
    kind = result.resource_type
    if kind not in _KINDS:
        raise ProtocolError(f"resource {result.resource_name!r}: got an unknown type {kind}")
    return ConfigResource(ConfigResourceType(kind), result.resource_name)


def incremental_alter_configs(
    requester: Requester,
    configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Steps[Results[ConfigResource, None]]:
    """Change single settings of resources (IncrementalAlterConfigs, KIP-339).

    Returns:
        None or error by resource.

    Raises:
        InvalidConfigurationError: A setting or its value is invalid; the error of this resource.
        UnknownTopicOrPartitionError: There is no such topic; the error of this resource.
    """
    changes = check_changes(configs)
    requester.limit(timeout)

    def request(resources: Iterable[ConfigResource]) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        IncrementalAlterableConfig(
                            name=change.name, config_operation=change.op_type, value=change.value
                        )
                        for change in changes[resource]
                    ],
                )
                for resource in resources
            ],
            validate_only=validate_only,
        )

    call = "incremental_alter_configs"
    return _alter(requester, call, changes, request, IncrementalAlterConfigsResponse)


def alter_configs(
    requester: Requester,
    configs: Mapping[ConfigResource, Mapping[str, str]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Steps[Results[ConfigResource, None]]:
    """Replace all settings of resources (AlterConfigs); deprecated, it resets unnamed ones.

    Returns:
        None or error by resource.

    Raises:
        InvalidConfigurationError: A setting or its value is invalid; the error of this resource.
    """
    checked = check_configs(configs)
    warnings.warn(
        "alter_configs resets the settings it does not name; use incremental_alter_configs",
        DeprecationWarning,
        stacklevel=4,  # of the caller of the method, which calls `AdminCore.call`
    )
    requester.limit(timeout)

    def request(resources: Iterable[ConfigResource]) -> AlterConfigsRequest:
        return AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        AlterableConfig(name=name, value=value)
                        for name, value in checked[resource].items()
                    ],
                )
                for resource in resources
            ],
            validate_only=validate_only,
        )

    return _alter(requester, "alter_configs", checked, request, AlterConfigsResponse)


def _alter(
    requester: Requester,
    call: str,
    configs: Mapping[ConfigResource, object],
    request: Callable[
        [Iterable[ConfigResource]], AlterConfigsRequest | IncrementalAlterConfigsRequest
    ],
    kind: type[AlterConfigsResponse] | type[IncrementalAlterConfigsResponse],
) -> Steps[Results[ConfigResource, None]]:
    """Send the request for the resources of each node that has to receive some."""

    def read(
        response: AlterConfigsResponse | IncrementalAlterConfigsResponse,
    ) -> Outcomes[ConfigResource, None]:
        return {
            _resource(each): item_error(_named(each), each.error_code, each.error_message)
            for each in response.responses
        }

    outcomes: Outcomes[ConfigResource, None] = {}
    for broker_id, resources in _by_broker(configs, _only_at_itself(requester)).items():
        builder = SimpleBuilder(request(resources))
        if broker_id is None:
            steps = requester.send_to_least_loaded(builder, kind, read)
        else:
            steps = requester.send_to_broker(broker_id, builder, kind, read)
        outcomes |= yield from steps
    return Results(call, outcomes, configs)


def _only_at_itself(requester: Requester) -> Collection[ConfigResourceType]:
    """Return the types of resources that a node changes only for itself."""
    return {ConfigResourceType.BROKER_LOGGER} if requester.uses_controllers else _OF_ONE_BROKER


def _by_broker(
    resources: Mapping[ConfigResource, object],
    types: Collection[ConfigResourceType] = _OF_ONE_BROKER,
) -> dict[int | None, list[ConfigResource]]:
    """Group resources by the node that has to receive them, None for any; `types` have one."""
    grouped: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        is_of_one = resource.type in types and resource.name != ""
        grouped.setdefault(int(resource.name) if is_of_one else None, []).append(resource)
    return grouped


def _named(result: _Result) -> str:
    kind = result.resource_type
    named = ConfigResourceType(kind).name.lower() if kind in _KINDS else f"resource type {kind}"
    return f"{named} {result.resource_name!r}"


def list_config_resources(
    requester: Requester,
    types: ConfigResourceType | Iterable[ConfigResourceType] = (),
    *,
    timeout: float | None = None,
) -> Steps[list[ConfigResource]]:
    """List the resources that can have settings (ListConfigResources, KIP-1142).

    Args:
        types: Kinds of resources; none for all.
        timeout: Timeout in seconds.

    Raises:
        UnsupportedVersionError: The broker lists client metrics only.
    """
    wanted = check_types(types)
    requester.limit(timeout)

    def read(response: ListConfigResourcesResponse) -> list[ConfigResource]:
        raise_error(response.error_code)
        return [
            ConfigResource(ConfigResourceType(found.resource_type), found.resource_name)
            for found in response.config_resources
            if found.resource_type in _KINDS
        ]

    # Version 0 is ListClientMetricsResources, which has no types.
    old = wanted == [ConfigResourceType.CLIENT_METRICS]
    return requester.send_to_least_loaded(
        _ListConfigResources(wanted, oldest=0 if old else 1),
        ListConfigResourcesResponse,
        read,
    )


class _ListConfigResources(SimpleBuilder):
    """Builder of a ListConfigResources request, which has types from version 1 on."""

    def __init__(self, types: Sequence[ConfigResourceType], *, oldest: int) -> None:
        super().__init__(ListConfigResourcesRequest(resource_types=list(types)), oldest=oldest)

    def build(self, version: int) -> ListConfigResourcesRequest:
        request = self.request
        assert isinstance(request, ListConfigResourcesRequest)  # noqa: S101 (narrows for the type checker)
        return request if version >= 1 else ListConfigResourcesRequest()


def describe_client_quotas(
    requester: Requester,
    components: ClientQuotaFilterComponent | Iterable[ClientQuotaFilterComponent] = (),
    *,
    strict: bool = False,
    timeout: float | None = None,
) -> Steps[dict[ClientQuotaEntity, dict[str, float]]]:
    """Return quotas by entity and key (DescribeClientQuotas, KIP-546).

    Args:
        components: Conditions that an entity has to meet; none for all entities.
        strict: Whether an entity may have no types but those of the conditions.
        timeout: Timeout in seconds.
    """
    wanted = check_filter(components)
    requester.limit(timeout)
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=each.entity_type, match_type=each.match_type, match=each.match
            )
            for each in wanted
        ],
        strict=strict,
    )

    def read(response: DescribeClientQuotasResponse) -> dict[ClientQuotaEntity, dict[str, float]]:
        raise_error(response.error_code, response.error_message)
        return {
            _entity(entry.entity): {value.key: value.value for value in entry.values}
            for entry in response.entries or ()
        }

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, DescribeClientQuotasResponse, read)


def alter_client_quotas(
    requester: Requester,
    alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Steps[Results[ClientQuotaEntity, None]]:
    """Set quotas such as ``producer_byte_rate``, or remove them (AlterClientQuotas, KIP-546).

    Returns:
        None or error by entity.

    Raises:
        InvalidRequestError: A key or a value is invalid; the error of this entity.
    """
    changes = check_quota_changes(alterations)
    requester.limit(timeout)
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name) for kind, name in entity.entries
                ],
                ops=[
                    OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in changes.items()
        ],
        validate_only=validate_only,
    )

    def read(response: AlterClientQuotasResponse) -> Results[ClientQuotaEntity, None]:
        outcomes: Outcomes[ClientQuotaEntity, None] = {}
        given = {ClientQuotaEntity.of(dict(entity.entries)): entity for entity in changes}
        for each in response.entries:
            entity = _entity(each.entity)
            what = f"quotas of {dict(entity.entries)}"
            error = item_error(what, each.error_code, each.error_message)
            outcomes[given.get(entity, entity)] = error  # the types may be in another order
        return Results("alter_client_quotas", outcomes, changes)

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, AlterClientQuotasResponse, read)


def _entity(parts: Sequence[EntityData]) -> ClientQuotaEntity:
    return ClientQuotaEntity.of({part.entity_type: part.entity_name for part in parts})
