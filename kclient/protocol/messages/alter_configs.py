"""Settings: AlterConfigs (33), IncrementalAlterConfigs (44), ListConfigResources (74)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class AlterConfigsResourceResponse(Struct):
    """The outcome for a resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


class AlterConfigsResponse(Response, versions="0-2", flexible="2+"):
    """The outcome for each resource."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


class AlterableConfig(Struct):
    """A setting."""

    name: str = string(map_key=True)
    value: str | None = string(nullable="0+")


class AlterConfigsResource(Struct):
    """Resource with its settings."""

    resource_type: int = int8(map_key=True)
    resource_name: str = string(map_key=True)
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(
    Request,
    api_key=ApiKey.ALTER_CONFIGS,
    response=AlterConfigsResponse,
    versions="0-2",
    flexible="2+",
):
    """Replaces all settings of resources."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class IncrementalAlterConfigsResourceResponse(Struct):
    """The outcome for a resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


class IncrementalAlterConfigsResponse(Response, versions="0-1", flexible="1+"):
    """The outcome for each resource."""

    throttle_time_ms: int = int32()
    responses: list[IncrementalAlterConfigsResourceResponse] = array(
        IncrementalAlterConfigsResourceResponse
    )


class IncrementalAlterableConfig(Struct):
    """Change of a setting."""

    name: str = string(map_key=True)
    config_operation: int = int8(map_key=True)
    value: str | None = string(nullable="0+")


class IncrementalAlterConfigsResource(Struct):
    """Resource with changes of settings."""

    resource_type: int = int8(map_key=True)
    resource_name: str = string(map_key=True)
    configs: list[IncrementalAlterableConfig] = array(IncrementalAlterableConfig)


class IncrementalAlterConfigsRequest(
    Request,
    api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    response=IncrementalAlterConfigsResponse,
    versions="0-1",
    flexible="1+",
):
    """Changes single settings of resources."""

    resources: list[IncrementalAlterConfigsResource] = array(IncrementalAlterConfigsResource)
    validate_only: bool = boolean()


class ConfigResource(Struct):
    """A resource."""

    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Response, versions="0-1", flexible="0+"):
    """The resources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)


class ListConfigResourcesRequest(
    Request,
    api_key=ApiKey.LIST_CONFIG_RESOURCES,
    response=ListConfigResourcesResponse,
    versions="0-1",
    flexible="0+",
):
    """Lists the resources that have settings."""

    resource_types: list[int] = array(int8, "1+")
