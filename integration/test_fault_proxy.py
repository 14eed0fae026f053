"""The fault proxy in front of three nodes of Apache Kafka, each behind its own port."""

from integration.conftest import StartCluster
from integration.harness.kafka_cluster import ClusterOptions
from kclient.testing import ApiKey, Direction, FaultProxy
from tests.support.clients.clients import Clients, read


def test_clients_of_three_nodes_stay_behind_the_proxy(start_cluster: StartCluster) -> None:
    addresses = start_cluster(ClusterOptions(nodes=3)).bootstrap().split(",")
    with FaultProxy(addresses[0]) as proxy, Clients(proxy.bootstrap_servers) as clients:
        topic = clients.topic(partitions=6)
        cuts = [
            proxy.cut(50, api=ApiKey.PRODUCE, direction=Direction.TO_BROKER, times=3),
            proxy.drop_response(ApiKey.PRODUCE, nth=2),
            proxy.cut(7, api=ApiKey.FETCH, direction=Direction.TO_CLIENT, times=3),
            proxy.drop_response(ApiKey.HEARTBEAT),
        ]
        producer = clients.producer()
        sent = 600
        futures = [
            producer.send(topic, b"%d" % number, partition=number % 6) for number in range(sent)
        ]
        assert [future.result(60).offset for future in futures] == [
            number // 6 for number in range(sent)
        ]
        consumer = clients.consumer(clients.group(), heartbeat_interval_ms=300)
        consumer.subscribe([topic])
        found = read(consumer, sent, timeout=60)
        for partition in range(6):
            mine = [int(one.value or b"-1") for one in found if one.partition == partition]
            assert mine == list(range(partition, sent, 6))
        consumer.commit()
        assert [cut.hits for cut in cuts[:3]] == [3, 1, 3]
        nodes_used = {one.port for one in clients.admin().describe_cluster().nodes}
        real = {int(address.rpartition(":")[2]) for address in addresses}
        assert len(nodes_used) == 3
        assert nodes_used.isdisjoint(real)
