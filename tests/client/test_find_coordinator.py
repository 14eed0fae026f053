"""FindCoordinator of a group in the versions with one key and with a list of keys."""

import pytest

from kclient.client.find_coordinator import FindGroupCoordinator, coordinator_of
from kclient.common.broker_errors import CoordinatorNotAvailableError, GroupAuthorizationError
from kclient.common.types import Node
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


@pytest.mark.parametrize("version", range(FindCoordinatorRequest.max_version + 1))
def test_request_has_the_group_in_every_version(version: int) -> None:
    built = FindGroupCoordinator("g").build(version)
    decoded = FindCoordinatorRequest.decode(built.encode_bytes(version), version)
    assert (decoded.key, decoded.coordinator_keys) == (("", ["g"]) if version >= 4 else ("g", []))
    assert decoded.key_type == 0


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
