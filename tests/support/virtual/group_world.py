"""One group coordinator in virtual time, whose members are driven by hand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kclient.broker.coordinator.group.group import GroupConfig
from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.group.group_records import CommittedOffset
from kclient.broker.coordinator.group.membership import RequestContext
from kclient.broker.coordinator.runtime.partition_log import (
    AppendCallback,
    KeyAndValue,
    LogBatch,
    LogChunk,
    ReadBounds,
    TransactionEnd,
    TransactionOwner,
    partition_for,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kclient.record import ProducerIdAndEpoch, Record
from tests.support.virtual.virtual_home import VirtualHome

TP = TopicPartition("t", 0)


class MemoryLog:
    """``__consumer_offsets`` in a list, which can fail or withhold the commits.

    Attributes:
        failure: Error of every append, or None.
        failure_of_reads: Error of every read, or None.
        leader_epoch: Epoch in which this broker leads every partition.
        withheld: Callbacks of appends that are not committed yet; None to commit at once.
        transactions: Producer id and outcome of transactional records, by partition and offset;
            the outcome is None for records, and the record of a marker is empty.
    """

    def __init__(self) -> None:
        self.partition_count = 5
        self.records: dict[int, list[KeyAndValue]] = {}
        self.failure: KafkaError | None = None
        self.withheld: list[Callable[[KafkaError | None], None]] | None = None
        self.leader_epoch = 0
        self.failure_of_reads: KafkaError | None = None
        self.transactions: dict[tuple[int, int], tuple[int, bool | None]] = {}

    def bounds(self, partition: int, leader_epoch: int) -> ReadBounds:
        assert leader_epoch == self.leader_epoch
        if self.failure_of_reads is not None:
            raise self.failure_of_reads
        end_offset = len(self.records.get(partition, []))
        return ReadBounds(0, end_offset, end_offset)

    def append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[KeyAndValue],
        on_done: AppendCallback,
        transaction_of: TransactionOwner | None = None,
    ) -> None:
        of_records = None if transaction_of is None else (transaction_of.producer_id, None)
        self._append(partition, leader_epoch, records, on_done, of_records)

    def append_marker(
        self, partition: int, leader_epoch: int, end: TransactionEnd, on_done: AppendCallback
    ) -> None:
        ended = (end.producer.producer_id, end.committed)
        self._append(partition, leader_epoch, [(b"", None)], on_done, ended)

    def _append(
        self,
        partition: int,
        leader_epoch: int,
        records: Sequence[KeyAndValue],
        on_done: AppendCallback,
        transaction: tuple[int, bool | None] | None,
    ) -> None:
        assert leader_epoch == self.leader_epoch
        if self.failure is not None:
            on_done(self.failure, -1)
            return
        log = self.records.setdefault(partition, [])
        start_offset = len(log)
        log.extend(records)
        end_offset = len(log)
        for offset in range(start_offset, end_offset):
            self.transactions.pop((partition, offset), None)
            if transaction is not None:
                self.transactions[(partition, offset)] = transaction

        def complete(error: KafkaError | None) -> None:
            if error is not None:
                del log[start_offset:]  # as a new leader would
            on_done(error, end_offset if error is None else -1)

        if self.withheld is None:
            complete(None)
        else:
            self.withheld.append(complete)

    def commit(self, error: KafkaError | None = None) -> None:
        """Complete the oldest withheld append."""
        assert self.withheld is not None
        self.withheld.pop(0)(error)

    def read(self, partition: int, offset: int) -> LogChunk:
        if self.failure_of_reads is not None:
            raise self.failure_of_reads
        records = self.records.get(partition, [])
        batches = [
            self._batch(partition, at, record) for at, record in enumerate(records) if at >= offset
        ]
        return LogChunk(batches, len(records))

    def _batch(self, partition: int, offset: int, record: KeyAndValue) -> LogBatch:
        producer_id, committed = self.transactions.get((partition, offset), (-1, None))
        return LogBatch([Record(offset, -1, *record, [])], producer_id, committed)


class World:
    """A coordinator, its clock and its log; members are driven by hand."""

    def __init__(self, log: MemoryLog | None = None, **config: Any) -> None:
        home = VirtualHome()
        runtime, self.clock = home.runtime, home.clock
        self.log = log or MemoryLog()
        settings = {"initial_rebalance_delay_ms": 0, **config}
        self.coordinator = GroupCoordinator(GroupConfig(**settings), self.log, runtime)
        self.coordinator.startup()
        self.lead(self.log.leader_epoch)

    def lead(self, leader_epoch: int) -> None:
        """Become the leader of every partition, and load them."""
        self.log.leader_epoch = leader_epoch
        for partition in range(self.log.partition_count):
            self.coordinator.on_leadership(partition, leader_epoch)
        self.coordinator.load_now()

    def resign(self, leader_epoch: int) -> None:
        """Let another broker lead every partition."""
        for partition in range(self.log.partition_count):
            self.coordinator.on_resignation(partition, leader_epoch)

    def pass_time(self, duration_ms: float) -> None:
        """Let time pass in small steps, each with what is due in it."""
        end = self.clock.now_ms + duration_ms
        while self.clock.now_ms < end:
            self.clock.now_ms = min(end, self.clock.now_ms + 100)
            self.coordinator.step(self.clock.now_ms)

    def join(self, member_id: str = "", **options: Any) -> list[JoinGroupResponse]:
        """Send a JoinGroup; the list receives the response when it is sent."""
        version = options.pop("version", 3)
        metadata = options.pop("metadata", b"m")
        names = options.pop("protocols", ["range"])
        request = JoinGroupRequest(
            group_id=options.pop("group_id", "g"),
            session_timeout_ms=options.pop("session_timeout_ms", 10_000),
            rebalance_timeout_ms=options.pop("rebalance_timeout_ms", 30_000),
            member_id=member_id,
            protocol_type=options.pop("protocol_type", "consumer"),
            protocols=[JoinGroupRequestProtocol(name=n, metadata=metadata) for n in names],
            **options,
        )
        responses: list[JoinGroupResponse] = []
        self.coordinator.join_group(
            request, RequestContext("c", "/127.0.0.1", version), responses.append
        )
        return responses

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None
    ) -> list[SyncGroupResponse]:
        """Send a SyncGroup; the list receives the response when it is sent."""
        responses: list[SyncGroupResponse] = []
        request = SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=key, assignment=value)
                for key, value in (assignments or {}).items()
            ],
        )
        self.coordinator.sync_group(request, responses.append)
        return responses

    def heartbeat(self, member_id: str, generation: int) -> int:
        return self.coordinator.heartbeat(
            HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
        )

    def start_leave(
        self,
        member: MemberIdentity,
        version: int,
        reply: Callable[[LeaveGroupResponse], None],
    ) -> None:
        request = LeaveGroupRequest(group_id="g", member_id=member.member_id, members=[member])
        self.coordinator.leave_group(request, version, reply)

    def leave(self, *members: MemberIdentity) -> list[int]:
        request = LeaveGroupRequest(group_id="g", members=list(members))
        replies: list[LeaveGroupResponse] = []
        self.coordinator.leave_group(request, 5, replies.append)
        (response,) = replies
        return [member.error_code for member in response.members]

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        metadata: str = "",
        group_id: str = "g",
    ) -> int:
        (codes,) = self.start_commit(offset, member_id, generation, metadata, group_id)
        return codes[TP]

    def start_commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        metadata: str = "",
        group_id: str = "g",
    ) -> list[Mapping[TopicPartition, int]]:
        """Send an OffsetCommit; the list receives the error codes when they are there."""
        replies: list[Mapping[TopicPartition, int]] = []
        value = CommittedOffset(offset, -1, metadata, self.clock.wall_ms())
        member = (member_id, None, generation)
        self.coordinator.commit_offsets(group_id, member, {TP: value}, replies.append)
        return replies

    def commit_in_transaction(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        producer_id: int = 1,
        partition: TopicPartition = TP,
    ) -> int:
        """Commit an offset of group "g" in a transaction; return the error code."""
        (codes,) = self.start_commit_in_transaction(
            offset, member_id, generation, producer_id, partition
        )
        return codes[partition]

    def start_commit_in_transaction(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        producer_id: int = 1,
        partition: TopicPartition = TP,
    ) -> list[Mapping[TopicPartition, int]]:
        """Send a TxnOffsetCommit; the list receives the error codes when they are there."""
        replies: list[Mapping[TopicPartition, int]] = []
        self.coordinator.commit_transactional_offsets(
            "g",
            (member_id, None, generation),
            {partition: CommittedOffset(offset, -1, "", self.clock.wall_ms())},
            TransactionOwner(producer_id, 0),
            replies.append,
        )
        return replies

    def end_transaction(
        self, *, committed: bool = True, producer_id: int = 1
    ) -> list[KafkaError | None]:
        """End a producer's transaction; the list receives the outcome when it is there."""
        replies: list[KafkaError | None] = []
        end = TransactionEnd(ProducerIdAndEpoch(producer_id, 0), committed, coordinator_epoch=0)
        partition = partition_for("g", self.log.partition_count)
        self.coordinator.end_transaction(partition, end, replies.append)
        return replies

    def offset(self) -> int:
        """Return the committed offset of group "g", -1 for none."""
        found = self.coordinator.fetch_offsets("g").get(TP)
        return -1 if found is None else found.offset

    def delete_group(self, group_id: str) -> KafkaError | None:
        """Delete a group; return the error."""
        replies: list[KafkaError | None] = []
        self.coordinator.delete_group(group_id, replies.append)
        (error,) = replies
        return error

    def delete_offsets(
        self, group_id: str, *partitions: TopicPartition
    ) -> dict[TopicPartition, int] | KafkaError:
        """Delete offsets of a group; return the codes or the error."""
        replies: list[dict[TopicPartition, int] | KafkaError] = []
        self.coordinator.delete_offsets(group_id, partitions, replies.append)
        (outcome,) = replies
        return outcome

    def stable_pair(self) -> tuple[str, str, int]:
        """Bring two members into a stable generation; return leader, follower, generation."""
        first = self.join()[0]
        self.sync(first.member_id, 1, {first.member_id: b"all"})
        second = self.join()
        again = self.join(first.member_id)[0]
        assert again.generation_id == second[0].generation_id == 2
        leader, follower = first.member_id, second[0].member_id
        waiting = self.sync(follower, 2)
        assert waiting == []
        self.sync(leader, 2, {leader: b"a", follower: b"b"})
        assert waiting[0].assignment == b"b"
        return leader, follower, 2

    def state(self) -> str:
        return self.coordinator.describe_group("g").group_state
