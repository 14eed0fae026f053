"""Run of a seed: three nodes, their clients, faults, and checks of every invariant."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from kclient.broker.coordinator.runtime.coordinator_runtime import CoordinatorState
from kclient.broker.metadata.metadata_image import CONSUMER_OFFSETS, MetadataImage
from kclient.broker.raft.quorum_state_store import ElectionState, FileQuorumStateStore
from kclient.common.types import TopicPartition
from kclient.testing.virtual import VirtualWorld
from kclient.testing.virtual.virtual_task import SimulationError
from tests.cluster_simulation.load import (
    GROUP,
    PARTITIONS,
    TOPIC,
    TRANSACTIONS,
    AdminClientLoad,
    ConsumerClient,
    GroupTruth,
    ProducerClient,
)
from tests.cluster_simulation.nemesis import Nemesis
from tests.cluster_simulation.nodes import Nodes
from tests.cluster_simulation.partition_truth import PartitionTruth
from tests.cluster_simulation.quorum_truth import QuorumTruth
from tests.cluster_simulation.transactions import CommittedReader, TransactionWriter, check

WORK_MS = 12_000.0
_BEGIN_MS = 30_000.0
_HEAL_MS = 20_000.0
_FINISH_MS = 120_000.0
_IN_SYNC_MS = 30_000.0


@dataclass
class Result:
    """Result of a run.

    Attributes:
        seed: The seed.
        violation: The first violated invariant, or None.
        phase: Phase in which the run has ended.
        faults: Number of faults by kind.
        records: Number of acknowledged records.
        batches: Number of committed batches of metadata.
        virtual_ms: Elapsed virtual time.
        steps: Number of task switches.
        digest: Hash of all events.
        trace: Events, if requested.
    """

    seed: int
    violation: str | None = None
    phase: str = ""
    faults: Counter[str] = field(default_factory=Counter)
    records: int = 0
    batches: int = 0
    virtual_ms: float = 0.0
    steps: int = 0
    digest: str = ""
    trace: list[str] = field(default_factory=list, repr=False)


def simulate(seed: int, *, keep_trace: bool = False) -> Result:
    """Run a seed."""
    result = Result(seed)
    with VirtualWorld(seed, latency_ms=(0.1, 2.0), keep_lines=keep_trace) as world:
        run = _Run(world)
        with run.observing():
            try:
                run.play()
            except (SimulationError, AssertionError) as problem:
                result.violation = f"{type(problem).__name__}: {problem}"
            except Exception as problem:  # noqa: BLE001 (whatever a task died of is a finding)
                result.violation = f"crash: {type(problem).__name__}: {problem} {_where(problem)}"
        result.phase = run.phase
        result.faults = run.nemesis.done
        result.records = sum(len(each.acknowledged) for each in run.partitions)
        result.batches = len(run.quorum.committed)
        result.virtual_ms = world.clock.now_ms
        result.steps = world.scheduler.steps
        result.digest = world.trace.digest()
        result.trace = world.trace.lines
    return result


def _where(problem: BaseException) -> str:
    trace, places = problem.__traceback__, []
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-6:])


class _Run:
    """Phases of a run.

    Attributes:
        phase: Present phase.
        nemesis: Injects the faults.
        quorum: Truth of the metadata.
        partitions: Truth of each partition of the topic.
    """

    def __init__(self, world: VirtualWorld) -> None:
        self.phase = "begin"
        self._world = world
        self._lot = world.random("cluster")
        self.nodes = Nodes(world, self._lot)
        self.nemesis = Nemesis(world, self.nodes, world.random("nemesis"))
        self.quorum = QuorumTruth(self.nodes)
        self.partitions = [
            PartitionTruth(TopicPartition(TOPIC, each), self.nodes) for each in range(PARTITIONS)
        ]
        self._committed = MetadataImage()
        self._group = GroupTruth()
        self._coordinators: dict[int, int] = {}
        self._lives = dict.fromkeys(self.nodes.all, 0)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Check each written election state while a block runs."""
        write = FileQuorumStateStore.write

        def observed(store: Any, state: ElectionState, kraft_version: int) -> None:
            write(store, state, kraft_version)
            for node in self.nodes.all.values():
                if store._files is node.runtime_files:
                    self.quorum.persisted(node.id, state)

        with patch.object(FileQuorumStateStore, "write", observed):
            yield

    def play(self) -> None:
        """Run all phases."""
        world = self._world
        self.nodes.start()
        self._act("begin", _BEGIN_MS, self.nodes.are_active)
        world.on_step.append(self._check)
        admin = AdminClientLoad(world, "admin")
        self._act("topic", _BEGIN_MS, lambda: admin.ready)
        producers = [
            ProducerClient(world, f"p{each}", self._acknowledge)
            for each in range(self._lot.randint(1, 2))
        ]
        consumers = [ConsumerClient(world, f"c{each}", self._group) for each in range(2)]
        writer, reader = TransactionWriter(world, "w"), CommittedReader(world, "r")
        self.nemesis.start()
        self.phase = "work"
        world.run(timeout_ms=WORK_MS)
        self.nemesis.stop()
        self._act("heal", _HEAL_MS, self.nodes.are_active)
        ending = (admin, writer, *producers)
        for client in ending:
            client.stopping = True
        self._act("finish", _FINISH_MS, lambda: all(each.over for each in ending))
        self._act("in sync", _IN_SYNC_MS, self._are_in_sync)
        self._act("read", _IN_SYNC_MS, lambda: self._have_read(consumers))
        self._act("T3: read transactions", _IN_SYNC_MS, lambda: self._have_all_ended(reader))
        closing = (reader, *consumers)
        for each in closing:
            each.stopping = True
        self._act("close", _IN_SYNC_MS, lambda: all(each.over for each in closing))
        self.phase = "end"
        check(writer, reader)
        self._check_end(producers, admin)
        self._check_group()
        failures = [each for node in self.nodes.all.values() for each in node.failures]
        assert not failures, f"a node has ended: {failures}"

    def _act(self, phase: str, limit_ms: float, until: Any) -> None:
        self.phase = phase
        self._world.run(until, limit_ms)

    def _acknowledge(self, where: TopicPartition, offset: int, value: bytes) -> None:
        self.partitions[where.partition].acknowledge(offset, value)

    def _check(self) -> None:
        for node in self.nodes.all.values():
            if node.life != self._lives[node.id]:
                self._lives[node.id] = node.life
                self.quorum.observer.clean[node.id] = node.ended_cleanly
        self.quorum.check()
        committed = self.quorum.observer.committed
        if committed is not self._committed:
            self._committed = committed
            for node in self.nodes.all.values():
                node.note_committed(committed)
        for each in self.partitions:
            each.check(committed)
        self._check_coordinators()
        assert not self._group.problems, "; ".join(self._group.problems[:3])

    def _are_in_sync(self) -> bool:
        image = self.quorum.observer.committed
        for truth in self.partitions:
            registration = image.partition(truth.where)
            if registration is None or len(registration.isr) < len(registration.replicas):
                return False
            found = [node.partition(truth.where) for node in self.nodes.all.values()]
            logs = [each.log for each in found if each is not None]
            ends = {each for log in logs for each in (log.log_end_offset, log.high_watermark)}
            if len(logs) < len(found) or len(ends) != 1:
                return False
        return True

    def _have_all_ended(self, reader: CommittedReader) -> bool:
        """Return whether a committed reader is at the high watermark of each partition."""
        for partition, position in reader.positions.items():
            found = [
                node.partition(TopicPartition(TRANSACTIONS, partition))
                for node in self.nodes.all.values()
            ]
            leading = [each for each in found if each is not None and each.is_leader]
            if not leading or position < leading[0].log.high_watermark:
                return False
        return True

    def _have_read(self, consumers: list[ConsumerClient]) -> bool:
        read = set().union(*(each.read for each in consumers))
        return all(
            (truth.where.partition, offset) in read
            for truth in self.partitions
            for offset in truth.acknowledged
        )

    def _check_end(self, producers: list[ProducerClient], admin: AdminClientLoad) -> None:
        for truth in self.partitions:
            truth.check_end()
            stored = truth.values()
            for offset, value in truth.acknowledged.items():
                found = stored.get(offset)
                assert found == value, f"R1: {value!r} at {truth.where}@{offset}: {found!r}"
            for producer in producers:
                assert not producer.failed, f"R1: records failed: {producer.failed[:3]}"
                own = [each for each in stored.values() if each in producer.acknowledged]
                sent = [each for each in producer.sent[truth.where.partition] if each in own]
                assert own == sent, f"R11: {producer.name} sent {sent}, the log has {own}"
                missing = producer.acknowledged.intersection(
                    producer.sent[truth.where.partition]
                ).difference(own)
                assert not missing, f"R1: lost: {missing}"
        topics = self.quorum.observer.committed.topics
        for name, partitions in admin.created.items():
            assert name in topics, f"Q8: the acknowledged topic {name} is lost"
            assert len(topics[name].partitions) >= partitions, f"Q8: partitions of {name} are lost"

    def _check_coordinators(self) -> None:
        """Check that one node is the coordinator in a leader epoch: G3."""
        for node in self.nodes.running():
            server = node.running
            assert server is not None
            for each in server.services.groups._runtime._coordinators.values():
                if each.state is CoordinatorState.ACTIVE:
                    known = self._coordinators.setdefault(each.leader_epoch, node.id)
                    assert known == node.id, (
                        f"G3: {known} and {node.id} coordinate in epoch {each.leader_epoch}"
                    )

    def _check_group(self) -> None:
        """Check that no acknowledged commit is lost: G2."""
        (coordinator,) = self.quorum.observer.committed.topics[CONSUMER_OFFSETS].partitions
        server = self.nodes.all[coordinator.leader].running
        assert server is not None
        found = server.services.groups.fetch_offsets(GROUP)
        stored = {place.partition: committed.offset for place, committed in found.items()}
        for partition, offset in self._group.committed.items():
            assert stored.get(partition, -1) >= offset, (
                f"G2: committed {offset} of {partition}, stored {stored}"
            )
