"""Other projects' clients behind the fault proxy."""

import pytest

from kclient.testing import ApiKey, Direction, EmbeddedCluster, FaultProxy
from tests.support.clients.clients import Clients
from tests.support.clients.foreign import FOREIGN_CLIENTS
from tests.support.clients.foreign_record import ForeignRecord


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_faults_of_the_proxy_affect_foreign_clients(
    cluster: EmbeddedCluster, straight: Clients, proxy: FaultProxy, name: str
) -> None:
    topic = straight.topic()
    client = FOREIGN_CLIENTS[name](proxy.bootstrap_servers)
    sent = [ForeignRecord(value=b"%d" % number, partition=0) for number in range(20)]
    cuts = [
        proxy.cut(30, api=ApiKey.PRODUCE, direction=Direction.TO_BROKER),
        proxy.cut(3, api=ApiKey.FETCH, direction=Direction.TO_CLIENT),
    ]
    client.produce(topic, sent)
    found = client.consume(topic, len(sent), group=straight.group(), timeout=40)
    assert [record.value for record in found] == [record.value for record in sent]
    assert [cut.hits for cut in cuts] == [1, 1]
    asked = {frame.api for frame in proxy.frames if frame.direction is Direction.TO_BROKER}
    assert {ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FIND_COORDINATOR, ApiKey.FETCH} <= asked
