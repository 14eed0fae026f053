"""DeleteGroups, versions 0-3: deletes groups without members, with their offsets.

Differences from Apache Kafka: none known.
"""

from functools import partial

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


def handle(services: BrokerServices, request: Request, body: DeleteGroupsRequest) -> None:
    """Delete each group; respond with an error code for each when all are done."""
    _Deletion(services, request, body.groups_names).start()


class _Deletion:
    """A DeleteGroups request in progress; the lock guards the results."""

    def __init__(self, services: BrokerServices, request: Request, group_ids: list[str]) -> None:
        self._groups = services.groups
        self._request = request
        self._lock = services.runtime.tasks.lock()
        self._results: list[DeletableGroupResult | None] = [None] * len(group_ids)
        self._group_ids = group_ids

    def start(self) -> None:
        if not self._group_ids:
            self._request.respond(DeleteGroupsResponse(results=[]))
        for index, group_id in enumerate(self._group_ids):
            self._groups.delete_group(group_id, partial(self._on_done, index, group_id))

    def _on_done(self, index: int, group_id: str, error: KafkaError | None) -> None:
        with self._lock:
            self._results[index] = _result(group_id, error)
            results = [result for result in self._results if result is not None]
        if len(results) == len(self._group_ids):
            self._request.respond(DeleteGroupsResponse(results=results))


def _result(group_id: str, error: KafkaError | None) -> DeletableGroupResult:
    if error is None:
        return DeletableGroupResult(group_id=group_id, error_code=NONE)
    return DeletableGroupResult(
        group_id=group_id, error_code=code_of(error), error_message=str(error) or None
    )


def _failed(body: DeleteGroupsRequest, code: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in body.groups_names
        ]
    )


API = ServedApi(DeleteGroupsRequest, handle, _failed, is_long=always)
