"""LeaveGroup, versions 0-5: members leave, or are removed by an administrator.

Differences from Apache Kafka: none known.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.leave_group import LeaveGroupRequest


def handle(services: BrokerServices, request: Request, body: LeaveGroupRequest) -> None:
    """Remove the members."""
    services.groups.leave_group(body, request.header.api_version, request.respond)


API = ServedApi(LeaveGroupRequest, handle)
