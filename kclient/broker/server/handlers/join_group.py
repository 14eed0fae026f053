"""JoinGroup, versions 0-9: a member joins the next generation of a group.

The response is sent when every member has joined or the rebalance timeout has expired.

Differences from Apache Kafka: none known.
"""

from kclient.broker.coordinator.group.membership import RequestContext
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NULL_PROTOCOL_NAME = 7


def handle(services: BrokerServices, request: Request, body: JoinGroupRequest) -> None:
    """Pass the request to the group coordinator."""
    version = request.header.api_version
    client = RequestContext(request.header.client_id or "", f"/{request.client_address}", version)

    def reply(response: JoinGroupResponse) -> None:
        if version < _NULL_PROTOCOL_NAME and response.protocol_name is None:
            response.protocol_name = ""
        request.respond(response)

    services.groups.join_group(body, client, reply)


API = ServedApi(JoinGroupRequest, handle)
