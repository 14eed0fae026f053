"""SyncGroup, versions 0-5: the leader sends the assignments, each member receives its own.

Differences from Apache Kafka: none known.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import InconsistentGroupProtocolError
from kclient.protocol.messages.sync_group import SyncGroupRequest

_PROTOCOL_NAMES = 5
"""The version that requires the protocol's type and name (KIP-559)."""


def handle(services: BrokerServices, request: Request, body: SyncGroupRequest) -> None:
    """Pass the request to the group coordinator."""
    version = request.header.api_version
    if version >= _PROTOCOL_NAMES and None in {body.protocol_type, body.protocol_name}:
        raise InconsistentGroupProtocolError("protocol type and name are required")
    services.groups.sync_group(body, request.respond)


API = ServedApi(SyncGroupRequest, handle)
