"""Queue of offset commits (Kafka: ConsumerCoordinator.sendOffsetCommitRequest)."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalGenerationError,
    NotCoordinatorError,
    RebalanceInProgressError,
    RequestTimedOutError,
    TopicAuthorizationError,
    UnknownMemberIdError,
    error_for_code,
)
from kclient.common.errors import CommitFailedError, DisconnectedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.coordinator.group_settings import GroupSettings
from kclient.consumer.coordinator.heartbeat_sender import fenced
from kclient.consumer.coordinator.membership import NO_GENERATION, Generation, Membership
from kclient.consumer.failure_log import FailureLog
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_LATEST_WITH_NAMES = 9
_MOST_WAITING = 100
_LOST_COORDINATOR = (
    NotCoordinatorError,
    CoordinatorNotAvailableError,
    DisconnectedError,
    RequestTimedOutError,
)


@dataclass(slots=True)
class _Commit:
    """One attempt to commit."""

    offsets: Offsets
    future: RequestFuture[None] = field(default_factory=RequestFuture)


class OffsetCommitter:
    """Sends commits to the coordinator in order."""

    def __init__(
        self,
        settings: GroupSettings,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        membership: Membership,
        subscriptions: SubscriptionState,
        on_committed: Callable[[Offsets], None],
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._failures = FailureLog(log_context.logger(__name__), "Offset commit")
        self._settings = settings
        self._network = network
        self._finder = finder
        self._membership = membership
        self._subscriptions = subscriptions
        self._on_committed = on_committed
        self._waiting: deque[_Commit] = deque()
        self._sent: dict[int, _Commit] = {}

    def commit(self, offsets: Offsets) -> RequestFuture[None]:
        """Queue one attempt; `step` sends it once the coordinator is known."""
        commit = _Commit(dict(offsets))
        if (given_up := self._given_up(commit)) is not None:
            commit.future.fail(given_up)
        elif offsets:
            self._discard_oldest()
            self._waiting.append(commit)
            self._flush()
        else:
            commit.future.succeed(None)
        return commit.future

    def has_pending(self) -> bool:
        """Return whether commits are queued or in flight, except failed ones."""
        return bool(self._sent) or any(not commit.future.done for commit in self._waiting)

    def step(self, now_ms: float) -> float:
        """Send queued commits; return the time until the next step."""
        if not self._waiting:
            return float("inf")
        wait_ms = self._finder.step(now_ms)
        self._flush()
        return wait_ms

    def reset_after_interrupt(self) -> None:
        """Fail commits in flight after an interrupted call."""
        interrupted = DisconnectedError("the call that waited for the response was interrupted")
        while self._sent:
            commit = next(iter(self._sent.values()))
            if self._waiting and self._waiting[0] is commit:
                self._waiting.popleft()
            commit.future.fail(interrupted)
            del self._sent[id(commit)]

    # --- inside

    def _discard_oldest(self) -> None:
        """Fail the oldest commits if too many wait for an unknown coordinator."""
        while self._waiting:
            oldest = self._waiting[0].future
            if not oldest.done:
                if len(self._waiting) < _MOST_WAITING:
                    return
                oldest.fail(
                    CoordinatorNotAvailableError(f"more than {_MOST_WAITING} commits are queued")
                )
            self._waiting.popleft()

    def _flush(self) -> None:
        coordinator = self._finder.coordinator()
        while coordinator is not None and self._waiting:
            commit = self._waiting[0]
            if not commit.future.done:  # otherwise its call has timed out
                self._send(coordinator, commit)
            self._waiting.popleft()

    def _send(self, coordinator: Node, commit: _Commit) -> None:
        generation = self._generation()
        if generation is None:
            commit.future.fail(self._outside_group())
            return
        if (given_up := self._given_up(commit)) is not None:  # while it waited
            commit.future.fail(given_up)
            return
        request = OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id_or_member_epoch=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=(
                self._settings.group_instance_id if generation.has_member_id() else None
            ),
            topics=_topics(commit.offsets),
        )
        self._sent[id(commit)] = commit
        builder = SimpleBuilder(request, latest=_LATEST_WITH_NAMES)
        self._network.send(coordinator, builder).on_done(
            lambda future: self._take(commit, generation, future)
        )

    def _generation(self) -> Generation | None:
        if not self._subscriptions.is_group_managed():
            return NO_GENERATION
        return self._membership.commit_generation()

    def _given_up(self, commit: _Commit) -> KafkaError | None:
        """Return the error of a commit that would overwrite the offsets of other members."""
        partitions = self._subscriptions.given_up.intersection(commit.offsets)
        if not partitions or not self._membership.is_stable():
            return None
        shown = ", ".join(map(str, sorted(partitions)))
        return CommitFailedError(
            f"commit: got {shown}, revoked from this member, expected assigned partitions; "
            "nothing was committed. Commit processed offsets in on_revoked; to set offsets of the "
            "group, use a consumer with assign() while the group has no members"
        )

    def _outside_group(self) -> KafkaError:
        if self._membership.is_rebalancing():
            return RebalanceInProgressError(
                "the group is rebalancing: call poll() until it has finished, then commit again"
            )
        return CommitFailedError(
            "this consumer is not a member of the group now, its partitions may be owned by "
            "another; poll() rejoins (polls may have been more than max_poll_interval_ms apart)"
        )

    def _take(
        self, commit: _Commit, generation: Generation, future: RequestFuture[ClientResponse]
    ) -> None:
        self._sent.pop(id(commit), None)
        try:
            self._read(future.value.body(OffsetCommitResponse), commit, generation)
        except KafkaError as error:
            self._failures.failed(error)
            commit.future.fail(error)
            if isinstance(error, _LOST_COORDINATOR):
                self._finder.mark_unknown(str(error))
            return
        self._failures.succeeded()
        self._on_committed(commit.offsets)
        commit.future.succeed(None)

    def _read(
        self, response: OffsetCommitResponse, commit: _Commit, generation: Generation
    ) -> None:
        unauthorized: set[str] = set()
        acknowledged: set[TopicPartition] = set()
        for topic in response.topics:
            for data in topic.partitions:
                acknowledged.add(TopicPartition(topic.name, data.partition_index))
                error = error_for_code(data.error_code, f"{topic.name}-{data.partition_index}")
                if isinstance(error, TopicAuthorizationError):
                    unauthorized.add(topic.name)
                elif error is not None:
                    raise self._meaning(error, generation)
        if unauthorized:
            topics = ", ".join(map(repr, sorted(unauthorized)))
            raise TopicAuthorizationError(f"not authorized to read topic {topics}")
        if not acknowledged.issuperset(commit.offsets):
            raise CoordinatorNotAvailableError("the response does not contain all partitions")

    def _meaning(self, error: KafkaError, generation: Generation) -> KafkaError:
        """Return the error for the caller, and update the membership."""
        membership = self._membership
        same = membership.generation == generation
        if isinstance(error, RebalanceInProgressError):
            membership.request_rejoin("commit failed: the group is rebalancing")
            return RebalanceInProgressError("the group is rebalancing: call poll() to rejoin")
        if isinstance(error, UnknownMemberIdError | IllegalGenerationError):
            if same and generation != NO_GENERATION:
                membership.lose(
                    str(error), keep_member_id=isinstance(error, IllegalGenerationError)
                )
            return CommitFailedError(
                f"{error.error_name}: this consumer is not a member of the group any more, its "
                "partitions may be owned by another; nothing was committed"
            )
        if isinstance(error, FencedInstanceIdError):
            if same:
                membership.lose(
                    "another consumer has the same group.instance.id", keep_member_id=True
                )
            return fenced(self._settings)
        if isinstance(error, GroupAuthorizationError):
            return GroupAuthorizationError(
                f"not authorized to access group {self._settings.group_id!r}"
            )
        return error


def _topics(offsets: Offsets) -> list[OffsetCommitRequestTopic]:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for partition, offset in offsets.items():
        name = partition.topic
        topics.setdefault(name, OffsetCommitRequestTopic(name=name)).partitions.append(
            OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return list(topics.values())
