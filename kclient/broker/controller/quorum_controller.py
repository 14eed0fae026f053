"""The controller on a metadata quorum: it drives the planners of this package.

- It is a `RaftListener`: a client of the quorum calls it with what is committed, and with the
  leader; with an own leadership only after all batches before its epoch.
- Requests: `handle` for those that have a planner by type, `create_topics`, `create_partitions` and
  `delete_topics`. The callback gets the response when its records are committed, or the error.
- `poll` runs the periodic tasks; the owner calls it by `next_deadline_ms`.

Every write is an event: check, plan against the latest image, append, apply to that image; the
response waits for the commit. If leadership is lost or an append is refused, the latest image
becomes the committed one again, and waiting requests fail with NOT_CONTROLLER. If the disk fails or
is full, the exception ends the node. With a single voter an append is committed when it returns,
and so is a request when its method returns.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from kclient.broker.controller.broker_heartbeat_manager import (
    SESSION_TIMEOUT_MS,
    BrokerHeartbeatManager,
)
from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.event_queue import EventQueue
from kclient.broker.controller.feature_control import activation_records, bootstrap_batches
from kclient.broker.controller.partition_index import PartitionIndex
from kclient.broker.controller.record_batches import MAX_RECORDS, batches_of
from kclient.broker.controller.request_planners import RequestPlanners
from kclient.broker.controller.topic_control import (
    DeletionPlan,
    PartitionsPlan,
    PartitionsRequest,
    Plan,
    TopicControl,
    TopicPlan,
    TopicRequest,
)
from kclient.broker.metadata.metadata_batch_loader import Fault, Manifest, MetadataBatchLoader
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_loader import load_image
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.broker.raft.raft_types import NO_NODE, CommittedBatch, LeaderAndEpoch
from kclient.broker.raft.snapshots import SnapshotReader
from kclient.common.broker_errors import (
    KafkaStorageError,
    NotControllerError,
    RequestTimedOutError,
    UnknownServerError,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.uuids import random_uuid
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
)

_log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT")
PlanT = TypeVar("PlanT", bound=Plan)
_RETRY_BACKOFF_MS = 500.0
"""Time without periodic tasks after one of them could not be written."""
_BOUNDARIES = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class MetadataQuorum(Protocol):
    """Raft client of the metadata log."""

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        """Leader, and its epoch."""
        ...

    @property
    def next_offset(self) -> int:
        """Offset of the next record that `append` adds."""
        ...

    def append(self, values: Sequence[bytes], epoch: int) -> int:
        """Append framed records as one batch of an epoch; return the offset of the last one.

        Raises:
            KafkaError: They were not appended, such as because the epoch has ended.
        """
        ...

    def resign(self, epoch: int) -> None:
        """Give up the leadership of an epoch, if it has not ended already."""
        ...


class ControllerSettings(NamedTuple):
    """Settings of a controller.

    Attributes:
        node_id: Id of this node.
        cluster_id: Id of the cluster.
        bootstrap: Records of ``bootstrap.checkpoint``.
        incarnation_id: Id of this process, with which its broker registers.
        defaults: Static values of topic settings, as strings by their topics' names.
        session_timeout_ms: ``broker.session.timeout.ms``.
        no_op_interval_ms: ``metadata.max.idle.interval.ms``; 0 to write no NoOpRecord.
        imbalance_interval_ms: ``leader.imbalance.check.interval.seconds``, 0 to elect no preferred
            leaders by itself (``auto.leader.rebalance.enable``).
        unclean_interval_ms: ``unclean.leader.election.interval.ms``.
        max_records: Records of a batch.
    """

    node_id: int
    cluster_id: str
    bootstrap: Sequence[MetadataRecord]
    incarnation_id: bytes
    defaults: Mapping[str, str] = {}
    session_timeout_ms: float = SESSION_TIMEOUT_MS
    no_op_interval_ms: float = 500
    imbalance_interval_ms: float = 300_000
    unclean_interval_ms: float = 300_000
    max_records: int = MAX_RECORDS


@dataclass(slots=True, eq=False)
class _Pending:
    """Appended batch, or a response that waits for one.

    Attributes:
        offset: Offset of the last record that must be committed.
        image: Image after the batch; None in a transaction, and for a response that only waits.
        on_committed: Called when it is committed, or with the error.
    """

    offset: int
    image: MetadataImage | None
    on_committed: Callable[[KafkaError | None], None]


class QuorumController:
    """A controller, active while it leads the quorum (Kafka: QuorumController).

    Attributes:
        image: Committed image. It is immutable, and replaced.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: ControllerSettings,
        quorum: MetadataQuorum,
        planners: RequestPlanners,
        heartbeats: BrokerHeartbeatManager,
        topics: TopicControl,
    ) -> None:
        self._clock = runtime.clock
        self._random = runtime.random
        self._topics = topics
        self._settings = settings
        self._quorum = quorum
        self._planners = planners
        self._heartbeats = heartbeats
        self._events = EventQueue(runtime.tasks)
        self._committed = MetadataBatchLoader(self._on_update, _raise_fault)
        self.image = self._committed.image
        self._view = self._view_of(self.image)
        self._epoch: int | None = None
        self._pending: deque[_Pending] = deque()
        self._last_append_ms = 0.0
        self._next_balance_ms = self._next_unclean_ms = 0.0
        self._retry_ms = 0.0

    @property
    def is_active(self) -> bool:
        """Whether this controller decides."""
        return self._epoch is not None

    @property
    def active_epoch(self) -> int:
        """Epoch in which this controller is active, -1 if it is not."""
        return -1 if self._epoch is None else self._epoch

    # --- the quorum's calls

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Apply committed batches, or complete the own ones; see `EventQueue.submit`."""
        self._events.submit(partial(self._on_commit, batches))

    def handle_load_snapshot(self, reader: SnapshotReader) -> None:
        """Replace the state by that of a snapshot; this controller does not lead."""
        self._events.submit(partial(self._on_snapshot, reader))

    def handle_leader_change(self, leader: LeaderAndEpoch) -> None:
        """Become active or inactive."""
        self._events.submit(partial(self._on_leader_change, leader))

    def begin_shutdown(self) -> None:
        """Do nothing: the loss of the leadership follows."""

    # --- requests

    def handle(
        self,
        request: object,
        on_done: Callable[[Any], None],
        deadline_ms: float | None = None,
    ) -> None:
        """Handle a request that a broker, controller or administrator sent.

        Args:
            request: A message of `RequestPlanners.requests`.
            on_done: Gets the response when its records are committed, or the `KafkaError`.
            deadline_ms: Monotonic time at which the request is not started any more.
        """
        plan = self._planners.planner(request)
        self.write(lambda view: plan(view, self._clock.monotonic_ms()), on_done, deadline_ms)

    def write(
        self,
        plan: Callable[[ClusterView], ControllerResult[ResponseT]],
        on_done: Callable[[ResponseT | KafkaError], None],
        deadline_ms: float | None = None,
    ) -> None:
        """Make a decision, and report it when it is committed; arguments as those of `handle`."""
        self._events.submit(partial(self._on_write, plan, on_done, deadline_ms))

    def create_topics(
        self,
        requests: Sequence[TopicRequest],
        on_done: Callable[[list[TopicPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
        deadline_ms: float | None = None,
    ) -> None:
        """Create topics; `on_done` gets the plan of each, or its error."""

        def plan(view: ClusterView) -> ControllerResult[list[TopicPlan | KafkaError]]:
            planner = self._topics.planner(view.image, self._random)
            plans: list[TopicPlan | KafkaError]
            try:
                planner.check_size(requests)
                plans = [planner.plan_topic(each, random_uuid(self._random)) for each in requests]
            except KafkaError as error:
                plans = [error] * len(requests)
            return _of_plans(plans, validate_only=validate_only)

        self.write(plan, partial(_report, on_done, len(requests)), deadline_ms)

    def create_partitions(
        self,
        requests: Sequence[PartitionsRequest],
        on_done: Callable[[list[PartitionsPlan | KafkaError]], None],
        *,
        validate_only: bool = False,
        deadline_ms: float | None = None,
    ) -> None:
        """Add partitions to topics; `on_done` gets the plan of each topic, or its error."""

        def plan(view: ClusterView) -> ControllerResult[list[PartitionsPlan | KafkaError]]:
            planner = self._topics.planner(view.image, self._random)
            plans = [planner.plan_partitions(each) for each in requests]
            return _of_plans(plans, validate_only=validate_only)

        self.write(plan, partial(_report, on_done, len(requests)), deadline_ms)

    def delete_topics(
        self,
        named: Sequence[tuple[str | None, bytes]],
        on_done: Callable[[list[DeletionPlan | KafkaError]], None],
        *,
        deadline_ms: float | None = None,
    ) -> None:
        """Delete the topics of names or, where the name is None, of ids."""

        def plan(view: ClusterView) -> ControllerResult[list[DeletionPlan | KafkaError]]:
            planner = self._topics.planner(view.image, self._random)
            return _of_plans([planner.plan_deletion(*each) for each in named])

        self.write(plan, partial(_report, on_done, len(named)), deadline_ms)

    # --- periodic tasks

    def poll(self) -> None:
        """Run the periodic tasks that are due."""
        self._events.submit(self._run_tasks)

    @property
    def next_deadline_ms(self) -> float | None:
        """Monotonic time at which `poll` is to be called next, None while inactive."""
        if self._epoch is None:
            return None
        settings = self._settings
        deadlines = [self._next_unclean_ms]
        if settings.imbalance_interval_ms:
            deadlines.append(self._next_balance_ms)
        if settings.no_op_interval_ms:
            deadlines.append(self._last_append_ms + settings.no_op_interval_ms)
        session = self._heartbeats.next_deadline_ms(self._view.image)
        if session is not None:
            deadlines.append(session)
        return max(min(deadlines), self._retry_ms)

    def _run_tasks(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._retry_ms:
            return
        while self._epoch is not None and self._fence_stale_broker(now_ms):
            pass
        settings = self._settings
        if now_ms >= self._next_unclean_ms:
            more = self._run(self._planners.elect_unclean_leaders)
            self._next_unclean_ms = now_ms + (0 if more else settings.unclean_interval_ms)
        if settings.imbalance_interval_ms and now_ms >= self._next_balance_ms:
            more = self._run(self._planners.balance_leaders)
            self._next_balance_ms = now_ms + (0 if more else settings.imbalance_interval_ms)
        idle_ms = now_ms - self._last_append_ms
        if settings.no_op_interval_ms and idle_ms >= settings.no_op_interval_ms:
            self._run(lambda _view: ControllerResult([NoOpRecord()], None))

    def _fence_stale_broker(self, now_ms: float) -> bool:
        fenced = self._run(lambda view: self._planners.fence_stale_broker(view, now_ms))
        if fenced is not None:
            _log.info("controller: fenced broker %d: no heartbeat within the session", fenced)
        return fenced is not None

    def _run(self, plan: Callable[[ClusterView], ControllerResult[ResponseT]]) -> ResponseT | None:
        """Make a decision of this controller's own; return its response, None if not made."""
        if self._epoch is None:
            return None
        self._sync_offset()
        result = plan(self._view)
        failed: list[KafkaError] = []
        if result.records:
            self._append(result, lambda error: failed.append(error) if error else None)
        if not self.is_active or failed:
            # The task is still due, and its append would fail again at once.
            self._retry_ms = self._clock.monotonic_ms() + _RETRY_BACKOFF_MS
            return None
        return result.response

    # --- events

    def _on_write(
        self,
        plan: Callable[[ClusterView], ControllerResult[ResponseT]],
        on_done: Callable[[ResponseT | KafkaError], None],
        deadline_ms: float | None,
    ) -> None:
        if self._epoch is None:
            on_done(self._not_controller())
            return
        if deadline_ms is not None and self._clock.monotonic_ms() >= deadline_ms:
            on_done(RequestTimedOutError("The request was not started before its timeout."))
            return
        self._sync_offset()
        try:
            result = plan(self._view)
        except KafkaError as error:
            on_done(error)
            return
        except Exception:  # noqa: BLE001 (nothing has changed; the other requests are served)
            _log.exception("controller: a request could not be planned")
            on_done(UnknownServerError())
            return
        response = result.response

        def on_committed(error: KafkaError | None) -> None:
            on_done(response if error is None else error)

        if result.records:
            self._append(result, on_committed)
        elif self._pending:
            # The response may depend on records that are not committed yet.
            self._pending.append(_Pending(self._pending[-1].offset, None, on_committed))
        else:
            on_committed(None)

    def _append(
        self,
        result: ControllerResult[ResponseT],
        on_committed: Callable[[KafkaError | None], None],
        level: MetadataVersion | None = None,
    ) -> None:
        """Append a decision; if it is refused, all uncommitted ones are reverted, and it fails.

        Raises:
            KafkaStorageError: The disk failed, or is full.
        """
        at_level = level or self._view.metadata_version
        try:
            batches = batches_of(result, at_level, self._settings.max_records)
        except KafkaError as error:
            on_committed(error)
            return
        delta: MetadataDelta | None = None
        in_transaction = False
        try:
            for index, records in enumerate(batches):
                in_transaction = (in_transaction or _starts(records)) and not _ends(records)
                delta = delta or MetadataDelta(self._view.image)
                done = on_committed if index == len(batches) - 1 else _ignore
                offset = self._append_batch(records, at_level, delta)
                image = None
                if not in_transaction:
                    image = self._advance(delta, offset)
                    delta = None
                if any(isinstance(each, _BOUNDARIES) for each in records):
                    image = None  # the end of a transaction: its batches are replayed
                self._pending.append(_Pending(offset, image, done))
        except KafkaStorageError:
            raise  # what the log contains is unknown: the node ends
        except KafkaError as error:
            self._fail_append(error)
            on_committed(self._not_controller())

    def _append_batch(
        self, records: Sequence[MetadataRecord], level: MetadataVersion, delta: MetadataDelta
    ) -> int:
        """Append a batch and apply it to the delta; return the offset of its last record.

        Raises:
            KafkaError: It was not appended.
        """
        for record in records:
            delta.replay(record)
        offset = self._quorum.append([level.encode(each) for each in records], self.active_epoch)
        self._last_append_ms = self._clock.monotonic_ms()
        return offset

    def _advance(self, delta: MetadataDelta, offset: int) -> MetadataImage:
        """Replace the latest image by the one with a change."""
        old, index = self._view.image, self._view.index
        image = delta.apply(offset, self.active_epoch, self._clock.wall_ms())
        index.update(old, image, delta)
        self._view = ClusterView(image, index, self._settings.defaults)
        return image

    def _sync_offset(self) -> None:
        """Count the records that the quorum has written by itself, such as those of voters."""
        last = self._quorum.next_offset - 1
        image = self._view.image
        if image.offset != last:
            self._view = ClusterView(
                replace(image, offset=last), self._view.index, self._settings.defaults
            )

    def _on_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            completed: list[_Pending] = []
            while self._pending and self._pending[0].offset <= batch.last_offset:
                completed.append(self._pending.popleft())
            image = next((each.image for each in completed if each.image is not None), None)
            if image is None:
                self._committed.load([batch])
            else:
                self._committed.reset(image)
                self.image = image
            for pending in completed:
                pending.on_committed(None)

    def _on_update(self, _delta: MetadataDelta, image: MetadataImage, _origin: Manifest) -> None:
        self.image = image

    def _on_snapshot(self, reader: SnapshotReader) -> None:
        self.image = load_image(reader, _raise_fault)
        self._committed.reset(self.image)
        self._revert()

    def _on_leader_change(self, leader: LeaderAndEpoch) -> None:
        leader_id, epoch = leader
        if leader_id == self._settings.node_id:
            if self._epoch != epoch:
                self._revert()
                self._activate(epoch)
        elif self._epoch is not None:
            _log.info("controller: inactive, the leader of epoch %d is %s", epoch, leader_id)
            self._revert()

    def _activate(self, epoch: int) -> None:
        """Start to decide: sessions start again, and the first records are written."""
        _log.info("controller: active in epoch %d", epoch)
        now_ms = self._clock.monotonic_ms()
        self._epoch = epoch
        self._view = self._view_of(self._committed.image)
        own = (self._settings.node_id, self._settings.incarnation_id)
        self._heartbeats.start(self._view.image, now_ms, own)
        self._last_append_ms = now_ms
        settings = self._settings
        self._next_balance_ms = now_ms + settings.imbalance_interval_ms
        self._next_unclean_ms = now_ms + settings.unclean_interval_ms
        self._sync_offset()
        level = None
        if not self._committed.has_seen_record:
            records, level = bootstrap_batches(self._view, settings.bootstrap)
        else:
            in_transaction = self._committed.is_in_transaction
            records = activation_records(self._view, in_transaction=in_transaction)
        if records:
            self._append(ControllerResult(records, None), _ignore, level)

    def _revert(self) -> None:
        """Become inactive: the latest image is the committed one, and all waiting calls fail."""
        self._epoch = None
        waiting, self._pending = self._pending, deque()
        self._view = self._view_of(self._committed.image, with_index=False)
        for pending in waiting:
            pending.on_committed(self._not_controller())

    def _fail_append(self, error: KafkaError) -> None:
        epoch = self.active_epoch
        _log.warning("controller: resigns in epoch %d: %s", epoch, error)
        self._revert()
        self._quorum.resign(epoch)

    def _view_of(self, image: MetadataImage, *, with_index: bool = True) -> ClusterView:
        index = PartitionIndex(image if with_index else MetadataImage())
        return ClusterView(image, index, self._settings.defaults)

    def _not_controller(self) -> NotControllerError:
        leader, _ = self._quorum.leader_and_epoch
        if leader in (NO_NODE, self._settings.node_id):
            return NotControllerError("No controller appears to be active.")
        return NotControllerError(f"The active controller appears to be node {leader}.")


def _of_plans(
    plans: list[PlanT | KafkaError], *, validate_only: bool = False
) -> ControllerResult[list[PlanT | KafkaError]]:
    """Return the decision that makes all plans without an error."""
    records: list[MetadataRecord] = []
    for each in plans:
        if not isinstance(each, KafkaError) and not validate_only:
            records += each.records
    return ControllerResult(records, plans)


def _report(
    on_done: Callable[[list[PlanT | KafkaError]], None],
    count: int,
    outcome: list[PlanT | KafkaError] | KafkaError,
) -> None:
    """Report the outcome of each plan; an error concerns all."""
    on_done([outcome] * count if isinstance(outcome, KafkaError) else outcome)


def _raise_fault(fault: Fault) -> None:
    """End the node: it must not decide on a state that lacks a committed record."""
    _log.error("controller: %s", fault.message)
    raise fault.error


def _starts(records: Sequence[MetadataRecord]) -> bool:
    return any(isinstance(record, BeginTransactionRecord) for record in records)


def _ends(records: Sequence[MetadataRecord]) -> bool:
    return any(isinstance(record, EndTransactionRecord) for record in records)


def _ignore(_error: KafkaError | None) -> None:
    return
