"""ApiVersions requests."""

import struct

import pytest

from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.broker_errors import (
    UnsupportedVersionError,
    code_of,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.clients.wire import Wire


def test_only_served_apis_are_listed(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert listed == {
        key: (api.versions.start, api.versions.stop - 1) for key, api in API_TABLE.items()
    }
    assert listed[ApiKey.PRODUCE] == (3, 13)
    assert listed[ApiKey.FETCH] == (4, 18)


def test_unsupported_api_versions_gets_version_0_response(wire: Wire) -> None:
    wire.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0")
    correlation_id, response = wire.receive(ApiVersionsResponse, 0)
    assert correlation_id == 7
    assert response.error_code == code_of(UnsupportedVersionError())
    assert ApiKey.API_VERSIONS in {api.api_key for api in response.api_keys}
    # The connection stays open.
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert wire.ask(request, 4, ApiVersionsResponse).error_code == 0


def test_features_that_begin_with_0_are_supported_from_version_4(wire: Wire) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    for version, expected in ((3, None), (4, (0, 2))):
        response = wire.ask(request, version, ApiVersionsResponse)
        supported = {
            each.name: (each.min_version, each.max_version) for each in response.supported_features
        }
        assert supported.get("transaction.version") == expected
        finalized = {each.name: each.max_version_level for each in response.finalized_features}
        assert finalized["transaction.version"] == 2


def test_invalid_client_software_name(wire: Wire) -> None:
    request = ApiVersionsRequest(client_software_name="bad name!", client_software_version="1")
    assert wire.ask(request, 3, ApiVersionsResponse).error_code == 42


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, 0),
        ("own", 1, 0),
        ("other", 1, 129),
        ("own", 2, 129),
        (None, 1, 42),
        ("own", -1, 42),
    ],
)
def test_misrouted_client_must_rebootstrap(  # the codes of Apache Kafka 4.4.0
    wire: Wire, cluster_id: str | None, node_id: int, code: int
) -> None:
    own = wire.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
    request = ApiVersionsRequest(
        client_software_name="test",
        client_software_version="1",
        cluster_id=own.cluster_id if cluster_id == "own" else cluster_id,
        node_id=own.brokers[0].node_id if node_id == 1 else node_id,
    )
    assert wire.ask(request, 5, ApiVersionsResponse).error_code == code


def test_long_client_id(wire: Wire) -> None:
    wire.send(ApiVersionsRequest(), 0, client_id="x" * 255)
    assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0
