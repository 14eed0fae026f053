"""FindCoordinator request and response of a group or a transactional id, in all versions."""

from enum import IntEnum

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


_FIRST_WITH_TYPE = 1
_FIRST_WITH_LIST = 4


class CoordinatorType(IntEnum):
    """Kind of a coordinator's key (Kafka: FindCoordinatorRequest.CoordinatorType)."""

    GROUP = 0
    TRANSACTION = 1


class FindCoordinator(RequestBuilder):
    """Builder of the request: up to version 3 it has one key, from version 4 a list of keys."""

    api_key = ApiKey.FIND_COORDINATOR
    request_type = FindCoordinatorRequest
    latest_allowed_version = FindCoordinatorRequest.max_version

    def __init__(self, key: str, kind: CoordinatorType) -> None:
        """Create a builder.

        Args:
            key: Group id or transactional id.
            kind: Which of the two it is.
        """
        self._key = key
        self._kind = kind
        # Version 0 knows groups alone.
        self.oldest_allowed_version = 0 if kind is CoordinatorType.GROUP else _FIRST_WITH_TYPE

    def build(self, version: int) -> FindCoordinatorRequest:
        """Return the request in a version."""
        if version >= _FIRST_WITH_LIST:
            return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=[self._key])
        return FindCoordinatorRequest(key=self._key, key_type=self._kind)


def coordinator_of(response: FindCoordinatorResponse, key: str) -> Node:
    """Return the coordinator of a group or transactional id, with its broker id.

    Raises:
        KafkaError: The response has an error.
    """
    code, message = response.error_code, response.error_message
    node = Node(response.node_id, response.host, response.port)
    for found in response.coordinators:
        if found.key == key:
            code, message = found.error_code, found.error_message
            node = Node(found.node_id, found.host, found.port)
    error = error_for_code(code, message)
    if error is not None:
        raise error
    return node
