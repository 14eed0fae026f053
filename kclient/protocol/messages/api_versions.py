"""ApiVersions (18): APIs, versions and features of a broker (KIP-35, KIP-584).

The response always has a version 0 header. The response to a request that is too new has version 0
and error 35, so that the client can decode it.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class ApiVersion(Struct):
    """API and its versions."""

    api_key: int = int16(map_key=True)
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    """Feature with the levels that the broker supports."""

    name: str = string("3+", map_key=True)
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Struct):
    """Feature with the finalized level of the cluster."""

    name: str = string("3+", map_key=True)
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Response, versions="0-5", flexible="3+"):
    """APIs and features of the broker."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, "3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64("3+", tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean("3+", tag=3, ignorable=True)


class ApiVersionsRequest(
    Request,
    api_key=ApiKey.API_VERSIONS,
    response=ApiVersionsResponse,
    versions="0-5",
    flexible="3+",
):
    """Request for the APIs of a broker, with the name of the client software (KIP-511)."""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)
