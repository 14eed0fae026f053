"""A broker crashes and restarts: clients continue, without loss, duplicates or reordering."""

from pathlib import Path

import pytest

from kclient import NewTopic
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients, place, read, values
from tests.support.clients.load import Load, check_intact
from tests.support.clients.own_client import OwnClient
from tests.support.processes.broker_process import BrokerProcess


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_member_continues_at_its_position_after_broker_restart(tmp_path: Path, how: str) -> None:
    with (
        EmbeddedCluster(data_dir=tmp_path) as cluster,
        Clients(cluster.bootstrap_servers) as clients,
    ):
        topic, group = clients.topic(), clients.group()
        consumer = clients.consumer(group)
        consumer.subscribe(topic)
        seen = []
        for start in range(0, 300, 100):
            clients.fill(topic, 100, start=start)
            seen += read(consumer, 50)
            consumer.commit()
            seen += read(consumer, 30)
            cluster.kill() if how == "kill" else cluster.stop()
            cluster.start()
            # The position is the consumer's own: nothing is read twice because of the broker.
            seen += read(consumer, 20)
        assert values(seen) == list(range(300))
        consumer.commit()
        assert clients.admin().list_consumer_group_offsets(group)[place(topic)].offset == 300
        consumer.close()
        clients.fill(topic, 1, start=300)
        successor = clients.consumer(group)
        successor.subscribe(topic)
        assert values(read(successor, 1)) == [300]


@pytest.mark.fault("R13")
def test_commit_waits_for_the_restarted_broker(tmp_path: Path) -> None:
    with (
        EmbeddedCluster(data_dir=tmp_path) as cluster,
        Clients(cluster.bootstrap_servers) as clients,
    ):
        topic, group = clients.topic(), clients.group()
        consumer = clients.consumer(group)
        consumer.subscribe(topic)
        clients.fill(topic, 10)
        read(consumer, 10)
        cluster.kill()
        cluster.start()
        consumer.commit()
        assert clients.admin().list_consumer_group_offsets(group)[place(topic)].offset == 10


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_producer_loses_and_duplicates_no_record(tmp_path: Path, codec: str) -> None:
    with BrokerProcess(tmp_path) as first:
        address = first.bootstrap
        with Clients(address) as clients:
            clients.admin().create_topics([NewTopic("t", num_partitions=3)]).raise_for_errors()
            producer = clients.producer(
                acks="all", linger_ms=1, batch_size=1_000, compression_type=codec
            )
            with Load(producer, "t") as load:
                load.await_more(2_000)
                first.kill()
                with BrokerProcess(tmp_path, listen=address) as second:
                    load.await_more(2_000)
                    second.kill()
                    with BrokerProcess(tmp_path, listen=address):
                        load.await_more(2_000)
                        sent = load.finish()
                        found = OwnClient(address).read_all("t")
    check_intact(sent, found)
    # The record is at its acknowledged offset.
    assert sorted(load.placed) == sorted((one.partition, one.offset, one.value) for one in found)
