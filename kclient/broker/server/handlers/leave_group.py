"""LeaveGroup, versions 0-5: members leave, or are removed by an administrator.

Differences from Apache Kafka: none known.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def handle(
    services: BrokerServices, request: Request, body: LeaveGroupRequest
) -> LeaveGroupResponse:
    """Remove the members."""
    return services.groups.leave_group(body, request.header.api_version)


API = ServedApi(LeaveGroupRequest, handle)
