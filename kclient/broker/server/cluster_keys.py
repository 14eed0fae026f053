"""Keys of the metadata quorum, of a broker's life in its cluster, and of replication."""

from kclient.broker.raft.quorum_config import QuorumConfig
from kclient.broker.server.broker_keys import boolean, names, number, string
from kclient.broker.server.listener_keys import SERVER_MECHANISMS, ListenerKeys
from kclient.broker.server.listeners import SECURITY_INTER_BROKER
from kclient.broker.server.peer_security import CONTROLLER_MECHANISM, INTER_BROKER_MECHANISM
from kclient.broker.server.quorum_voters import VOTERS
from kclient.common.config_def import ConfigType
from kclient.network.endpoint import SecurityProtocol

_INT = ConfigType.INT
_LONG = ConfigType.LONG
# A node alone accepts each of them without effect, as the server.properties of a cluster has it.
_NODE_MECHANISMS = ("GSSAPI", *SERVER_MECHANISMS)


class ClusterKeys(ListenerKeys):
    """Keys that matter as soon as a cluster has several nodes."""

    controller_quorum_voters: tuple[str, ...] | None = names(
        VOTERS,
        None,
        "Voters of the metadata quorum, this node included, each as id@host:port; this node alone"
        " by default.",
    )
    security_inter_broker_protocol: str | None = string(
        SECURITY_INTER_BROKER,
        None,
        "Name of the advertised listener for other brokers, which is that of a security protocol;"
        " instead of inter.broker.listener.name.",
        values=tuple(SecurityProtocol.__members__),
    )
    sasl_mechanism_inter_broker_protocol: str | None = string(
        INTER_BROKER_MECHANISM,
        None,
        "SASL mechanism of connections to other brokers, PLAIN or SCRAM, if their listener has"
        " SASL; user and password are those of the listener's login module. Kafka's default is"
        " GSSAPI.",
        values=_NODE_MECHANISMS,
    )
    sasl_mechanism_controller_protocol: str | None = string(
        CONTROLLER_MECHANISM,
        None,
        "SASL mechanism of connections to controllers, PLAIN, if their listener has SASL; user and"
        " password likewise. Kafka's default is GSSAPI.",
        values=_NODE_MECHANISMS,
    )
    controller_quorum_election_timeout_ms: int = number(
        "controller.quorum.election.timeout.ms",
        _INT,
        1000,
        "Time without a leader until a voter asks for another election; up to as much again is"
        " added at random.",
        low=1,
    )
    controller_quorum_fetch_timeout_ms: int = number(
        "controller.quorum.fetch.timeout.ms",
        _INT,
        2000,
        "Time without a successful fetch from the leader until a voter asks for an election.",
        low=1,
    )
    controller_quorum_election_backoff_max_ms: int = number(
        "controller.quorum.election.backoff.max.ms",
        _INT,
        1000,
        "Longest delay of the successors of a leader that has resigned.",
    )
    controller_quorum_request_timeout_ms: int = number(
        "controller.quorum.request.timeout.ms",
        _INT,
        2000,
        "Time until a request of the quorum without a response fails.",
        low=1,
    )
    controller_quorum_retry_backoff_ms: int = number(
        "controller.quorum.retry.backoff.ms",
        _INT,
        20,
        "Wait after a failed request of the quorum.",
    )
    controller_quorum_append_linger_ms: int = number(
        "controller.quorum.append.linger.ms",
        _INT,
        25,
        "Time for which the leader collects records before it writes them; the only voter writes"
        " at once.",
    )
    controller_quorum_fetch_max_bytes: int = number(
        "controller.quorum.fetch.max.bytes",
        _INT,
        1048576,
        "Largest response to a fetch of the metadata log.",
        low=1,
    )
    controller_quorum_fetch_snapshot_max_bytes: int = number(
        "controller.quorum.fetch.snapshot.max.bytes",
        _INT,
        1048576,
        "Largest part of a snapshot in a response.",
        low=1,
    )
    controller_socket_timeout_ms: int = number(
        "controller.socket.timeout.ms",
        _INT,
        30000,
        "Time until a request to the active controller fails.",
        low=1,
    )
    metadata_max_idle_interval_ms: int = number(
        "metadata.max.idle.interval.ms",
        _INT,
        500,
        "Interval of the records that the active controller writes while nothing changes; 0: none."
        " The only voter writes none.",
    )
    broker_heartbeat_interval_ms: int = number(
        "broker.heartbeat.interval.ms", _INT, 2000, "Interval of a broker's heartbeats.", low=1
    )
    broker_session_timeout_ms: int = number(
        "broker.session.timeout.ms",
        _INT,
        9000,
        "Time without a heartbeat until the controller fences a broker.",
        low=1,
    )
    initial_broker_registration_timeout_ms: int = number(
        "initial.broker.registration.timeout.ms",
        _INT,
        60000,
        "Time until a broker that cannot register ends.",
        low=1,
    )
    controlled_shutdown_enable: bool = boolean(
        "controlled.shutdown.enable",
        "Whether a broker that stops gives its partitions to other leaders first.",
        default=True,
    )
    auto_leader_rebalance_enable: bool = boolean(
        "auto.leader.rebalance.enable",
        "Whether the controller returns partitions to their preferred leaders.",
        default=True,
    )
    leader_imbalance_check_interval_seconds: int = number(
        "leader.imbalance.check.interval.seconds",
        _LONG,
        300,
        "Interval of the check for preferred leaders that do not lead.",
        low=1,
    )
    num_replica_fetchers: int = number(
        "num.replica.fetchers", _INT, 1, "Fetchers of a broker for each leader.", low=1
    )
    replica_lag_time_max_ms: int = number(
        "replica.lag.time.max.ms",
        _LONG,
        30000,
        "Time for which a follower may be behind before it leaves the in-sync replicas.",
        low=1,
    )
    replica_fetch_wait_max_ms: int = number(
        "replica.fetch.wait.max.ms",
        _INT,
        500,
        "Time that a leader keeps a follower's fetch without new records.",
    )
    replica_fetch_min_bytes: int = number(
        "replica.fetch.min.bytes", _INT, 1, "Bytes that a follower's fetch waits for."
    )
    replica_fetch_max_bytes: int = number(
        "replica.fetch.max.bytes", _INT, 1048576, "Bytes that a follower fetches of a partition."
    )
    replica_fetch_response_max_bytes: int = number(
        "replica.fetch.response.max.bytes",
        _INT,
        10485760,
        "Largest response to a follower's fetch; a first batch may exceed it.",
    )
    replica_fetch_backoff_ms: int = number(
        "replica.fetch.backoff.ms", _INT, 1000, "Wait of a follower after an error of a partition."
    )
    replica_socket_timeout_ms: int = number(
        "replica.socket.timeout.ms",
        _INT,
        30000,
        "Time until a fetch of a follower without a response fails.",
        low=1,
    )
    replica_socket_receive_buffer_bytes: int = number(
        "replica.socket.receive.buffer.bytes",
        _INT,
        65536,
        "Receive buffer of a follower's connections; -1: the system's default.",
        low=-1,
    )

    def quorum_config(self) -> QuorumConfig:
        """Return the timeouts and limits of the quorum."""
        return QuorumConfig(
            election_timeout_ms=self.controller_quorum_election_timeout_ms,
            fetch_timeout_ms=self.controller_quorum_fetch_timeout_ms,
            election_backoff_max_ms=self.controller_quorum_election_backoff_max_ms,
            request_timeout_ms=self.controller_quorum_request_timeout_ms,
            retry_backoff_ms=self.controller_quorum_retry_backoff_ms,
            append_linger_ms=self.controller_quorum_append_linger_ms,
            fetch_max_bytes=self.controller_quorum_fetch_max_bytes,
            fetch_snapshot_max_bytes=self.controller_quorum_fetch_snapshot_max_bytes,
        )
