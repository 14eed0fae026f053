"""Settings of a cluster whose nodes are all on one machine."""

from collections.abc import Mapping

CONTROLLER = "CONTROLLER"
"""Name of the listener for controllers."""

MAX_BROKERS = 9
"""All nodes share the processors of one machine; more of them only wait for each other."""

COORDINATOR_SETTINGS: Mapping[str, object] = {
    # Waiting for more members is useful where consumers start on many machines at once.
    "group.initial.rebalance.delay.ms": 0,
    # Few brokers do not distribute groups or transactional ids.
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}


def local_cluster_settings(brokers: int) -> dict[str, object]:
    """Return the settings of each node, but for its id, addresses, voters and directory.

    Elections, heartbeats and sessions take a fraction of Kafka's times: there is no network, and no
    other machine, between the nodes.
    """
    replicas = min(3, brokers)
    return {
        **COORDINATOR_SETTINGS,
        "controller.listener.names": CONTROLLER,
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": max(1, replicas - 1),
        "min.insync.replicas": max(1, replicas - 1),
        "controller.quorum.election.timeout.ms": 200,
        "controller.quorum.fetch.timeout.ms": 1000,
        "controller.quorum.append.linger.ms": 2,
        "metadata.max.idle.interval.ms": 0,
        "broker.heartbeat.interval.ms": 200,
        "broker.session.timeout.ms": 2000,
        "replica.fetch.wait.max.ms": 100,
        "replica.lag.time.max.ms": 5000,
    }
