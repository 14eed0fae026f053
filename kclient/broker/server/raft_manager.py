"""Quorum of the cluster metadata on this node: raft client, controller, and their thread."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.controller.cluster_control import ClusterControl
from kclient.broker.controller.quorum_controller import ControllerSettings, QuorumController
from kclient.broker.controller.request_planners import RequestPlanners
from kclient.broker.controller.topic_control import TopicControl
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.metadata_log import open_metadata_log
from kclient.broker.raft.kafka_raft_client import KafkaRaftClient
from kclient.broker.raft.quorum_config import DEFAULT_QUORUM_CONFIG
from kclient.broker.raft.quorum_state_store import FileQuorumStateStore
from kclient.broker.raft.raft_context import NodeIdentity
from kclient.broker.raft.raft_listeners import RaftListener
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_messages import Sender
from kclient.broker.raft.raft_types import LeaderAndEpoch, RaftNode
from kclient.broker.raft.request_manager import OnResponse
from kclient.broker.raft.snapshots import SnapshotFiles
from kclient.broker.raft.voter_set import Endpoint, ReplicaKey, VoterNode, VoterSet
from kclient.common.errors import IllegalStateError
from kclient.common.runtime import Clock, Condition, Runtime, Task
from kclient.protocol.message import Request

_log = logging.getLogger(__name__)

_LISTENER = "CONTROLLER"
_ENDPOINT = Endpoint("localhost", 0)
"""Address of the only voter, which no other node connects to."""

Action = Callable[[QuorumController], None]
"""Runs on the thread of the quorum."""


class _NoChannel:
    """Channel of the only voter, which sends no request."""

    def send(
        self, node: RaftNode, request: Request, _timeout_ms: float, _on_response: OnResponse
    ) -> None:
        raise IllegalStateError(f"{type(request).__name__} to {node}: there is no other voter")


class _Quorum:
    """The raft client as the controller uses it: with the time."""

    def __init__(self, client: KafkaRaftClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.resign = client.resign

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        return self._client.leader_and_epoch

    @property
    def next_offset(self) -> int:
        return self._client.next_offset

    def append(self, values: Sequence[bytes], epoch: int) -> int:
        return self._client.append(values, epoch, self._clock.monotonic_ms())


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """Settings of the node's quorum.

    Attributes:
        data_dir: Directory with the metadata log.
        directory_id: Its id.
        controller: Settings of the controller.
        topics: Rules for topics.
    """

    data_dir: Path
    directory_id: bytes
    controller: ControllerSettings
    topics: TopicControl


class RaftManager:
    """Raft client and controller of a node (Kafka: KafkaRaftManager).

    Neither is thread-safe: all calls run as actions, on a thread of their own once that is started.
    Before that, and in a broker without threads, `submit` runs the action itself. The lock guards
    the queue and is not held while an action runs.

    Attributes:
        client: The raft client.
        controller: The controller; its committed image may be read by any thread.
    """

    def __init__(
        self, settings: RaftSettings, runtime: Runtime, failures: LogDirFailureChannel
    ) -> None:
        """Open the metadata log; nothing is written yet.

        Raises:
            KafkaError: The log cannot be used.
        """
        self._clock = runtime.clock
        self._failures = failures
        self._spawn = runtime.tasks.spawn
        self._changed: Condition = runtime.tasks.condition()
        self._actions: deque[Action] = deque()
        self._has_thread = False
        self._task: Task | None = None
        self._is_stepping = False
        self._is_running = True
        self._on_failure: Callable[[BaseException], None] = _ignore
        controller = settings.controller
        self._own = (controller.node_id, controller.incarnation_id)
        self._log = open_metadata_log(runtime, settings.data_dir, failures)
        directory = self._log.directory
        voter = VoterNode(ReplicaKey(controller.node_id), {_LISTENER: _ENDPOINT})
        replica = ReplicaKey(controller.node_id, settings.directory_id)
        self.client = KafkaRaftClient(
            NodeIdentity(Sender(controller.cluster_id, replica), _LISTENER, {_LISTENER: _ENDPOINT}),
            RaftLog(self._log, SnapshotFiles(runtime.files, directory)),
            FileQuorumStateStore(runtime.files, directory),
            _NoChannel(),
            VoterSet.of([voter]),
            DEFAULT_QUORUM_CONFIG,
            runtime.clock,
            runtime.random,
        )
        self._heartbeats = BrokerHeartbeatManager(controller.session_timeout_ms)
        self.controller = QuorumController(
            runtime,
            controller,
            _Quorum(self.client, runtime.clock),
            RequestPlanners(ClusterControl(controller.cluster_id, self._heartbeats)),
            self._heartbeats,
            settings.topics,
        )
        self.client.register(self.controller)

    def initialize(self, listener: RaftListener) -> None:
        """Read the log, and become the leader; the listener receives all that is committed.

        Raises:
            KafkaError: The log or the quorum state cannot be used.
        """
        self.client.register(listener)
        now_ms = self._clock.monotonic_ms()
        with self._failures.guarding("metadata quorum: start"):
            self.client.initialize(now_ms)
            # Without the tasks of the controller: they would fence the earlier life of this node,
            # which its registration replaces.
            self.client.poll(now_ms)

    def submit(self, action: Action) -> None:
        """Run an action on the thread of the quorum, soon; in this thread if there is none."""
        with self._changed:
            self._actions.append(action)
            if self._has_thread:
                self._changed.notify_all()
                return
            if self._is_stepping or not self._is_running:
                return
        self.step()

    def step(self) -> float:
        """Run what is due, without waiting; return the milliseconds until the next step.

        Raises:
            Exception: The node must stop: the disk failed, or the state is not consistent.
        """
        self._is_stepping = True
        now_ms = self._clock.monotonic_ms()
        try:
            while (action := self._next()) is not None:
                action(self.controller)
            self._note_own_process(now_ms)
            deadline_ms = self.client.poll(now_ms)
            self.controller.poll()
            next_ms = self.controller.next_deadline_ms
        finally:
            self._is_stepping = False
        with self._changed:
            if self._actions:
                return 0.0
        return max(0.0, min(deadline_ms, inf if next_ms is None else next_ms) - now_ms)

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Start the thread.

        Args:
            on_failure: Receives the exception with which the thread has ended.
        """
        self._on_failure = on_failure
        self._has_thread = True
        self._task = self._spawn("kclient-raft", self._run_once)

    def shutdown(self, timeout: float) -> None:
        """Stop the thread; later actions are not run."""
        with self._changed:
            self._is_running = False
            self._changed.notify_all()
        if self._task is not None and not self._task.join(timeout):
            _log.warning("%s did not end within %s s", self._task.name, timeout)

    def close(self) -> None:
        """Release the files of the metadata log."""
        self._log.maintenance.release()

    def _next(self) -> Action | None:
        with self._changed:
            return self._actions.popleft() if self._actions else None

    def _note_own_process(self, now_ms: float) -> None:
        """Extend the session of this node's broker: the process is alive."""
        node_id, incarnation_id = self._own
        broker = self.controller.image.broker(node_id)
        if broker is not None and broker.incarnation_id == incarnation_id:
            self._heartbeats.touch(broker.id, broker.epoch, -1, now_ms)

    def _run_once(self) -> bool:
        try:
            wait_ms = self.step()
        except Exception as error:  # noqa: BLE001 (the node ends)
            self._on_failure(error)
            return False
        with self._changed:
            if self._is_running and not self._actions:
                self._changed.wait(min(wait_ms, _IDLE_MS) / 1000.0)
            return self._is_running


_IDLE_MS = 60_000.0


def _ignore(_error: BaseException) -> None:
    return
