"""FindCoordinator in the versions with one key and with a list of keys."""

import pytest

from kclient.client.find_coordinator import (
    CoordinatorType,
    FindCoordinator,
    coordinator_of,
    coordinators_of,
)
from kclient.common.broker_errors import CoordinatorNotAvailableError, GroupAuthorizationError
from kclient.common.errors import ProtocolError
from kclient.common.types import Node
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


@pytest.mark.parametrize(
    ("kind", "key_type", "oldest"),
    [(CoordinatorType.GROUP, 0, 0), (CoordinatorType.TRANSACTION, 1, 1)],
)
def test_request_has_key_and_type_in_every_version(
    kind: CoordinatorType, key_type: int, oldest: int
) -> None:
    builder = FindCoordinator(["k"], kind)
    assert builder.oldest_allowed_version == oldest
    for version in range(oldest, FindCoordinatorRequest.max_version + 1):
        built = builder.build(version)
        decoded = FindCoordinatorRequest.decode(built.encode_bytes(version), version)
        keys = (decoded.key, decoded.coordinator_keys)
        assert keys == (("", ["k"]) if version >= 4 else ("k", []))
        assert decoded.key_type == key_type


def test_several_keys_need_the_version_with_a_list() -> None:
    builder = FindCoordinator(["a", "b"], CoordinatorType.GROUP)
    assert builder.oldest_allowed_version == 4
    assert builder.build(4).coordinator_keys == ["a", "b"]


def test_key_that_the_response_omits_has_an_error() -> None:
    found = Coordinator(key="a", node_id=2, host="b", port=2)
    outcomes = coordinators_of(FindCoordinatorResponse(coordinators=[found]), ["a", "b"])
    assert outcomes["a"] == Node(2, "b", 2)
    assert isinstance(outcomes["b"], ProtocolError)
    nothing = coordinators_of(FindCoordinatorResponse(), ["a", "b"])
    assert [type(each) for each in nothing.values()] == [ProtocolError] * 2


def test_coordinator_of_old_versions_is_in_the_response() -> None:
    response = FindCoordinatorResponse(node_id=3, host="h", port=9)
    assert coordinator_of(response, "g") == Node(3, "h", 9)


def test_coordinator_is_that_of_the_group() -> None:
    response = FindCoordinatorResponse(
        coordinators=[
            Coordinator(key="other", node_id=1, host="a", port=1, error_code=15),
            Coordinator(key="g", node_id=2, host="b", port=2),
        ]
    )
    assert coordinator_of(response, "g") == Node(2, "b", 2)
    with pytest.raises(CoordinatorNotAvailableError):
        coordinator_of(response, "other")


def test_error_has_the_message_of_the_broker() -> None:
    with pytest.raises(GroupAuthorizationError, match="no access"):
        coordinator_of(FindCoordinatorResponse(error_code=30, error_message="no access"), "g")
