"""ApiVersions (18): which APIs and versions the other side speaks, and its features (KIP-35, 584).

The response always travels behind a version 0 header, and a request that is too new is answered by
version 0 with error 35, so that a client which guessed wrong can read the answer.
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import array, boolean, int16, int32, int64, string
from kclient.protocol.message import Request, Response
from kclient.protocol.struct import Struct


class ApiVersion(Struct):
    """An API with the versions it is served in."""

    api_key: int = int16(map_key=True)
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    """A feature with the levels the broker could run at."""

    name: str = string("3+", map_key=True)
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Struct):
    """A feature with the level the cluster runs at."""

    name: str = string("3+", map_key=True)
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Response, versions="0-5", flexible="3+"):
    """The APIs and features of the broker."""

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
    """Asks for the APIs of a broker; names the client (KIP-511)."""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)
