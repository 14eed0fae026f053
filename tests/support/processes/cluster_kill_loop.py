"""Kills the nodes of a cluster repeatedly while records are sent to it, and checks all replicas.

``python -m tests.support.processes.cluster_kill_loop --kills 50 --seed 1``, or
``make crash KILLS=50 BROKERS=3``.
"""

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kclient import AdminClient, NewTopic, Producer
from kclient.cli.cluster.directory import ClusterNode, open_cluster
from kclient.network.system_runtime import system_runtime
from tests.support.checks.waiting import wait_until
from tests.support.clients.load import Load, check_intact
from tests.support.clients.own_client import OwnClient
from tests.support.processes.cluster_processes import ClusterProcesses
from tests.support.processes.cluster_watch import GroupReader, LeaderWatch
from tests.support.processes.kill_loop import check_files, check_offsets_are_whole, show

TOPICS = ("killed-0", "killed-1")
PARTITIONS = 3
_SETTINGS = {"log.roll.ms": "1000", "log.index.interval.bytes": "512", "log.retention.ms": "-1"}
_MOST_BETWEEN = 500  # records acknowledged from a restart to the next kill
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 6.0  # seconds until a killed node is restarted
_LONGEST_START = 1.5  # seconds from the start to a kill during it
_RECOVERY_S = 90.0


@dataclass
class Report:
    """Results of a run of kills.

    Attributes:
        kills: Number of kills.
        controllers: Those of the active controller.
        early_kills: Number of kills during the start.
        acknowledged: Records acknowledged, each checked to be in the log once, in order.
        read: Records that the group has read, all in the order of their offsets.
        replicated: Bytes of the logs, equal in all replicas.
        leaderless_s: Longest time for which a partition had no leader that runs.
        batches: Batches in the files, each with a valid checksum and the next offset.
        segments: Their segment files.
    """

    kills: int = 0
    controllers: int = 0
    early_kills: int = 0
    acknowledged: int = 0
    read: int = 0
    replicated: int = 0
    leaderless_s: float = 0.0
    batches: int = 0
    segments: int = 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills under load, {self.controllers} of the active controller, and "
            f"{self.early_kills} while starting: {self.acknowledged} records acknowledged, 0 lost, "
            f"0 doubled, 0 out of order; {self.read} read by the group; {self.replicated} bytes "
            f"equal in all replicas; {self.batches} batches in {self.segments} segments sound; "
            f"longest time without a leader {self.leaderless_s:.1f} s"
        )


def run(directory: Path, kills: int, seed: int, brokers: int = 3) -> Report:
    """Send records, kill nodes at random times, and check everything.

    Raises:
        AssertionError: A record is lost, duplicated, elsewhere than acknowledged, or out of order;
            a replica differs, or a file of a log is damaged.
    """
    rng = random.Random(seed)
    report = Report()
    address = ("127.0.0.1", 0)
    nodes = open_cluster(system_runtime(), directory, brokers, address, _SETTINGS)
    with ClusterProcesses(nodes, _SETTINGS) as cluster:
        _create_topics(cluster.bootstrap, brokers)
        with (
            LeaderWatch(cluster, TOPICS) as watch,
            GroupReader(cluster.bootstrap, TOPICS) as reader,
            _loads(cluster.bootstrap) as loads,
        ):
            while report.kills < kills:
                for load in loads:
                    load.await_more(rng.randint(1, _MOST_BETWEEN), _RECOVERY_S)
                _kill_one(cluster, rng, report)
                reader.check()
                watch.check()
                acknowledged = sum(each.acknowledged for each in loads)
                show(f"kill {report.kills}: {acknowledged} records acknowledged")
            _await_replicas(cluster.bootstrap, brokers)
            ends = _check_records(cluster.bootstrap, loads, report)
            reader.await_ends(ends, _RECOVERY_S)
            report.read = reader.count
        report.leaderless_s = watch.longest_s
        cluster.stop()
    _check_replicas(nodes, report)
    return report


