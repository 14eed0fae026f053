"""DescribeGroups, versions 0-6: state, members and assignments of classic groups.

Differences from Apache Kafka: authorized operations are not returned.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import NONE, GroupIdNotFoundError, code_of
from kclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_REPORTS_UNKNOWN_GROUPS = 6


def handle(
    services: BrokerServices, request: Request, body: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe each group once; before version 6 an unknown group is Dead without an error."""
    described = [services.groups.describe_group(name) for name in dict.fromkeys(body.groups)]
    if request.header.api_version < _REPORTS_UNKNOWN_GROUPS:
        for group in described:
            group.error_message = None
            if group.error_code == code_of(GroupIdNotFoundError):
                group.error_code = NONE
    return DescribeGroupsResponse(groups=described)


def _failed(body: DescribeGroupsRequest, code: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in body.groups]
    )


API = ServedApi(DescribeGroupsRequest, handle, _failed)
