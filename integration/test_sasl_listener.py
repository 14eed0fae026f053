"""Exchanges with a listener with SASL: Apache Kafka and the companion broker do the same."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.secured_kafka import SCRAM_MODULE
from tests.support.clients.sasl_conversations import (
    CONVERSATIONS,
    PASSWORD,
    REAUTHENTICATIONS,
    SESSION_MS,
    Ask,
    outcomes,
)
from tests.support.clients.wire import Wire

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def cluster(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    users = f'{_PLAIN} required user_alice="{PASSWORD}" user_bob="other";'
    plain = {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": users}
    sessions = {
        **plain,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "plain.connections.max.reauth.ms": str(SESSION_MS),
    }
    options = ClusterOptions(
        listeners=(
            Listener("USERS", "SASL_PLAINTEXT", properties=plain),
            Listener("SESSIONS", "SASL_PLAINTEXT", properties=sessions),
        )
    )
    with KafkaCluster(runtimes(NEWEST), tmp_path_factory.mktemp("sasl-"), options) as running:
        yield running


@pytest.mark.parametrize(("asks", "expected"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_conversation(cluster: KafkaCluster, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(cluster.bootstrap("USERS")) as wire:
        assert outcomes(wire, asks) == list(expected)


@pytest.mark.parametrize(("asks", "expected"), REAUTHENTICATIONS.values(), ids=REAUTHENTICATIONS)
def test_reauthentication(
    cluster: KafkaCluster, asks: Sequence[Ask], expected: Sequence[str]
) -> None:
    with Wire(cluster.bootstrap("SESSIONS")) as wire:
        assert outcomes(wire, asks) == list(expected)