def _create_topics(bootstrap: str, brokers: int) -> None:
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            [NewTopic(name, PARTITIONS, min(3, brokers)) for name in TOPICS]
        ).raise_for_errors()


@contextmanager
def _loads(bootstrap: str) -> Iterator[list[Load]]:
    """Send records to each topic with a producer of its own."""
    with ExitStack() as stack:
        loads = []
        for topic in TOPICS:
            producer = Producer(
                bootstrap_servers=bootstrap,
                acks="all",
                enable_idempotence=True,
                linger_ms=1,
                batch_size=2_000,
                delivery_timeout_ms=300_000,
                reconnect_backoff_max_ms=200,
            )
            stack.enter_context(producer)
            loads.append(stack.enter_context(Load(producer, topic, ahead=200)))
        yield loads


def _kill_one(cluster: ClusterProcesses, rng: random.Random, report: Report) -> None:
    """Kill a node, at least each third time the one with the active controller; restart it."""
    controller = wait_until(cluster.active_controller, "there is a controller", _RECOVERY_S)
    assert controller is not None  # wait_until returns true values only
    victim = controller if report.kills % 3 == 2 else rng.choice(sorted(cluster.running))
    cluster.kill(victim)
    report.kills += 1
    report.controllers += victim == controller
    time.sleep(rng.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE))
    if rng.random() < 0.2:
        cluster.start(victim)
        time.sleep(rng.uniform(0.0, _LONGEST_START))
        cluster.kill(victim)
        report.early_kills += 1
    cluster.start(victim)
    cluster.await_running(victim, _RECOVERY_S)


def _await_replicas(bootstrap: str, brokers: int) -> None:
    with AdminClient(bootstrap_servers=bootstrap) as admin:

        def are_in_sync() -> bool:
            described = admin.describe_topics(TOPICS)
            return all(
                len(partition.isr) == min(3, brokers)
                for topic in described.values()
                for partition in topic.partitions
            )

        wait_until(are_in_sync, "all replicas are in sync", _RECOVERY_S)


def _check_records(bootstrap: str, loads: list[Load], report: Report) -> dict[tuple[str, int], int]:
    """Check the records of all topics; return the end offsets of the partitions."""
    ends: dict[tuple[str, int], int] = {}
    for topic, load in zip(TOPICS, loads, strict=True):
        sent = load.finish(_RECOVERY_S)
        found = OwnClient(bootstrap).read_all(topic, timeout=120)
        check_intact(sent, found)
        stored = sorted((one.partition, one.offset, one.value) for one in found)
        assert sorted(load.placed) == stored, "a record is not at its acknowledged offset"
        check_offsets_are_whole(stored)
        report.acknowledged += len(sent)
        for number in range(PARTITIONS):
            ends[topic, number] = sum(one.partition == number for one in found)
    return ends


def _check_replicas(nodes: list[ClusterNode], report: Report) -> None:
    """Fail unless all replicas have the same bytes, in valid files.

    No record is sent any more and all replicas are in sync, so that the high watermark is the end
    of the log.
    """
    for topic in TOPICS:
        for node in nodes:
            check_files(node.config.data_dir, report, topic)
        for number in range(PARTITIONS):
            logs = {
                node.id: _bytes_of(node.config.data_dir / f"{topic}-{number}") for node in nodes
            }
            first, *others = logs.values()
            sizes = {node: len(log) for node, log in logs.items()}
            assert all(log == first for log in others), f"{topic}-{number} differs: {sizes}"
            report.replicated += len(first)


def _bytes_of(log: Path) -> bytes:
    if not log.exists():  # no replica of the partition
        return b""
    return b"".join(each.read_bytes() for each in sorted(log.glob("*.log")))


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=None, help="random if absent")
    parser.add_argument("--brokers", type=int, default=3, help="default: %(default)s")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # broken connections are intended
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="kclient-kills-") as directory:
        report = run(Path(directory), options.kills, seed, options.brokers)
    sys.stdout.write(f"{report}\n")


if __name__ == "__main__":
    main()
