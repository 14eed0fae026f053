"""Offset commits: explicit, asynchronous and automatic (Kafka: ConsumerCoordinator)."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from kclient.client.client_request import ClientResponse, SimpleBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import (
    CoordinatorNotAvailableError,
    RequestTimedOutError,
    TopicAuthorizationError,
    error_for_code,
)
from kclient.common.denials import READ, topics_denied
from kclient.common.errors import (
    CommitFailedError,
    KafkaError,
    RetriableCommitFailedError,
)
from kclient.common.log_context import NO_LOG_CONTEXT, FailureLog, LogContext
from kclient.common.types import Node, OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.consumer_lock import RunUserCode
from kclient.consumer.consumer_network_client import ConsumerNetworkClient
from kclient.consumer.coordinator_finder import CoordinatorFinder
from kclient.consumer.membership import NO_EPOCH, MemberEpoch, Membership
from kclient.consumer.record_tracer import RecordTracer
from kclient.consumer.request_future import RequestFuture
from kclient.consumer.subscription_state import SubscriptionState
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

CommitCallback = Callable[[Offsets, KafkaError | None], object]
"""Called with the offsets of an asynchronous commit and its error or None."""

_LATEST_WITH_NAMES = 9
_MOST_WAITING = 100
# Lower bound of the wait: an auto-commit interval of 0 commits at every poll.
_SHORTEST_WAIT_MS = 100.0


class _Commit(NamedTuple):
    """One attempt to commit."""

    offsets: Offsets
    future: RequestFuture[None]


class OffsetCommitter:
    """Sends commits to the coordinator in order, and runs the callbacks of asynchronous ones.

    Attributes:
        tracer: Receives the commits, or None; set by any thread.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        network: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        membership: Membership,
        subscriptions: SubscriptionState,
        on_committed: Callable[[Offsets], None],
        run_user_code: RunUserCode,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._failures = FailureLog(self._log, "Offset commit")
        self._config = config
        self._network = network
        self._finder = finder
        self._membership = membership
        self._subscriptions = subscriptions
        self._on_committed = on_committed
        self.tracer: RecordTracer | None = None
        self._waiting: deque[_Commit] = deque()
        self._sent: dict[int, _Commit] = {}
        self._run_user_code = run_user_code
        self._asynchronous: deque[tuple[CommitCallback | None, Offsets, RequestFuture[None]]] = (
            deque()
        )

    def commit(self, offsets: Offsets) -> RequestFuture[None]:
        """Queue one attempt; `step` sends it once the coordinator is known."""
        commit = _Commit(dict(offsets), RequestFuture())
        if (tracer := self.tracer) is not None:
            tracer.commit_queued(offsets)
        if (given_up := self._given_up(commit)) is not None:
            commit.future.fail(given_up)
        elif offsets:
            self._discard_oldest()
            self._waiting.append(commit)
            self._flush()
        else:
            commit.future.succeed(None)
        return commit.future

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Queue one attempt to commit; a later `run_callbacks` runs the callback."""
        self._asynchronous.append((callback, offsets, self.commit(offsets)))

    def run_callbacks(self) -> None:
        """Run the callbacks of completed asynchronous commits, in the order of the commits."""
        while self._asynchronous and self._asynchronous[0][2].done:
            callback, offsets, future = self._asynchronous.popleft()
            error = future.error
            if error is not None and error.retriable:
                error = RetriableCommitFailedError(f"commit failed, try again: {error}")
                error.__cause__ = future.error
            if callback is not None:
                self._run_user_code(partial(callback, offsets, error))
            elif error is not None:
                self._log.error("Asynchronous commit of %d offsets failed: %s", len(offsets), error)

    def can_commit(self) -> bool:
        """Return whether a commit can succeed: outside group management, or while stable."""
        return not self._subscriptions.is_group_managed() or self._membership.is_stable()

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
        try:
            epoch = self._epoch()
        except KafkaError as error:
            commit.future.fail(error)
            return
        if (given_up := self._given_up(commit)) is not None:  # while it waited
            commit.future.fail(given_up)
            return
        request = OffsetCommitRequest(
            group_id=self._finder.group_id,
            generation_id_or_member_epoch=epoch.epoch,
            member_id=epoch.member_id,
            group_instance_id=self._config.group_instance_id if epoch.member_id else None,
            topics=_topics(commit.offsets),
        )
        self._sent[id(commit)] = commit
        builder = SimpleBuilder(request, latest=_LATEST_WITH_NAMES)
        self._network.send(coordinator, builder).on_done(
            lambda future: self._handle_response(commit, epoch, future)
        )

    def _epoch(self) -> MemberEpoch:
        return (
            self._membership.commit_epoch() if self._subscriptions.is_group_managed() else NO_EPOCH
        )

    def _given_up(self, commit: _Commit) -> KafkaError | None:
        """Return the error of a commit that would overwrite the offsets of other members."""
        partitions = self._subscriptions.given_up_among(commit.offsets)
        if not partitions or not self._membership.is_stable():
            return None
        shown = ", ".join(map(str, sorted(partitions)))
        return CommitFailedError(
            f"commit: got {shown}, revoked from this member, expected assigned partitions; "
            "nothing was committed. Commit processed offsets in on_revoked; to set offsets of the "
            "group, use a consumer with assign() while the group has no members"
        )

    def _handle_response(
        self, commit: _Commit, epoch: MemberEpoch, future: RequestFuture[ClientResponse]
    ) -> None:
        self._sent.pop(id(commit), None)
        try:
            self._read(future.value.body(OffsetCommitResponse), commit, epoch)
        except KafkaError as error:
            self._failures.failed(error)
            commit.future.fail(error)
            self._finder.check_lost(error)
            if isinstance(error, RequestTimedOutError):
                self._finder.mark_unknown(str(error))
            return
        self._failures.succeeded()
        if (tracer := self.tracer) is not None:
            tracer.committed(commit.offsets)
        try:
            self._on_committed(commit.offsets)
        finally:
            commit.future.succeed(None)

    def _read(self, response: OffsetCommitResponse, commit: _Commit, epoch: MemberEpoch) -> None:
        unauthorized: set[str] = set()
        acknowledged: set[TopicPartition] = set()
        for topic in response.topics:
            for data in topic.partitions:
                acknowledged.add(TopicPartition(topic.name, data.partition_index))
                error = error_for_code(data.error_code, f"{topic.name}-{data.partition_index}")
                if isinstance(error, TopicAuthorizationError):
                    unauthorized.add(topic.name)
                elif error is not None:
                    raise self._membership.commit_failed(error, epoch)
        if unauthorized:
            raise topics_denied(unauthorized, READ)
        if not acknowledged.issuperset(commit.offsets):
            raise CoordinatorNotAvailableError("the response does not contain all partitions")


class AutoCommit:
    """Commits the positions of earlier polls periodically.

    Runs only in calls of the application: a poll marks the records of the previous poll as
    processed.
    """

    def __init__(
        self,
        committer: OffsetCommitter,
        subscriptions: SubscriptionState,
        config: ConsumerConfig,
        backoff: ExponentialBackoff,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self.enabled = config.enable_auto_commit
        self._interval_ms = config.auto_commit_interval_ms
        self._last_commit_ms = min(config.request_timeout_ms, config.session_timeout_ms)
        self._committer = committer
        self._subscriptions = subscriptions
        self._backoff = backoff
        self._failures = 0
        self._next_ms: float | None = None
        self._in_flight: RequestFuture[None] | None = None

    def restart(self, now_ms: float) -> None:
        """Start a new interval."""
        self._next_ms = now_ms + self._interval_ms

    def step(self, now_ms: float) -> float:
        """Commit if the interval has passed; return the time until the next step."""
        if not self.enabled:
            return float("inf")
        if self._next_ms is None:
            self.restart(now_ms)
        self._check_outcome(now_ms)
        due_ms = self._next_ms if self._next_ms is not None else now_ms
        if self._in_flight is None and now_ms >= due_ms:
            self._in_flight = self.commit_now()
            self.restart(now_ms)
            due_ms = now_ms + self._interval_ms
        return max(_SHORTEST_WAIT_MS, due_ms - now_ms)

    def commit_now(self) -> RequestFuture[None]:
        """Queue one attempt to commit every position."""
        return self._committer.commit(self._subscriptions.all_consumed())

    def last_commit_deadline_ms(self, now_ms: float) -> float:
        """Return the deadline of a commit before partitions are revoked."""
        return now_ms + self._last_commit_ms

    def _check_outcome(self, now_ms: float) -> None:
        future = self._in_flight
        if future is None or not future.done:
            return
        self._in_flight = None
        if future.error is None:
            self._failures = 0
            return
        # The broker may have closed an idle connection; only a repeated failure is a warning.
        is_first = future.error.retriable and not self._failures
        level = logging.DEBUG if is_first else logging.WARNING
        self._log.log(level, "Auto-commit failed: %s", future.error)
        if future.error.retriable:
            self._next_ms = now_ms + self._backoff.backoff(self._failures)
            self._failures += 1


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
