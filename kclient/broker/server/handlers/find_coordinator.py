"""FindCoordinator, versions 0-6: the coordinator of a group or transactional id.

The first request creates ``__consumer_offsets`` or ``__transaction_state``, and fails with
COORDINATOR_NOT_AVAILABLE, which clients retry.

Differences from Apache Kafka: share groups are not served; their coordinators are never available.
"""

from kclient.broker.coordinator.runtime.partition_log import partition_for
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS, TRANSACTION_STATE
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    NONE,
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    InvalidRequestError,
    TransactionalIdAuthorizationError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.common.types import Node
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHED = 4
_GROUP = 0
_TRANSACTION = 1
_KEY_TYPES = (0, 1, 2)
_TOPICS = {_GROUP: CONSUMER_OFFSETS, _TRANSACTION: TRANSACTION_STATE}
"""Topic of a coordinator's records by type of key."""


def handle(
    services: BrokerServices, request: Request, body: FindCoordinatorRequest
) -> FindCoordinatorResponse | None:
    """Return the coordinator of each key; create its topic first if that is missing."""
    response = _response(services, request, body)
    batched = request.header.api_version >= _BATCHED
    topic = _TOPICS.get(body.key_type)
    has_keys = bool(body.coordinator_keys) or not batched
    if topic is None or not has_keys or topic in services.metadata.image.topics:
        return response
    services.topic_creation.create([topic], lambda _errors: request.respond(response))
    return None


def _response(
    services: BrokerServices, request: Request, body: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if request.header.api_version >= _BATCHED:
        return FindCoordinatorResponse(
            coordinators=[
                _coordinator(services, request, key, body.key_type) for key in body.coordinator_keys
            ]
        )
    found = _coordinator(services, request, body.key, body.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message if request.header.api_version >= 1 else None,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(
    services: BrokerServices, request: Request, key: str, key_type: int
) -> Coordinator:
    try:
        node = _coordinator_node(services, request, key, key_type)
    except KafkaError as error:
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=code_of(error),
            error_message=str(error),
        )
    return Coordinator(
        key=key,
        node_id=node.id,
        host=node.host,
        port=node.port,
        error_code=NONE,
        error_message=None,
    )


def _coordinator_node(services: BrokerServices, request: Request, key: str, key_type: int) -> Node:
    """Return the leader of the partition of a key, at the listener of the request."""
    if key_type not in _KEY_TYPES:
        raise InvalidRequestError(f"coordinator type: got {key_type}, expected 0, 1 or 2")
    _authorize(services, request, key, key_type)
    if key_type not in _TOPICS:
        raise CoordinatorNotAvailableError("this broker does not coordinate share groups")
    image = services.metadata.image
    topic = image.topics.get(_TOPICS[key_type])
    if topic is None:
        raise CoordinatorNotAvailableError(f"{_TOPICS[key_type]} is being created")
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
    broker = image.brokers.get(leader)
    if broker is None or broker.fenced:
        raise CoordinatorNotAvailableError("the coordinator's partition has no leader")
    node = broker.node(request.listener_name)
    if node is None:
        raise CoordinatorNotAvailableError(
            f"the coordinator has no advertised listener {request.listener_name}"
        )
    return node


def _authorize(services: BrokerServices, request: Request, key: str, key_type: int) -> None:
    """Check that the client may find the coordinator of a key."""
    auth = services.auth
    if key_type == _GROUP:
        if not auth.authorize_group(request, AclOperation.DESCRIBE, key):
            raise GroupAuthorizationError("Group authorization failed.")
    elif key_type == _TRANSACTION:
        kind = ResourceType.TRANSACTIONAL_ID
        if not auth.authorize(request, AclOperation.DESCRIBE, kind, key):
            raise TransactionalIdAuthorizationError("Transactional Id authorization failed.")
    else:
        auth.require_cluster(request, AclOperation.CLUSTER_ACTION)


def _failed(body: FindCoordinatorRequest, code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=NONE if body.coordinator_keys else code,
        error_message=None,
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=None)
            for key in body.coordinator_keys
        ],
    )


APIS = (ServedApi(FindCoordinatorRequest, handle, _failed),)
