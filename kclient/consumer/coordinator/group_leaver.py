"""Leaving of a group (Kafka: AbstractCoordinator.maybeLeaveGroup)."""

from kclient.client.client_request import ClientResponse
from kclient.common.broker_errors import error_for_code
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.member_state import MemberState
from kclient.consumer.coordinator.membership import Generation, Membership
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

_FIRST_WITH_LIST = 3


class _Builder:
    """Puts the member in a top-level field or in a list, by version."""

    api_key = ApiKey.LEAVE_GROUP
    request_type = LeaveGroupRequest
    oldest_allowed_version = LeaveGroupRequest.min_version
    latest_allowed_version = LeaveGroupRequest.max_version

    def __init__(self, group_id: str, generation: Generation, reason: str) -> None:
        self._group_id = group_id
        self._member_id = generation.member_id
        self._reason = reason

    def build(self, version: int) -> LeaveGroupRequest:
        if version < _FIRST_WITH_LIST:
            return LeaveGroupRequest(group_id=self._group_id, member_id=self._member_id)
        member = MemberIdentity(member_id=self._member_id, reason=self._reason)
        return LeaveGroupRequest(group_id=self._group_id, members=[member])


class GroupLeaver:
    """Sends LeaveGroup, so that the group need not wait for the session timeout."""

    def __init__(
        self,
        settings: GroupSettings,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        membership: Membership,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._settings = settings
        self._network = network
        self._finder = finder
        self._membership = membership

    def leave(self, reason: str) -> RequestFuture[None]:
        """Leave the group; the future completes with the response, or now without a request.

        A static member sends no request: it may return within its session timeout (KIP-345).
        """
        membership = self._membership
        generation = membership.generation
        rebalancing = membership.is_rebalancing()
        coordinator = self._finder.broker_node() if rebalancing else self._finder.coordinator()
        response: RequestFuture[None] = RequestFuture.of(None)
        if (
            self._settings.group_instance_id is None
            and coordinator is not None
            and membership.state is not MemberState.UNJOINED
            and generation.has_member_id()
        ):
            self._log.info(
                "Member %s sending LeaveGroup request to coordinator %s due to: %s",
                generation.member_id,
                coordinator,
                reason,
            )
            builder = _Builder(self._settings.group_id, generation, reason[:255])
            response = self._network.send(coordinator, builder).then(self._read)
        membership.left(reason)
        return response

    def _read(self, response: ClientResponse) -> None:
        body = response.body(LeaveGroupResponse)
        for code in (body.error_code, *(member.error_code for member in body.members)):
            error: KafkaError | None = error_for_code(code)
            if error is not None:
                self._log.info("LeaveGroup request failed: %s", error)
