"""Admin calls that change settings, and for quotas of clients."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

from kclient.admin.admin_types import (
    AlterConfigOp,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
)
from kclient.admin.cluster_arguments import (
    check_changes,
    check_configs,
    check_filter,
    check_quota_changes,
    check_types,
)
from kclient.admin.requester import Requester, item_errors, raise_error, raise_failures, raising
from kclient.client.client_request import SimpleBuilder
from kclient.common.errors import KafkaError
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

_Failures = dict[str, KafkaError]
_Result = AlterConfigsResourceResponse | IncrementalAlterConfigsResourceResponse

_OF_ONE_BROKER = {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}
_KINDS = frozenset(ConfigResourceType)


def incremental_alter_configs(
    requester: Requester,
    configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Steps[None]:
    """Change single settings of resources (IncrementalAlterConfigs, KIP-339).

    Raises:
        InvalidConfigurationError: A setting or its value is invalid.
        UnknownTopicOrPartitionError: There is no such topic.
    """
    changes = check_changes(configs)
    requester.limit(timeout)
    return _change_configs(requester, changes, validate_only=validate_only)


def _change_configs(
    requester: Requester,
    changes: Mapping[ConfigResource, Sequence[AlterConfigOp]],
    *,
    validate_only: bool,
) -> Steps[None]:
    failures: _Failures = {}
    for broker_id, resources in _by_broker(changes).items():
        request = IncrementalAlterConfigsRequest(
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
        failures |= yield from _alter(
            requester, broker_id, request, IncrementalAlterConfigsResponse
        )
    raise_failures(failures)


def alter_configs(
    requester: Requester,
    configs: Mapping[ConfigResource, Mapping[str, str]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Steps[None]:
    """Replace all settings of resources (AlterConfigs); deprecated, it resets unnamed ones.

    Raises:
        InvalidConfigurationError: A setting or its value is invalid.
    """
    checked = check_configs(configs)
    warnings.warn(
        "alter_configs resets the settings it does not name; use incremental_alter_configs",
        DeprecationWarning,
        stacklevel=4,  # of the caller of the method, which calls `AdminCore.call`
    )
    requester.limit(timeout)
    return _replace_configs(requester, checked, validate_only=validate_only)


def _replace_configs(
    requester: Requester,
    configs: Mapping[ConfigResource, Mapping[str, str]],
    *,
    validate_only: bool,
) -> Steps[None]:
    failures: _Failures = {}
    for broker_id, resources in _by_broker(configs).items():
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        AlterableConfig(name=name, value=value)
                        for name, value in configs[resource].items()
                    ],
                )
                for resource in resources
            ],
            validate_only=validate_only,
        )
        failures |= yield from _alter(requester, broker_id, request, AlterConfigsResponse)
    raise_failures(failures)


def _by_broker(
    resources: Mapping[ConfigResource, object],
) -> dict[int | None, list[ConfigResource]]:
    """Group resources by the broker that has to receive them, None for any."""
    grouped: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        is_of_one = resource.type in _OF_ONE_BROKER and resource.name != ""
        grouped.setdefault(int(resource.name) if is_of_one else None, []).append(resource)
    return grouped


def _alter(
    requester: Requester,
    broker_id: int | None,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    kind: type[AlterConfigsResponse] | type[IncrementalAlterConfigsResponse],
) -> Steps[_Failures]:
    def read(response: AlterConfigsResponse | IncrementalAlterConfigsResponse) -> _Failures:
        return item_errors(
            (_named(each), each.error_code, each.error_message) for each in response.responses
        )

    builder = SimpleBuilder(request)
    if broker_id is None:
        return requester.send_to_least_loaded(builder, kind, read)
    return requester.send_to_broker(broker_id, builder, kind, read)


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
) -> Steps[None]:
    """Set quotas such as ``producer_byte_rate``, or remove them (AlterClientQuotas, KIP-546).

    Raises:
        InvalidRequestError: A key or a value is invalid.
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

    def read(response: AlterClientQuotasResponse) -> _Failures:
        return item_errors(
            (f"quotas of {dict(_entity(each.entity).entries)}", each.error_code, each.error_message)
            for each in response.entries
        )

    return raising(
        requester.send_to_least_loaded(SimpleBuilder(request), AlterClientQuotasResponse, read)
    )


def _entity(parts: Sequence[EntityData]) -> ClientQuotaEntity:
    return ClientQuotaEntity.of({part.entity_type: part.entity_name for part in parts})
