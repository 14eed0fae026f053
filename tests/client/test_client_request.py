"""Builders, correlation ids and outcomes of requests."""

import pytest

from kclient.client.client_request import ClientResponse, CorrelationIds, SimpleBuilder
from kclient.common.errors import DisconnectedError, ProtocolError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.api_versions import ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse


def outcome(response: Response | None = None, error: DisconnectedError | None = None) -> object:
    return ClientResponse(ApiKey.METADATA, 12, 5, "1", 100.0, 350.0, response, error)


def test_builder_uses_every_stable_version_by_default() -> None:
    request = MetadataRequest(topics=[])
    builder = SimpleBuilder(request)
    assert (builder.api_key, builder.request_type) == (ApiKey.METADATA, MetadataRequest)
    assert builder.oldest_allowed_version == MetadataRequest.min_version
    assert builder.latest_allowed_version == MetadataRequest.max_version
    assert builder.build(3) is request


def test_version_that_kafka_has_not_released_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MetadataRequest, "latest_version_unstable", True)
    builder = SimpleBuilder(MetadataRequest(topics=[]))
    assert builder.latest_allowed_version == MetadataRequest.max_version - 1


def test_versions_can_be_bounded() -> None:
    builder = SimpleBuilder(MetadataRequest(topics=[]), oldest=4, latest=9)
    assert (builder.oldest_allowed_version, builder.latest_allowed_version) == (4, 9)


def test_body_is_the_response_of_the_expected_class() -> None:
    response = MetadataResponse()
    completed = outcome(response)
    assert isinstance(completed, ClientResponse)
    assert completed.has_response()
    assert completed.body(MetadataResponse) is response
    assert completed.latency_ms == 250.0
    with pytest.raises(ProtocolError, match="got MetadataResponse, expected"):
        completed.body(ApiVersionsResponse)


def test_body_of_a_failed_request_raises_its_error() -> None:
    failed = outcome(error=DisconnectedError("gone"))
    assert isinstance(failed, ClientResponse)
    assert not failed.has_response()
    with pytest.raises(DisconnectedError, match="gone"):
        failed.body(MetadataResponse)


def test_correlation_ids_start_again_before_those_of_authenticators() -> None:
    ids = CorrelationIds()
    assert [ids.take() for _ in range(3)] == [0, 1, 2]
    ids._next = 2**31 - 10
    assert [ids.take() for _ in range(3)] == [2**31 - 10, 2**31 - 9, 0]
