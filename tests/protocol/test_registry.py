"""Request classes by API."""

import pytest

from kclient.protocol.message import Request
from kclient.protocol.messages.group_membership import HeartbeatRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.registry import REQUESTS
from tests.protocol.catalogue import MESSAGES


def test_newest_version_of_init_producer_id_is_unstable() -> None:
    assert [kind for kind in MESSAGES if kind.latest_version_unstable] == [InitProducerIdRequest]


@pytest.mark.parametrize("request_type", REQUESTS.values(), ids=lambda kind: kind.__name__)
def test_response_has_versions_of_its_request(request_type: type[Request]) -> None:
    response_type = request_type.response_type
    assert response_type.valid_versions == request_type.valid_versions
    assert response_type.flexible_versions == request_type.flexible_versions
    assert response_type.api_key is request_type.api_key


def test_every_request_is_registered() -> None:
    assert set(REQUESTS.values()) == {kind for kind in MESSAGES if issubclass(kind, Request)}


def test_registry_is_ordered_by_api_and_read_only() -> None:
    assert list(REQUESTS) == sorted(REQUESTS)
    assert all(request.api_key == key for key, request in REQUESTS.items())
    with pytest.raises(TypeError):
        REQUESTS[0] = HeartbeatRequest  # type: ignore[index]  # what this checks
