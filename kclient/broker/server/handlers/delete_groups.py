"""DeleteGroups, versions 0-3: deletes groups without members, with their offsets.

Differences from Apache Kafka: none known.
"""

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.served_api import ServedApi, always
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(
    services: BrokerServices, request: Request, body: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete each group; return an error code for each."""
    return DeleteGroupsResponse(
        results=[_delete(services, group_id) for group_id in body.groups_names]
    )


def _delete(services: BrokerServices, group_id: str) -> DeletableGroupResult:
    try:
        services.groups.delete_group(group_id)
    except KafkaError as problem:
        return DeletableGroupResult(
            group_id=group_id, error_code=code_of(problem), error_message=str(problem) or None
        )
    return DeletableGroupResult(group_id=group_id, error_code=NONE)


def _failed(body: DeleteGroupsRequest, code: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in body.groups_names
        ]
    )


API = ServedApi(DeleteGroupsRequest, handle, _failed, is_long=always)
