"""Operator of the broker: starts and restarts it, and checks invariants at each step."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from kclient.broker.coordinator.group.classic_group import ClassicGroup
from kclient.broker.coordinator.group.group_shard import GroupShard
from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.replication.partition import Partition
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import NotLeaderOrFollowerError
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.virtual.virtual_process import VirtualProcess
from tests.simulation.application import Stage
from tests.simulation.history import CommitSeen, Fault
from tests.simulation.scenario import BROKER, INPUT_TOPIC, OUTPUT_TOPIC, TOPIC
from tests.simulation.stable_offsets import StableOffsets
from tests.simulation.traffic import Traffic
from tests.support.disks.faulty_files import ErrorsOnDemand, FaultyFiles, Half

Positions = dict[tuple[str, int], int]
"""Committed offsets by group and partition of the topic."""

_RETRY_MS = 300.0
_FLUSH_S = 0.004


class _SlowDisk:
    """Disk whose flush takes time, so that a process or a machine may fail during it."""

    def __init__(self, operator: "Operator", process: VirtualProcess, lot: Random) -> None:
        self._operator = operator
        self._process = process
        self._lot = lot

    def before(self, action: str, path: Path, half: Half | None = None) -> None:
        if action == "flush":
            self._process.sleep(self._lot.uniform(0.0, _FLUSH_S))
            if path.suffix == ".log":
                self._operator.flushing(path)
        self._operator.faults.before(action, path, half)


class Operator:
    """Operator of the broker's machine.

    Attributes:
        machine: Machine of the broker.
        faults: Faults of its disk.
        stopping: Whether a shutdown is in progress.
        server: The broker, if it runs.
        process: Process of the broker, if any.
        starts: Number of starts by result.
        at_next_flush: Called before the next flush of a segment.
        at_next_batch: Called before the next flush of a segment of the topic.
        at_decision: Called after each step while a transaction is decided and not completed.
        traffic: Counts of the requests received by the broker.
        stable_offsets: Notes the last stable offsets.
        left_open: Files and sockets open after the last shutdown.
    """

    def __init__(self, stage: Stage) -> None:
        self.machine = stage.world.machine(BROKER)
        self.faults = ErrorsOnDemand(stage.world.random("disk faults"))
        self.server: BrokerServer | None = None
        self.process: VirtualProcess | None = None
        self.starts: Counter[str] = Counter()
        self.at_next_flush: Callable[[], None] | None = None
        self.at_next_batch: Callable[[], None] | None = None
        self.at_decision: Callable[[], None] | None = None
        self.left_open: list[str] = []
        self.traffic = Traffic(stage)
        self.stable_offsets = StableOffsets(stage)
        self._stage = stage
        self._wanted = True
        self.stopping = False
        self._life = 0
        self._fresh = False
        self._refusals: BrokerFaults | None = None
        self._launched: BrokerServer | None = None
        self._observed: set[GroupShard] = set()
        self._positions: Positions = {}
        self._expected: Positions = {}
        self._high_watermarks: dict[int, int] = {}

    def start(self) -> None:
        """Start the broker; retry later if that fails."""
        if self.process is not None and self.process.alive:
            return
        self._wanted = True
        self.stopping = False
        self._life += 1
        process = self.process = self.machine.process(f"broker-{self._life}")
        disk = _SlowDisk(self, process, self._stage.world.random("flushes"))
        files = FaultyFiles(process.files, disk)
        runtime = process.runtime._replace(files=files)
        server = BrokerServer(BROKER_CONFIG.parse(self._stage.scenario.broker), runtime)
        server.intercept(self.traffic.intercept)
        self._launched = server
        self._observed.clear()
        self._expected = dict(self._positions)
        process.spawn("main", lambda: self._serve(server, process))

    def _serve(self, server: BrokerServer, process: VirtualProcess) -> None:
        try:
            server.start()
        except (KafkaError, OSError) as error:
            self.starts[type(error).__name__] += 1
            self._stage.history.add(self._event("start failed", str(error)))
            self._stage.world.clock.after(_RETRY_MS, self._try_again)
            process.kill()
        self.starts["ok"] += 1
        self._high_watermarks.clear()
        self.stable_offsets.restart()
        self._fresh = True
        self.server = server

    def _try_again(self) -> None:
        if self._wanted and (self.process is None or not self.process.alive):
            self.start()

    def kill(self) -> None:
        """Kill the broker, as kill -9 does."""
        self._wanted = self.stopping = False
        self.server = None
        if self.process is not None:
            self.process.kill()

    def power_cut(self) -> None:
        """Cut the machine's power."""
        self._wanted = self.stopping = False
        self.server = None
        self.machine.power_cut()

    def flushing(self, segment: Path) -> None:
        """Run `at_next_flush` or `at_next_batch`: the last appends are not on disk yet."""
        happens, self.at_next_flush = self.at_next_flush, None
        if happens is None and segment.parent.name.startswith(f"{TOPIC}-"):
            happens, self.at_next_batch = self.at_next_batch, None
        if happens is not None:
            happens()

    def restart_if_failed(self) -> None:
        """Kill and restart a broker whose log directory is offline."""
        if self.server is not None and not self.stopping and not self._trusts_its_disk():
            self._stage.history.add(self._event("restart of a failed broker", ""))
            self.kill()
            self.start()

    def has_pending_members(self, group_id: str) -> bool:
        """Return whether the broker waits for a client to join with its assigned member id."""
        if self.server is None:
            return False
        shards = self.server.services.groups._runtime.shards()
        groups = [shard._groups.get(group_id) for shard in shards]
        return any(isinstance(each, ClassicGroup) and each.pending_members for each in groups)

    def stop(self) -> None:
        """Shut the broker down; kill it if that does not end in time."""
        server, process = self.server, self.process
        if server is None or process is None or not process.alive or self.stopping:
            return
        self.stopping = True
        self._wanted = False

        def stop() -> None:
            try:
                server.stop()
            except (KafkaError, OSError) as error:
                self._stage.history.add(self._event("stop failed", str(error)))
            self.server = None
            self.stopping = False
            self.left_open = [*map(repr, process.net.sockets()), *process.files.open_files()]
            process.exit()

        process.spawn("stop", stop)

    def refuse_offset_look_ups(self) -> None:
        """Fail ListOffsets requests with a retriable error."""
        if self.server is not None and self.process is not None:
            self._refusals = BrokerFaults(self.process.runtime, self.kill)
            self._refusals.fail(ApiKey.LIST_OFFSETS, NotLeaderOrFollowerError, times=None)
            self.server.intercept(self.traffic.counting(self._refusals.intercept))

    def allow_offset_look_ups(self) -> None:
        """Handle ListOffsets requests again."""
        if self._refusals is not None:
            self._refusals.heal()

    @property
    def down(self) -> bool:
        """Whether no broker process runs."""
        return self.process is None or not self.process.alive

    @property
    def is_sound(self) -> bool:
        """Whether the broker runs with its log directory online."""
        return self.server is not None and not self.stopping and self._trusts_its_disk()

    def ends(self) -> dict[int, int] | None:
        """Return the log end offset of each partition, or None while one is not hosted."""
        if not self.is_sound:
            return None
        ends = {
            each.topic_partition.partition: each.log.log_end_offset for each in self._partitions()
        }
        return ends if len(ends) == self._stage.scenario.partitions else None

    def watch(self) -> None:
        """Check the invariants that hold after each step.

        Raises:
            AssertionError: An invariant is violated.
        """
        self._restart_if_ended()
        if self._launched is None or not self._launched.is_running:
            return
        for shard in self._launched.services.groups._runtime.shards():
            if shard not in self._observed:
                self._observe_commits(shard)
        if self.server is None:
            return
        if self._fresh:
            self._fresh = False
            self._check_positions()
        for each in self._partitions():
            self._watch_end(each.topic_partition.partition, each.log)
        if self._stage.scenario.writers:
            self._watch_stable_offsets()
            if self.at_decision is not None and self._has_decided():
                self.at_decision()

    def _watch_stable_offsets(self) -> None:
        if self.process is None or self.process._paused:
            self.stable_offsets.restart()
            return
        for each in self.transactional_logs():
            self.stable_offsets.watch(each.topic_partition, each.log)

    def _has_decided(self) -> bool:
        """Return whether markers of a transaction are being written."""
        if self.server is None:
            return False
        shards = self.server.services.transactions.runtime.shards()
        return any(
            each.state.is_prepared for shard in shards for each in shard._transactions.values()
        )

    def transactional_logs(self) -> list[Partition]:
        """Return the partitions that are written in transactions."""
        if self.server is None:
            return []
        hosted = self.server.services.replica_manager._partitions
        return [
            each for where, each in hosted.items() if where.topic in {INPUT_TOPIC, OUTPUT_TOPIC}
        ]

    def _restart_if_ended(self) -> None:
        """Restart a broker that has ended, as it does if its metadata log cannot be written."""
        if self.server is None or self.stopping or self.server.failure is None:
            return
        self._stage.history.add(self._event("broker ended", str(self.server.failure)))
        self.kill()
        self._wanted = True
        self._stage.world.clock.after(_RETRY_MS, self._try_again)

    def _observe_commits(self, shard: GroupShard) -> None:
        """Add each commit to the history when the shard applies it.

        A step of a task may apply several: the state after the step has only the last of them.
        """
        self._observed.add(shard)
        apply = shard.replay

        def replay(record: CoordinatorRecord, record_offset: int, producer_id: int) -> None:
            apply(record, record_offset, producer_id)
            key, value = record.key, record.value
            if not isinstance(key, OffsetCommitKey) or key.topic != TOPIC:
                return
            if isinstance(value, OffsetCommitValue):
                self._commit_seen(key.group, key.partition, value.offset)

        vars(shard)["replay"] = replay
        for (group, partition), offset in _positions_of(shard).items():
            if self._positions.get((group, partition)) != offset:
                self._commit_seen(group, partition, offset)

    def _check_positions(self) -> None:
        """Check that a started broker has each committed offset of the previous one."""
        found: Positions = {}
        for shard in self._observed:
            found |= _positions_of(shard)
        for (group, number), before in self._expected.items():
            offset = found.get((group, number))
            if offset is None or offset < before:
                raise AssertionError(f"{group} was at {number}@{before}; the start found {offset}")

    def _commit_seen(self, group: str, number: int, offset: int) -> None:
        self._positions[group, number] = offset
        self._stage.history.add(CommitSeen(self._now_ms(), BROKER, group, number, offset))

    def _watch_end(self, number: int, log: UnifiedLog) -> None:
        high_watermark, end = log.high_watermark, log.log_end_offset
        before = self._high_watermarks.get(number, 0)
        if not before <= high_watermark <= end:
            raise AssertionError(
                f"partition {number}: high watermark {before}, then {high_watermark} of {end}"
            )
        self._high_watermarks[number] = high_watermark

    def _partitions(self) -> list[Partition]:
        if self.server is None:
            return []
        hosted = self.server.services.replica_manager._partitions
        return [each for where, each in hosted.items() if where.topic == TOPIC]

    def _trusts_its_disk(self) -> bool:
        """Return whether the data directory is online; the broker may host no partition."""
        if self.server is None:
            return False
        if not self.server.is_running:
            return False
        return not self.server.services.replica_manager._log_manager.is_offline

    def _event(self, kind: str, detail: str) -> Fault:
        return Fault(self._now_ms(), BROKER, kind, detail)

    def _now_ms(self) -> float:
        return self._stage.world.clock.now_ms


def _positions_of(shard: GroupShard) -> Positions:
    return {
        (group, partition.partition): position.offset
        for group, positions in shard._offsets._groups.items()
        for partition, position in positions.items()
        if partition.topic == TOPIC
    }
