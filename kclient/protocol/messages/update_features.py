"""UpdateFeatures (57): finalized feature levels (KIP-584)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class UpdatableFeatureResult(Struct):
    """The outcome for a feature."""

    feature: str = string(map_key=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UpdateFeaturesResponse(Response, versions="0-2", flexible="0+"):
    """The outcome, up to version 1 for each feature."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)


class FeatureUpdateKey(Struct):
    """Change of a feature level."""

    feature: str = string(map_key=True)
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(
    Request,
    api_key=ApiKey.UPDATE_FEATURES,
    response=UpdateFeaturesResponse,
    versions="0-2",
    flexible="0+",
):
    """Changes finalized feature levels."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")
