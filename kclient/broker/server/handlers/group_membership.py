"""Requests of the members of a classic group.

- JoinGroup, versions 0-9: a member joins the next generation. The response is sent when every
  member has joined or the rebalance timeout has expired.
- SyncGroup, versions 0-5: the leader sends the assignments, each member receives its own.
- Heartbeat, versions 0-4: keeps a member's session alive and reports rebalances.
- LeaveGroup, versions 0-5: members leave, or are removed by an administrator.

Differences from Apache Kafka: none known.
"""

from kclient.broker.coordinator.group.membership import RequestContext
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    InconsistentGroupProtocolError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)

_NULL_PROTOCOL_NAME = 7
_PROTOCOL_NAMES = 5
"""The version that requires the protocol's type and name (KIP-559)."""


def _join_group(services: BrokerServices, request: Request, body: JoinGroupRequest) -> None:
    """Pass the request to the group coordinator."""
    version = request.header.api_version
    client = RequestContext(request.header.client_id or "", f"/{request.client_address}", version)

    def reply(response: JoinGroupResponse) -> None:
        if version < _NULL_PROTOCOL_NAME and response.protocol_name is None:
            response.protocol_name = ""
        request.respond(response)

    try:
        _require_read(services, request, body.group_id)
    except KafkaError as error:
        reply(JoinGroupResponse(error_code=code_of(error), protocol_name=None))
    else:
        services.groups.join_group(body, client, reply)


def _sync_group(services: BrokerServices, request: Request, body: SyncGroupRequest) -> None:
    """Pass the request to the group coordinator."""
    _require_read(services, request, body.group_id)
    version = request.header.api_version
    if version >= _PROTOCOL_NAMES and None in {body.protocol_type, body.protocol_name}:
        raise InconsistentGroupProtocolError("protocol type and name are required")
    services.groups.sync_group(body, request.respond)


def _heartbeat(
    services: BrokerServices, request: Request, body: HeartbeatRequest
) -> HeartbeatResponse:
    """Reset the member's session timeout."""
    _require_read(services, request, body.group_id)
    return HeartbeatResponse(error_code=services.groups.heartbeat(body))


def _leave_group(services: BrokerServices, request: Request, body: LeaveGroupRequest) -> None:
    """Remove the members."""
    _require_read(services, request, body.group_id)
    services.groups.leave_group(body, request.header.api_version, request.respond)


def _require_read(services: BrokerServices, request: Request, group_id: str) -> None:
    if not services.auth.authorize_group(request, AclOperation.READ, group_id):
        raise GroupAuthorizationError(f"Not authorized to access group: {group_id}")


APIS = (
    ServedApi(JoinGroupRequest, _join_group),
    ServedApi(SyncGroupRequest, _sync_group),
    ServedApi(HeartbeatRequest, _heartbeat),
    ServedApi(LeaveGroupRequest, _leave_group),
)
