"""Quorum of the cluster metadata on this node: raft client, controller, and their thread."""

import logging
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
from kclient.broker.metadata.meta_properties import META_PROPERTIES
from kclient.broker.network.inter_broker_sender import InterBrokerSender
from kclient.broker.raft.kafka_raft_client import KafkaRaftClient
from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.raft.quorum_state_store import FileQuorumStateStore
from kclient.broker.raft.raft_context import NodeIdentity
from kclient.broker.raft.raft_listeners import RaftListener
from kclient.broker.raft.raft_log import RaftLog
from kclient.broker.raft.raft_messages import Sender
from kclient.broker.raft.raft_types import NO_NODE, LeaderAndEpoch
from kclient.broker.raft.snapshots import SnapshotFiles
from kclient.broker.raft.voter_set import ReplicaKey, VoterSet
from kclient.broker.server.raft_channel import NetworkRaftChannel, NoRaftChannel
from kclient.common.broker_errors import InconsistentClusterIdError
from kclient.common.runtime import Clock, Runtime
from kclient.common.types import Node
from kclient.common.uuids import random_uuid
from kclient.protocol.message import Request, Response

_log = logging.getLogger(__name__)

_REPORT_MS = 5000.0

Action = Callable[[QuorumController], None]
"""Runs as an event of the quorum."""


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
        quorum: Timeouts of the quorum.
        listener: Name of the listener at which controllers reach each other.
        voters: The voters, with their addresses at that listener.
    """

    data_dir: Path
    directory_id: bytes
    controller: ControllerSettings
    topics: TopicControl
    quorum: QuorumConfig
    listener: str
    voters: VoterSet


class RaftManager:
    """Raft client and controller of a node (Kafka: KafkaRaftManager).

    Neither is thread-safe: all calls run as events.

    Attributes:
        client: The raft client.
        controller: The controller; its committed image may be read by any thread.
        events: Calls of both; with a thread as soon as that is started.
        node_id: Id of this node.
        voters: The voters.
    """

    def __init__(
        self,
        settings: RaftSettings,
        runtime: Runtime,
        failures: LogDirFailureChannel,
        sender: InterBrokerSender | None = None,
    ) -> None:
        """Open the metadata log; nothing is written yet.

        Args:
            settings: Settings.
            runtime: Clock, files, tasks and random numbers.
            failures: Receives the errors of the disk.
            sender: Connections to the other voters; None for the only voter.

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
        replica = ReplicaKey(controller.node_id, settings.directory_id)
        self.node_id = controller.node_id
        self._cluster_id = controller.cluster_id
        self.voters = settings.voters
        self._listener = settings.listener
        self._left = runtime.tasks.condition()
        self._has_left = False
        own = settings.voters.voters[self.node_id]
        self._channel = (
            NoRaftChannel()
            if sender is None
            else NetworkRaftChannel(sender, self.events, runtime.clock)
        )
        self._leaderless_since_ms: float | None = None
        self.client = KafkaRaftClient(
            NodeIdentity(
                Sender(controller.cluster_id, replica), settings.listener, dict(own.endpoints)
            ),
            RaftLog(self._log, SnapshotFiles(runtime.files, directory)),
            FileQuorumStateStore(runtime.files, directory),
            self._channel,
            settings.voters,
            settings.quorum,
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
                node_id=controller.node_id,
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

    def handle_request(self, request: Request, on_response: Callable[[Response], None]) -> None:
        """Handle a request of another voter or of an administrator as an event."""
        now_ms = self._clock.monotonic_ms
        self.events.submit(
            lambda: self.client.handle_request(request, self._listener, now_ms(), on_response)
        )

    @property
    def is_only_voter(self) -> bool:
        """Whether the quorum has no other voter."""
        return len(self.voters) == 1

    @property
    def leader_id(self) -> int:
        """Id of the voter that leads, as far as this node knows, or -1; for any thread."""
        return self.client.leader_and_epoch.leader_id

    @property
    def active_controller(self) -> int | None:
        """Id of this node if its controller is active, else None; for any thread."""
        return self.node_id if self.controller.is_active else None

    def controller_node(self, node_id: int) -> Node | None:
        """Return the address at which the controller of a node is reached; for any thread."""
        endpoint = self.voters.endpoint(node_id, self._listener)
        return None if endpoint is None else Node(node_id, endpoint.host, endpoint.port)

    def leave(self, timeout_ms: float) -> None:
        """Resign before the node stops; changes that are requested later are refused.

        The other voters are informed, and waited for until a timeout, unless they do not respond.
        The only voter is shut down when the event has run.
        """
        self.events.submit(self._channel.forget_failures)
        self.events.submit(self.client.start_shutdown)
        if self.is_only_voter:
            return
        with self._left:
            self._left.wait_for(lambda: self._has_left, timeout_ms / 1000.0)

    def close(self) -> None:
        """Release the files of the metadata log."""
        self._log.maintenance.release()

    def _poll(self) -> float:
        """Run what is due; return the milliseconds until the next call.

        Raises:
            InconsistentClusterIdError: The other voters belong to another cluster.
        """
        self._check_cluster()
        now_ms = self._clock.monotonic_ms()
        self._note_own_process(now_ms)
        deadline_ms = self.client.poll(now_ms)
        self.controller.poll()
        if not self._has_left and self.client.is_shut_down(self._channel.unreachable):
            with self._left:
                self._has_left = True
                self._left.notify_all()
        next_ms = self.controller.next_deadline_ms
        deadline_ms = min(deadline_ms, inf if next_ms is None else next_ms)
        return max(0.0, min(deadline_ms, self._report_leader(now_ms)) - now_ms)

    def _check_cluster(self) -> None:
        foreign = len(self._channel.foreign)
        if foreign and 2 * (len(self.voters) - foreign) <= len(self.voters):
            raise InconsistentClusterIdError(
                f"{META_PROPERTIES}: got cluster.id {self._cluster_id!r:.80}, but {foreign} of "
                f"{len(self.voters)} voters belong to another cluster; a majority has to be of one"
            )

    def _report_leader(self, now_ms: float) -> float:
        """Log each 5 s without a leader which voters do not respond; return the next time."""
        if self.leader_id != NO_NODE:
            self._leaderless_since_ms = None
            return inf
        if self._leaderless_since_ms is None:
            self._leaderless_since_ms = now_ms
        elif now_ms >= self._leaderless_since_ms + _REPORT_MS:
            self._leaderless_since_ms = now_ms
            absent = [
                f"{each} at {node.host}:{node.port}"
                for each in sorted(self._channel.unreachable)
                if (node := self.controller_node(each)) is not None
            ]
            _log.warning(
                "node %d waits for a majority of the voters; not reachable: %s",
                self.node_id,
                ", ".join(absent) or "none",
            )
        return self._leaderless_since_ms + _REPORT_MS

    def _note_own_process(self, now_ms: float) -> None:
        """Extend the session of this node's broker: the process is alive."""
        node_id, incarnation_id = self._own
        broker = self.controller.image.broker(node_id)
        if broker is not None and broker.incarnation_id == incarnation_id:
            self._heartbeats.touch(broker.id, broker.epoch, -1, now_ms)
