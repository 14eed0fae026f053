"""FindCoordinator request and response of groups or transactional ids, in all versions."""

from collections.abc import Sequence
from enum import IntEnum

from kclient.client.client_request import RequestBuilder
from kclient.common.broker_errors import error_for_code
from kclient.common.errors import KafkaError, ProtocolError
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

    def __init__(self, keys: Sequence[str], kind: CoordinatorType) -> None:
        """Create a builder.

        Args:
            keys: Group ids or transactional ids; several need version 4 (KIP-699).
            kind: Which of the two they are.
        """
        self._keys = list(keys)
        self._kind = kind
        # Version 0 knows groups alone.
        self.oldest_allowed_version = 0 if kind is CoordinatorType.GROUP else _FIRST_WITH_TYPE
        if len(self._keys) > 1:
            self.oldest_allowed_version = _FIRST_WITH_LIST

    def build(self, version: int) -> FindCoordinatorRequest:
        """Return the request in a version."""
        if version >= _FIRST_WITH_LIST:
            return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=self._keys)
        return FindCoordinatorRequest(key=self._keys[0], key_type=self._kind)


def coordinators_of(
    response: FindCoordinatorResponse, keys: Sequence[str]
) -> dict[str, Node | KafkaError]:
    """Return the coordinator of each group or transactional id with its broker id, or the error."""
    listed = {found.key: found for found in response.coordinators}
    outcomes: dict[str, Node | KafkaError] = {}
    for key in keys:
        if key not in listed and (listed or len(keys) > 1):
            outcomes[key] = ProtocolError("its coordinator is missing in the response")
            continue
        found = listed.get(key, response)  # up to version 3 the response is about the only key
        error = error_for_code(found.error_code, found.error_message)
        outcomes[key] = error or Node(found.node_id, found.host, found.port)
    return outcomes


def coordinator_of(response: FindCoordinatorResponse, key: str) -> Node:
    """Return the coordinator of the only key of a request.

    Raises:
        KafkaError: The response has an error.
    """
    outcome = coordinators_of(response, [key])[key]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome
