"""Exchanges with a listener with SASL: Apache Kafka and the companion broker do the same."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from tests.support.clients.sasl_conversations import CONVERSATIONS, PASSWORD, Ask, outcomes
from tests.support.clients.wire import Wire

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def servers(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    properties = {
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f'{_MODULE} required user_alice="{PASSWORD}";',
    }
    options = ClusterOptions(
        listeners=(Listener("USERS", "SASL_PLAINTEXT", properties=properties),)
    )
    with KafkaCluster(runtimes(NEWEST), tmp_path_factory.mktemp("sasl-"), options) as cluster:
        yield cluster.bootstrap("USERS")


@pytest.mark.parametrize(("asks", "expected"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_conversation(servers: str, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(servers) as wire:
        assert outcomes(wire, asks) == list(expected)
