"""Quorum of one node: restarts, failures, idle time."""

import errno
from pathlib import Path

import pytest

from kclient.broker.raft.quorum_config import DEFAULT_QUORUM_CONFIG
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import KafkaStorageError
from kclient.network.system_runtime import system_runtime
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch
from tests.support.disks.faulty_files import FaultySystemFiles
from tests.support.virtual.memory_quorum import heartbeat, registration
from tests.support.virtual.virtual_home import VirtualHome


class TickingClock:
    """Clock that moves by one millisecond with each reading."""

    def __init__(self) -> None:
        self.readings = 0

    def monotonic_ms(self) -> float:
        self.readings += 1
        return float(self.readings)

    def monotonic_ns(self) -> int:
        return self.readings * 1_000_000

    def wall_ms(self) -> int:
        return self.readings

    def wall_ns(self) -> int:
        return self.monotonic_ns()


def test_killed_node_is_back_without_an_election_timeout(tmp_path: Path) -> None:
    clock = TickingClock()
    config = BROKER_CONFIG.parse({"log.dir": str(tmp_path), "listeners": "127.0.0.1:0"})
    broker = BrokerServer(config, system_runtime()._replace(clock=clock))
    broker.start(threads=False)
    broker.kill()
    killed_at = clock.readings
    broker.start(threads=False)
    assert clock.readings - killed_at < DEFAULT_QUORUM_CONFIG.election_timeout_ms
    (registered,) = broker.services.metadata.image.brokers.values()
    assert not registered.fenced
    broker.stop()


def test_idle_node_writes_no_metadata(tmp_path: Path) -> None:
    home = VirtualHome()
    config = BROKER_CONFIG.parse({"log.dir": str(tmp_path), "listeners": "127.0.0.1:0"})
    broker = BrokerServer(config, home.runtime)
    broker.start(threads=False)
    offset = broker.services.metadata.image.offset
    for _ in range(100):
        home.sleep(1_000.0)
        broker.step(home.clock.now_ms)
    assert broker.services.metadata.image.offset == offset
    assert broker.storage.raft.client.log_end_offset == offset + 1
    broker.stop()


def test_orderly_stop_resigns_and_a_crash_does_not(tmp_path: Path) -> None:
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        killed = cluster.broker.storage.raft
        cluster.kill()
        cluster.start()
        stopped = cluster.broker.storage.raft
    assert (killed.controller.is_active, killed.client.is_shut_down()) == (True, False)
    assert (stopped.controller.is_active, stopped.client.is_shut_down()) == (False, True)


def test_unexpected_error_of_the_quorum_ends_the_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = BROKER_CONFIG.parse({"log.dir": str(tmp_path), "listeners": "127.0.0.1:0"})
    broker = BrokerServer(config, system_runtime())
    broker.start()

    def fail(_controller: object) -> None:
        raise ValueError("a defect")

    broker.storage.raft.submit(fail)
    wait_until(lambda: not broker.is_running, "the node has ended")
    assert isinstance(broker.failure, ValueError)
    assert "broker 1 ends: ValueError: a defect" in caplog.text
    broker.stop()


@pytest.mark.fault("B11", "B12")
@pytest.mark.parametrize(
    ("action", "code"), [("write", errno.EIO), ("write", errno.ENOSPC), ("flush", errno.EIO)]
)
def test_failed_disk_of_the_metadata_log_ends_the_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, action: str, code: int
) -> None:
    files = FaultySystemFiles()
    runtime = system_runtime()._replace(files=files)
    with EmbeddedCluster(data_dir=tmp_path, runtime=runtime) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("kept")
            broker = cluster.broker
            files.fail(action, ".log", code)
            with pytest.raises((EOFError, ConnectionError)):
                wire.create_topic("lost")
        wait_until(lambda: not broker.is_running, "the node has ended")
        assert isinstance(broker.failure, KafkaStorageError)
        assert caplog.text.count("broker 1 ends: KafkaStorageError: __cluster_metadata-0: ") == 1
        files.heal()
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            assert wire.produce("kept", batch([b"a"])).error_code == 0
            wire.create_topic("later")


def test_stepped_node_raises_the_error_of_its_metadata_log(tmp_path: Path) -> None:
    home, files = VirtualHome(), FaultySystemFiles()
    config = BROKER_CONFIG.parse({"log.dir": str(tmp_path), "listeners": "127.0.0.1:0"})
    broker = BrokerServer(config, home.runtime._replace(files=files))
    broker.start(threads=False)
    services = broker.services
    request = registration(2, cluster_id=services.cluster_id)
    epochs: list[int] = []
    services.controller.send(request, lambda response: epochs.append(response.broker_epoch))
    services.controller.send(heartbeat(2, epochs[0]), lambda _response: None)
    files.fail("write", ".log", errno.ENOSPC)
    home.sleep(60_000)  # the session of broker 2 has ended, which is written to the log
    for _ in range(2):
        with pytest.raises(KafkaStorageError, match="__cluster_metadata-0"):
            broker.step(home.clock.now_ms)
    broker.kill()
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        assert 2 in cluster.broker.services.metadata.image.brokers
