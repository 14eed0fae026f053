"""DescribeConfigs (32): configuration of topics, brokers and more."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class DescribeConfigsSynonym(Struct):
    """Source of a value, in order of precedence."""

    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


class DescribeConfigsResourceResult(Struct):
    """A configuration value; null if it is sensitive."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    """The configuration of a resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Response, versions="1-4", flexible="4+"):
    """Requested resources."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)


class DescribeConfigsResource(Struct):
    """Resource; null keys request all."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")


class DescribeConfigsRequest(
    Request,
    api_key=ApiKey.DESCRIBE_CONFIGS,
    response=DescribeConfigsResponse,
    versions="1-4",
    flexible="4+",
):
    """Request for configurations."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")
