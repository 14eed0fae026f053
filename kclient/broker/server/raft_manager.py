"""Quorum of the cluster metadata on this node: raft client, controller, and their thread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

from kclient.broker.controller.acl_control import AclControl
from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.controller.cluster_control import ClusterControl
from kclient.broker.controller.event_queue import EventQueue
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
from kclient.common.runtime import Clock, Runtime
from kclient.common.uuids import random_uuid
from kclient.protocol.message import Request

_LISTENER = "CONTROLLER"
_ENDPOINT = Endpoint("localhost", 0)
"""Address of the only voter, which no other node connects to."""

Action = Callable[[QuorumController], None]
"""Runs as an event of the quorum."""


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

    Neither is thread-safe: all calls run as events.

    Attributes:
        client: The raft client.
        controller: The controller; its committed image may be read by any thread.
        events: Calls of both; with a thread as soon as that is started.
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
        self.events = EventQueue(runtime.tasks, self._poll)
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
            RequestPlanners(
                ClusterControl(controller.cluster_id, self._heartbeats),
                AclControl(partial(random_uuid, runtime.random)),
            ),
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
        """Run an action as an event."""
        self.events.submit(partial(action, self.controller))

    def leave(self) -> None:
        """Resign before the node stops; changes that are requested later are refused.

        The only voter has no other to inform, and is shut down when the event has run.
        """
        self.events.submit(self.client.start_shutdown)

    def close(self) -> None:
        """Release the files of the metadata log."""
        self._log.maintenance.release()

    def _poll(self) -> float:
        """Run what is due; return the milliseconds until the next call."""
        now_ms = self._clock.monotonic_ms()
        self._note_own_process(now_ms)
        deadline_ms = self.client.poll(now_ms)
        self.controller.poll()
        next_ms = self.controller.next_deadline_ms
        return max(0.0, min(deadline_ms, inf if next_ms is None else next_ms) - now_ms)

    def _note_own_process(self, now_ms: float) -> None:
        """Extend the session of this node's broker: the process is alive."""
        node_id, incarnation_id = self._own
        broker = self.controller.image.broker(node_id)
        if broker is not None and broker.incarnation_id == incarnation_id:
            self._heartbeats.touch(broker.id, broker.epoch, -1, now_ms)
