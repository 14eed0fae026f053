"""ListGroups, versions 0-5: the groups that this broker coordinates.

Differences from Apache Kafka: every group is of type "classic".
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(
    services: BrokerServices, request: Request, body: ListGroupsRequest
) -> ListGroupsResponse:
    """Return the groups that match both filters."""
    groups = services.groups.list_groups(body.states_filter, body.types_filter)
    return ListGroupsResponse(groups=groups)


API = ServedApi(ListGroupsRequest, handle)
