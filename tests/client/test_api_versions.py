"""API versions and features of the connected brokers."""

import pytest

from kclient.client.api_versions import ApiVersions, NodeApiVersions
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kclient.protocol.versions import VersionRange


@pytest.mark.fault("P7")
def test_highest_common_version_is_used() -> None:
    node = NodeApiVersions("broker 1", {ApiKey.FETCH: VersionRange(4, 11)})
    assert node.latest_usable_version(ApiKey.FETCH, 4, 17) == 11
    assert node.latest_usable_version(ApiKey.FETCH, 0, 7) == 7
    with pytest.raises(UnsupportedVersionError, match=r"FETCH in versions 4-11.*needs 12-17"):
        node.latest_usable_version(ApiKey.FETCH, 12, 17)
    with pytest.raises(UnsupportedVersionError, match=r"FETCH in versions 4-11.*needs 0-3"):
        node.latest_usable_version(ApiKey.FETCH, 0, 3)
    with pytest.raises(UnsupportedVersionError, match="broker 1 does not offer PRODUCE"):
        node.latest_usable_version(ApiKey.PRODUCE, 0, 3)


def versions(**features: object) -> NodeApiVersions:
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=ApiKey.METADATA, min_version=4, max_version=9),
            ApiVersion(api_key=ApiKey.FETCH, min_version=5, max_version=3),  # empty
            ApiVersion(api_key=999, min_version=0, max_version=1),
        ],
        supported_features=[
            SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
        ],
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)],
        finalized_features_epoch=7,
    )
    return NodeApiVersions.from_response("b1", response)


def test_empty_ranges_are_not_offered() -> None:
    offered = versions()
    assert offered.offers(ApiKey.METADATA) == VersionRange(4, 9)
    assert offered.offers(ApiKey.FETCH) is None
    assert 999 in offered.versions


def test_features_are_those_of_the_response() -> None:
    offered = versions()
    assert offered.finalized_features == {"transaction.version": 2}
    assert offered.finalized_features_epoch == 7
    assert offered.supported_features == {"kraft.version": VersionRange(0, 1)}


def test_version_is_that_of_the_present_connection() -> None:
    known, first, second = ApiVersions(), versions(), versions()
    assert known.get("1") is None
    known.update("1", first)
    known.update("1", second)
    assert known.get("1") is second
    known.remove("1")
    known.remove("1")
    assert known.get("1") is None


def test_finalized_level_outlives_the_connection_that_reported_it() -> None:
    known = ApiVersions()
    assert known.finalized_level("transaction.version") == 0
    known.update("1", versions())
    known.update("2", NodeApiVersions("b2", {}, {"transaction.version": 1}, 8))
    known.update("3", NodeApiVersions("b3", {}))
    assert known.finalized_level("transaction.version") == 1
    known.remove("2")
    assert known.finalized_level("transaction.version") == 1
    known.update("1", versions())
    assert known.finalized_level("transaction.version") == 1
    assert known.finalized_level("kraft.version") == 0
