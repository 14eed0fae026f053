"""Admin calls that change settings, and for quotas of clients."""

from collections.abc import Mapping, Sequence

from kclient.admin.admin_types import (
    AlterConfigOp,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
)
from kclient.admin.requester import Requester, item_error, raise_failures
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import error_for_code
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

ConfigChanges = Mapping[ConfigResource, Sequence[AlterConfigOp]]
Configs = Mapping[ConfigResource, Mapping[str, str]]
Quotas = dict[str, float]
QuotaChanges = Mapping[ClientQuotaEntity, Mapping[str, float | None]]
_Failures = dict[str, KafkaError]
_Result = AlterConfigsResourceResponse | IncrementalAlterConfigsResourceResponse

_OF_ONE_BROKER = {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}
_KINDS = frozenset(ConfigResourceType)


def incremental_alter_configs(
    requester: Requester, changes: ConfigChanges, deadline_ms: float, *, validate_only: bool
) -> Steps[None]:
    """Change single settings of resources; a broker applies those of its own resource."""
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
            requester, broker_id, request, IncrementalAlterConfigsResponse, deadline_ms
        )
    raise_failures(failures)


def alter_configs(
    requester: Requester, configs: Configs, deadline_ms: float, *, validate_only: bool
) -> Steps[None]:
    """Replace all settings of resources."""
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
        failures |= yield from _alter(
            requester, broker_id, request, AlterConfigsResponse, deadline_ms
        )
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
    deadline_ms: float,
) -> Steps[_Failures]:
    def read(response: AlterConfigsResponse | IncrementalAlterConfigsResponse) -> _Failures:
        return _failures(response.responses)

    builder = SimpleBuilder(request)
    if broker_id is None:
        return requester.send_to_least_loaded(builder, kind, read, deadline_ms)
    return requester.send_to_broker(broker_id, builder, kind, read, deadline_ms)


def _failures(results: Sequence[_Result]) -> _Failures:
    failures = {}
    for result in results:
        kind = result.resource_type
        named = ConfigResourceType(kind).name.lower() if kind in _KINDS else f"resource type {kind}"
        what = f"{named} {result.resource_name!r}"
        error = item_error(what, result.error_code, result.error_message)
        if error is not None:
            failures[what] = error
    return failures


def list_config_resources(
    requester: Requester, types: Sequence[ConfigResourceType], deadline_ms: float
) -> Steps[list[ConfigResource]]:
    """List the resources that have settings, of the given types or of all."""

    def read(response: ListConfigResourcesResponse) -> list[ConfigResource]:
        error = error_for_code(response.error_code)
        if error is not None:
            raise error
        return [
            ConfigResource(ConfigResourceType(found.resource_type), found.resource_name)
            for found in response.config_resources
            if found.resource_type in _KINDS
        ]

    # Version 0 is ListClientMetricsResources, which has no types.
    old = list(types) == [ConfigResourceType.CLIENT_METRICS]
    return requester.send_to_least_loaded(
        _ListConfigResources(types, oldest=0 if old else 1),
        ListConfigResourcesResponse,
        read,
        deadline_ms,
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
    components: Sequence[ClientQuotaFilterComponent],
    deadline_ms: float,
    *,
    strict: bool,
) -> Steps[dict[ClientQuotaEntity, Quotas]]:
    """Return the quotas of the entities that match every condition."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=each.entity_type, match_type=each.match_type, match=each.match
            )
            for each in components
        ],
        strict=strict,
    )

    def read(response: DescribeClientQuotasResponse) -> dict[ClientQuotaEntity, Quotas]:
        error = error_for_code(response.error_code, response.error_message)
        if error is not None:
            raise error
        return {
            _entity(entry.entity): {value.key: value.value for value in entry.values}
            for entry in response.entries or ()
        }

    builder = SimpleBuilder(request)
    return requester.send_to_least_loaded(builder, DescribeClientQuotasResponse, read, deadline_ms)


def alter_client_quotas(
    requester: Requester, changes: QuotaChanges, deadline_ms: float, *, validate_only: bool
) -> Steps[None]:
    """Set quotas of entities, or remove those whose value is None."""
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
        failures = {}
        for entry in response.entries:
            what = f"quotas of {dict(_entity(entry.entity).entries)}"
            error = item_error(what, entry.error_code, entry.error_message)
            if error is not None:
                failures[what] = error
        return failures

    raise_failures(
        (
            yield from requester.send_to_least_loaded(
                SimpleBuilder(request), AlterClientQuotasResponse, read, deadline_ms
            )
        )
    )


def _entity(parts: Sequence[EntityData]) -> ClientQuotaEntity:
    return ClientQuotaEntity.of({part.entity_type: part.entity_name for part in parts})
