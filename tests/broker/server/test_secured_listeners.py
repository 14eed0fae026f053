"""Clients of listeners that authenticate: our own, and those of other projects."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kclient import AdminClient, Consumer, Producer
from kclient.common.broker_errors import SaslAuthenticationError, UnsupportedSaslMechanismError
from kclient.common.errors import BootstrapError, KafkaError
from kclient.testing import EmbeddedCluster
from tests.support.clients.foreign import (
    FOREIGN_CLIENTS,
    ForeignRecord,
)
from tests.support.clients.foreign_aiokafka import AiokafkaClient
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_kafka_python import KafkaPythonClient

PASSWORD = "canary pass;word='="
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
CONFIG = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{MODULE} required user_alice="{PASSWORD}";'
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config=CONFIG) as running:
        yield running


def options(cluster: EmbeddedCluster, **others: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers_of("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "alice",
        "sasl_password": PASSWORD,
        **others,
    }


def foreign(cluster: EmbeddedCluster, name: str) -> Any:
    """Return another project's client of the listener with SASL."""
    servers = cluster.bootstrap_servers_of("SASL_PLAINTEXT")
    python = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    librdkafka = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    kinds: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
        "kafka-python": (KafkaPythonClient, python),
        "aiokafka": (AiokafkaClient, python),
        "confluent-kafka": (ConfluentClient, librdkafka),
    }
    kind, native = kinds[name]
    return kind(servers, native)


def test_own_clients_write_and_read_in_a_group(cluster: EmbeddedCluster) -> None:
    with Producer(**options(cluster)) as producer:
        producer.send("own", b"value").result(30)
    with Consumer(**options(cluster, group_id="own", auto_offset_reset="earliest")) as consumer:
        consumer.subscribe(["own"])
        assert consumer.poll(30)[0].value == b"value"
    with AdminClient(**options(cluster)) as admin:
        nodes = admin.describe_cluster().nodes
    servers = cluster.bootstrap_servers_of("SASL_PLAINTEXT")
    assert [f"{node.host}:{node.port}" for node in nodes] == [servers]


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_foreign_client_writes_and_reads(cluster: EmbeddedCluster, name: str) -> None:
    client = foreign(cluster, name)
    topic = f"of-{name}"
    client.produce(topic, [ForeignRecord(value=b"first")])
    read = client.consume(topic, 1, group=f"group-of-{name}")
    assert [record.value for record in read] == [b"first"]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (
            {"sasl_password": "canary-wrong"},
            SaslAuthenticationError,
            "refused user 'alice' by PLAIN: .*Authentication failed: Invalid username or password",
        ),
        (
            {"sasl_mechanism": "SCRAM-SHA-512"},
            UnsupportedSaslMechanismError,
            "the listener has enabled PLAIN",
        ),
        (
            {
                "security_protocol": "PLAINTEXT",
                "sasl_mechanism": None,
                "sasl_username": None,
                "sasl_password": None,
            },
            BootstrapError,
            "the listener probably requires SASL",
        ),
    ],
)
def test_refusals_name_their_cause(
    cluster: EmbeddedCluster, wrong: dict[str, Any], error: type[KafkaError], text: str
) -> None:
    given = options(cluster, **wrong, request_timeout_ms=2000, default_api_timeout_ms=3000)
    with AdminClient(**given) as admin, pytest.raises(error, match=text) as caught:
        admin.describe_cluster()
    assert "canary" not in str(caught.value)
