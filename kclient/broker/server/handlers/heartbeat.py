"""Heartbeat, versions 0-4: keeps a member's session alive and reports rebalances.

Differences from Apache Kafka: none known.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(services: BrokerServices, request: Request, body: HeartbeatRequest) -> HeartbeatResponse:
    """Reset the member's session timeout."""
    return HeartbeatResponse(error_code=services.groups.heartbeat(body))


API = ServedApi(HeartbeatRequest, handle)
