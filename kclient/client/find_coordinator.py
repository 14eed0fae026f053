"""FindCoordinator request and response of a group, in all versions."""

from kclient.client.client_request import RequestBuilder
from kclient.common.broker_errors import error_for_code
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

COORDINATOR_ID_BASE = 2**31 - 1
"""Node id of the connection to a coordinator, minus the broker's id.

Coordinators have connections of their own: group requests must not queue behind a fetch that waits
for data.
"""


def broker_id(node_id: int) -> int:
    """Return the id of the broker to which a connection leads, -1 for a bootstrap server."""
    if node_id < 0:
        return -1
    # Ids far above those of brokers belong to the connections to coordinators.
    return COORDINATOR_ID_BASE - node_id if node_id > COORDINATOR_ID_BASE // 2 else node_id


_GROUP = 0
_FIRST_WITH_LIST = 4


class FindGroupCoordinator(RequestBuilder):
    """Builder of the request: up to version 3 it has one key, from version 4 a list of keys."""

    api_key = ApiKey.FIND_COORDINATOR
    request_type = FindCoordinatorRequest
    oldest_allowed_version = FindCoordinatorRequest.min_version
    latest_allowed_version = FindCoordinatorRequest.max_version

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id

    def build(self, version: int) -> FindCoordinatorRequest:
        """Return the request in a version."""
        if version >= _FIRST_WITH_LIST:
            return FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=[self._group_id])
        return FindCoordinatorRequest(key=self._group_id)


def coordinator_of(response: FindCoordinatorResponse, group_id: str) -> Node:
    """Return the coordinator of a group, with its broker id.

    Raises:
        KafkaError: The response has an error.
    """
    code, message = response.error_code, response.error_message
    node = Node(response.node_id, response.host, response.port)
    for found in response.coordinators:
        if found.key == group_id:
            code, message = found.error_code, found.error_message
            node = Node(found.node_id, found.host, found.port)
    error = error_for_code(code, message)
    if error is not None:
        raise error
    return node
