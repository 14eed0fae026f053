"""ApiVersions requests."""

import struct

from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.broker_errors import (
    UnsupportedVersionError,
    code_of,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
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


def test_invalid_client_software_name(wire: Wire) -> None:
    request = ApiVersionsRequest(client_software_name="bad name!", client_software_version="1")
    assert wire.ask(request, 3, ApiVersionsResponse).error_code == 42


def test_long_client_id(wire: Wire) -> None:
    wire.send(ApiVersionsRequest(), 0, client_id="x" * 255)
    assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0
