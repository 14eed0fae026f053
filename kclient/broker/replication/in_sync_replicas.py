"""In-sync replicas of a partition, as its leader sees them, and the end of what they all have."""

from collections.abc import Callable, Iterable

from kclient.broker.metadata.metadata_image import PartitionRegistration
from kclient.broker.replication.replica_state import ReplicaState
from kclient.broker.replication.replication_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    ReplicationContext,
)
from kclient.common.broker_errors import (
    NONE,
    FencedLeaderEpochError,
    IneligibleReplicaError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    NewLeaderElectedError,
    NotLeaderOrFollowerError,
    OperationNotAttemptedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    code_of,
)

_NOT_APPLIED = frozenset(
    code_of(error()) for error in (OperationNotAttemptedError, IneligibleReplicaError)
)
"""The controller has not applied the change, and no other controller will."""

_WAIT_FOR_METADATA = frozenset(
    code_of(error())
    for error in (
        UnknownTopicOrPartitionError,
        UnknownTopicIdError,
        FencedLeaderEpochError,
        InvalidUpdateVersionError,
        InvalidRequestError,
        NewLeaderElectedError,
    )
)
"""The change may have been applied before; the next metadata of the partition says so."""


class InSyncReplicas:
    """Replicas of a partition and its ISR, in a leader epoch (Kafka: PartitionState, Replica).

    Guarded by the partition's lock.

    A change of the ISR is pending from the request until the controller responds, or until metadata
    with a higher partition epoch arrives. Meanwhile the controller may have committed it, so that
    the *maximal* ISR counts for the high watermark: a newcomer at once, a member that is to be
    removed until its removal is known.

    Attributes:
        replicas: State of each replica by broker id, with the local one.
        isr: Committed ISR.
        maximal_isr: Members of the committed ISR, and the newcomer of a pending expansion.
        pending: Change that was sent and has no response yet, or None.
        partition_epoch: Partition epoch of `isr`.
        epoch_start_offset: Log end offset when the leader epoch began, -1 if not the leader.
        is_under_min_isr: Whether the committed ISR is smaller than min.insync.replicas.
    """

    def __init__(self, context: ReplicationContext, local: ReplicaState, min_isr: int) -> None:
        self._context = context
        self._node_id = context.node_id
        self._local = local
        self._configured_min_isr = min_isr
        self._assigned = 1
        self.replicas: dict[int, ReplicaState] = {self._node_id: local}
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: frozenset[int] = frozenset()
        self.pending: AlterPartitionItem | None = None
        self.partition_epoch = -1
        self.epoch_start_offset = -1
        self.is_under_min_isr = False

    @property
    def is_local_only(self) -> bool:
        """Whether there is no other replica."""
        return len(self.replicas) == 1

    @property
    def min_isr(self) -> int:
        """min.insync.replicas, at most the number of assigned replicas (KIP-966)."""
        return min(self._configured_min_isr, self._assigned)

    def configure(self, min_isr: int) -> None:
        """Set min.insync.replicas."""
        self._configured_min_isr = min_isr
        self._count()

    def assign(self, registration: PartitionRegistration) -> None:
        """Take over replicas and ISR of the metadata; a pending change is settled by them."""
        known, local = self.replicas, self._node_id
        ids = (*(each for each in registration.replicas if each != local), local)
        self.replicas = {each: known.get(each) or ReplicaState() for each in ids}
        self._assigned = max(1, len(registration.replicas))
        self._commit(registration.isr, registration.partition_epoch)

    def begin_epoch(self, log_end_offset: int, now_ms: float) -> None:
        """Begin a leader epoch at the log end offset: what followers have is unknown."""
        self.epoch_start_offset = log_end_offset
        for replica, state in self._remote():
            state.reset(now_ms, in_sync=replica in self.isr)

    def end_epoch(self) -> None:
        """End the leader epoch: this broker is a follower."""
        self.epoch_start_offset = -1
        self.pending = None

    def follower(self, replica: int) -> ReplicaState | None:
        """Return the state of a follower, or None if the broker has no replica."""
        return None if replica == self._node_id else self.replicas.get(replica)

    def update(
        self,
        replica: int,
        state: ReplicaState,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
    ) -> None:
        """Record a valid fetch of a follower.

        Raises:
            NotLeaderOrFollowerError: The fetch is of an earlier life of the broker.
        """
        live_epoch = self._context.live_broker_epoch(replica)
        if broker_epoch >= 0 and live_epoch is not None and live_epoch > broker_epoch:
            raise NotLeaderOrFollowerError(
                f"broker {replica}: got broker epoch {broker_epoch}, expected {live_epoch}"
            )
        now_ms = self._context.now_ms()
        state.update(fetch_offset, log_start_offset, leader_end_offset, broker_epoch, now_ms)

    def committed_end(self, log_end_offset: int) -> int:
        """Return the end offset of what all replicas have that count for the high watermark.

        These are the maximal ISR and the followers that are about to join it: if the high watermark
        passed them, they would have to catch up with it first, again and again. -1 while the ISR
        is smaller than min.insync.replicas (KIP-966).
        """
        if self.is_under_min_isr:
            return -1
        end = self._local.log_end_offset
        maximal = self.maximal_isr
        context = self._context
        now_ms, lag_ms = context.now_ms(), context.lag_time_max_ms
        for replica, state in self._remote():
            if state.log_end_offset < end and (
                replica in maximal
                or (
                    state.is_caught_up(log_end_offset, now_ms, lag_ms)
                    and context.may_join_isr(replica, state.broker_epoch)
                )
            ):
                end = state.log_end_offset
        return end

    def has_caught_up(self, replica: int, high_watermark: int) -> bool:
        """Return whether a follower can join the ISR.

        It must have all committed records. Below the epoch start offset may be records that were
        committed in earlier epochs, which the high watermark of a new leader has not reached.
        """
        if self.pending is not None or replica in self.isr:
            return False
        state = self.replicas[replica]
        if state.log_end_offset < max(high_watermark, self.epoch_start_offset):
            return False
        return self._context.may_join_isr(replica, state.broker_epoch)

    def lagging(self, log_end_offset: int) -> list[int]:
        """Return the members of the ISR that lag by replica.lag.time.max.ms."""
        if self.pending is not None:
            return []
        now_ms, lag_ms = self._context.now_ms(), self._context.lag_time_max_ms
        return [
            replica
            for replica in self.isr
            if replica != self._node_id
            and not self.replicas[replica].is_caught_up(log_end_offset, now_ms, lag_ms)
        ]

    def propose(
        self,
        isr: Iterable[int],
        build: Callable[[int, tuple[tuple[int, int], ...]], AlterPartitionItem],
    ) -> AlterPartitionItem:
        """Mark a new ISR as pending; return the request for it.

        Args:
            isr: The new ISR.
            build: Returns the request from partition epoch, and members with broker epochs.
        """
        members = tuple((each, self._broker_epoch(each)) for each in isr)
        self.pending = item = build(self.partition_epoch, members)
        self.maximal_isr = frozenset((*self.isr, *(each for each, _ in members)))
        return item

    def on_result(
        self, item: AlterPartitionItem, leader_epoch: int, result: AlterPartitionResult
    ) -> bool:
        """Apply the controller's response; return whether to send the request again."""
        if self.pending is not item:
            return False  # newer metadata has settled it
        code = result.error_code
        if code in _NOT_APPLIED:
            self._commit(self.isr, self.partition_epoch)
        elif code == NONE:
            if result.leader_epoch == leader_epoch and (
                result.partition_epoch >= self.partition_epoch
            ):
                self._commit(result.isr, result.partition_epoch)
        else:
            return code not in _WAIT_FOR_METADATA
        return False

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the lowest log start offset of the live replicas."""
        live = (
            state.log_start_offset
            for replica, state in self._remote()
            if self._context.live_broker_epoch(replica) is not None
        )
        return min((log_start_offset, *live))

    def _remote(self) -> list[tuple[int, ReplicaState]]:
        return [(each, state) for each, state in self.replicas.items() if each != self._node_id]

    def _broker_epoch(self, replica: int) -> int:
        if replica == self._node_id:
            return self._context.broker_epoch()
        epoch = self.replicas[replica].broker_epoch
        return -1 if epoch is None else epoch

    def _commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.pending = None
        self.isr = isr
        self.maximal_isr = frozenset(isr)
        self.partition_epoch = partition_epoch
        self._count()

    def _count(self) -> None:
        self.is_under_min_isr = len(self.isr) < self.min_isr
