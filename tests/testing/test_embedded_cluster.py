import logging
import os
import socket
import threading
from pathlib import Path

import pytest

from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch, records_of


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kclient-")]


def test_closed_cluster_leaves_no_thread_or_file() -> None:
    with EmbeddedCluster() as cluster:
        data_dir = cluster.data_dir
        assert own_threads() != []
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            assert (data_dir / "t-0").is_dir()
    assert own_threads() == []
    assert not data_dir.exists()


def test_cluster_stops_at_the_end_of_the_block() -> None:
    with EmbeddedCluster() as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)
    with pytest.raises(IllegalStateError):
        _ = cluster.bootstrap_servers


def test_forked_child_does_not_stop_the_cluster() -> None:
    with EmbeddedCluster() as cluster, Wire(cluster.bootstrap_servers) as wire:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                cluster.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert cluster.data_dir.is_dir()
        wire.create_topic("t")
        assert (cluster.data_dir / "t-0").is_dir()


def test_unclosed_cluster_warns() -> None:
    kept = [EmbeddedCluster()]
    kept[0].start()
    broker, data_dir = kept[0].broker, kept[0].data_dir
    with pytest.warns(ResourceWarning, match="EmbeddedCluster.* was never closed"):
        kept.clear()
    broker.kill()
    assert not data_dir.exists()


def test_restarted_cluster_keeps_its_data(tmp_path: Path) -> None:
    for start in range(3):
        with EmbeddedCluster(data_dir=tmp_path) as cluster, Wire(cluster.bootstrap_servers) as wire:
            if start == 0:
                wire.create_topic("kept", partitions=3, segment_bytes="2000000")
            assert wire.produce("kept", batch([b"%d" % start])).base_offset == start
            values = [record.value for record in records_of(wire.fetch("kept", 0).records)]
            assert values == [b"%d" % number for number in range(start + 1)]
    assert (tmp_path / "kept-2").is_dir()


def test_restart_keeps_address_and_topics() -> None:
    with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
        with Wire(address) as wire:
            topic_id = wire.create_topic("t")
        cluster.restart()
        assert cluster.bootstrap_servers == address
        assert cluster.broker.services.metadata.image.topics["t"].topic_id == topic_id


def test_kill_loses_no_acknowledged_record() -> None:
    with EmbeddedCluster() as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            wire.produce("t", batch([b"a", b"b"]))
        cluster.kill()
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            assert wire.produce("t", batch([b"c"])).base_offset == 2
            assert len(records_of(wire.fetch("t", 0).records)) == 3


def test_settings_reach_the_broker() -> None:
    with EmbeddedCluster(config={"num.partitions": 5}) as cluster:
        assert cluster.broker.services.config.num_partitions == 5


@pytest.mark.parametrize("brokers", [0, 3, True, "1"])
def test_one_broker_only(brokers: int) -> None:
    with pytest.raises(ConfigError, match="brokers: got"):
        EmbeddedCluster(brokers=brokers)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'num\.partitions'"):
        EmbeddedCluster(config={"num.partition": 5})


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    with (
        EmbeddedCluster(data_dir=tmp_path) as first,
        pytest.raises(KafkaStorageError, match="another broker uses this directory"),
    ):
        EmbeddedCluster(data_dir=tmp_path).start()
    assert own_threads() == []
    assert first.data_dir == tmp_path


def test_port_in_use_is_named(tmp_path: Path) -> None:
    with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
        second = EmbeddedCluster(data_dir=tmp_path, config={"listeners": address})
        with pytest.raises(ConfigError, match=f"cannot listen on {address}"):
            second.start()
    # What was begun was undone: the directory is free again.
    with EmbeddedCluster(data_dir=tmp_path):
        pass


def test_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    with EmbeddedCluster(data_dir=tmp_path):
        pass
    with pytest.raises(ConfigError, match=r"node\.id: got 2"):
        EmbeddedCluster(data_dir=tmp_path, config={"node.id": 2}).start()
    with pytest.raises(ConfigError, match=r"cluster\.id: got"):
        EmbeddedCluster(data_dir=tmp_path, config={"cluster.id": "other"}).start()


@pytest.mark.parametrize(
    ("listeners", "complaint"),
    [
        ("PLAINTEXT://0.0.0.0:0", r"set advertised\.listeners"),
        ("192.0.2.1:9092", "other machines can reach"),
        ("SSL://127.0.0.1:0", r"listener SSL: ssl\.keystore\.location: got nothing"),
        ("127.0.0.1", "expected 'host:port'"),
        ("127.0.0.1:99999", "expected 'host:port'"),
        ("127.0.0.1:1,127.0.0.1:2", "expected different names"),
    ],
)
def test_listeners_that_are_refused(listeners: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        EmbeddedCluster(config={"listeners": listeners})


def test_any_address_needs_one_to_advertise() -> None:
    open_to_all = {"listeners": "0.0.0.0:0", "allow.unauthenticated.listeners": True}
    with pytest.raises(ConfigError, match=r"set advertised\.listeners"):
        EmbeddedCluster(config=open_to_all)
    with EmbeddedCluster(config={**open_to_all, "advertised.listeners": "localhost:0"}) as cluster:
        assert cluster.bootstrap_servers.startswith("localhost:")
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")


def test_normal_operation_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING),
        EmbeddedCluster() as cluster,
        Wire(cluster.bootstrap_servers) as wire,
    ):
        wire.create_topic("t")
        wire.produce("t", batch([b"a"]))
        cluster.restart()
    assert caplog.records == []
