"""Administration of groups.

- DescribeGroups, versions 0-6: state, members and assignments of classic groups.
- ListGroups, versions 0-5: the groups that this broker coordinates.
- DeleteGroups, versions 0-3: deletes groups without members, with their offsets.

Differences from Apache Kafka: every group is of type "classic".
"""

from functools import partial

from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi, always
from kclient.common.acls import AclOperation, ResourceType
from kclient.common.broker_errors import (
    NONE,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

_REPORTS_UNKNOWN_GROUPS = 6


def _describe_groups(
    services: BrokerServices, request: Request, body: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe each group once; before version 6 an unknown group is Dead without an error."""
    described = [_described(services, request, body, name) for name in dict.fromkeys(body.groups)]
    if request.header.api_version < _REPORTS_UNKNOWN_GROUPS:
        for group in described:
            group.error_message = None
            if group.error_code == code_of(GroupIdNotFoundError):
                group.error_code = NONE
    return DescribeGroupsResponse(groups=described)


def _described(
    services: BrokerServices, request: Request, body: DescribeGroupsRequest, group_id: str
) -> DescribedGroup:
    if not services.auth.authorize_group(request, AclOperation.DESCRIBE, group_id):
        return DescribedGroup(group_id=group_id, error_code=code_of(GroupAuthorizationError))
    group = services.groups.describe_group(group_id)
    if body.include_authorized_operations and group.error_code == NONE:
        group.authorized_operations = services.auth.authorized_operations(
            request, ResourceType.GROUP, group_id
        )
    return group


def _failed_description(body: DescribeGroupsRequest, code: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in body.groups]
    )


def _list_groups(
    services: BrokerServices, request: Request, body: ListGroupsRequest
) -> ListGroupsResponse:
    """Return the groups that match both filters, of those that the client may describe."""
    groups = services.groups.list_groups(body.states_filter, body.types_filter)
    auth, operation = services.auth, AclOperation.DESCRIBE
    if not auth.authorize_cluster(request, operation, is_logged=False):
        kind = ResourceType.GROUP
        groups = [
            group
            for group in groups
            if auth.authorize(request, operation, kind, group.group_id, is_logged=False)
        ]
    return ListGroupsResponse(groups=groups)


def _delete_groups(services: BrokerServices, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete each group; respond with an error code for each when all are done."""
    _Deletion(services, request, body.groups_names).start()


class _Deletion:
    """A DeleteGroups request in progress; the lock guards the results."""

    def __init__(self, services: BrokerServices, request: Request, group_ids: list[str]) -> None:
        self._auth = services.auth
        self._groups = services.groups
        self._request = request
        self._lock = services.tasks.lock()
        self._results: list[DeletableGroupResult | None] = [None] * len(group_ids)
        self._group_ids = group_ids

    def start(self) -> None:
        if not self._group_ids:
            self._request.respond(DeleteGroupsResponse(results=[]))
        for index, group_id in enumerate(self._group_ids):
            if self._auth.authorize_group(self._request, AclOperation.DELETE, group_id):
                self._groups.delete_group(group_id, partial(self._on_done, index, group_id))
            else:
                self._on_done(index, group_id, GroupAuthorizationError())

    def _on_done(self, index: int, group_id: str, error: KafkaError | None) -> None:
        with self._lock:
            self._results[index] = _deletion_result(group_id, error)
            results = [result for result in self._results if result is not None]
        if len(results) == len(self._group_ids):
            self._request.respond(DeleteGroupsResponse(results=results))


def _deletion_result(group_id: str, error: KafkaError | None) -> DeletableGroupResult:
    if error is None:
        return DeletableGroupResult(group_id=group_id, error_code=NONE)
    return DeletableGroupResult(
        group_id=group_id, error_code=code_of(error), error_message=str(error) or None
    )


def _failed_deletion(body: DeleteGroupsRequest, code: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in body.groups_names
        ]
    )


APIS = (
    ServedApi(DescribeGroupsRequest, _describe_groups, _failed_description),
    ServedApi(ListGroupsRequest, _list_groups),
    ServedApi(DeleteGroupsRequest, _delete_groups, _failed_deletion, is_long=always),
)
