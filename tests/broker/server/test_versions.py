"""Every version that is told is answered, and what is not served is told so."""

import struct

import pytest

from kclient.broker.server.api_table import API_TABLE
from kclient.common.broker_errors import (
    UnsupportedVersionError,
    code_of,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.testing import EmbeddedCluster
from tests.support.requests import filled_request, plain_request
from tests.support.wire import Wire

SERVED = [(key, version) for key, api in sorted(API_TABLE.items()) for version in api.versions]


@pytest.mark.parametrize(("key", "version"), SERVED, ids=lambda value: str(int(value)))
def test_every_version_served_is_answered(
    cluster: EmbeddedCluster, key: ApiKey, version: int
) -> None:
    kind = API_TABLE[key].request_type
    with Wire(cluster.bootstrap_servers) as wire:
        name = f"filled-{key}-{version}"
        topic_id = wire.create_topic(name)
        for asked in (filled_request(kind, version, name, topic_id), plain_request(kind, version)):
            answer = wire.ask(asked, version, kind.response_type)
            assert isinstance(answer, kind.response_type)


def test_only_what_is_served_is_told(wire: Wire) -> None:
    answer = wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    told = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert told == {
        key: (api.versions.start, api.versions.stop - 1) for key, api in API_TABLE.items()
    }
    assert told[ApiKey.PRODUCE] == (3, 13)
    assert told[ApiKey.FETCH] == (4, 18)


def test_too_new_api_versions_is_answered_in_version_0(wire: Wire) -> None:
    wire.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0")
    correlation_id, answer = wire.receive(ApiVersionsResponse, 0)
    assert correlation_id == 7
    assert answer.error_code == code_of(UnsupportedVersionError())
    assert ApiKey.API_VERSIONS in {api.api_key for api in answer.api_keys}
    # The connection goes on.
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    assert wire.ask(request, 4, ApiVersionsResponse).error_code == 0


def test_clients_must_name_themselves_properly(wire: Wire) -> None:
    request = ApiVersionsRequest(client_software_name="bad name!", client_software_version="1")
    assert wire.ask(request, 3, ApiVersionsResponse).error_code == 42


def test_a_long_client_id_is_fine(wire: Wire) -> None:
    wire.send(ApiVersionsRequest(), 0, client_id="x" * 255)
    assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0
