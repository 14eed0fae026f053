"""JoinGroup, versions 0-9: a member asks for a place in the next generation.

The answer may come much later: when every member has joined, or when the wait for them is over.

Differences from Apache Kafka: none known.
"""

from kclient.broker.coordinator.group.membership import Caller
from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NULL_PROTOCOL_NAME = 7


def handle(services: BrokerServices, request: Request, body: JoinGroupRequest) -> None:
    """Hand the member to the coordinator."""
    version = request.header.api_version
    caller = Caller(request.header.client_id or "", f"/{request.client_address}", version)

    def reply(answer: JoinGroupResponse) -> None:
        if version < _NULL_PROTOCOL_NAME and answer.protocol_name is None:
            answer.protocol_name = ""
        request.respond(answer)

    services.groups.join_group(body, caller, reply)


API = ServedApi(JoinGroupRequest, handle)
