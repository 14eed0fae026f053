"""SyncGroup, versions 0-5: the leader hands in assignments, every member waits for its own.

Differences from Apache Kafka: none known.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.sync_group import SyncGroupRequest


def handle(services: BrokerServices, request: Request, body: SyncGroupRequest) -> None:
    """Hand the request to the coordinator."""
    services.groups.sync_group(body, request.respond)


API = ServedApi(SyncGroupRequest, handle)
