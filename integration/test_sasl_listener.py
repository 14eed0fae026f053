"""Exchanges with a listener with SASL: Apache Kafka and the companion broker do the same."""

import json
import time
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
    SCRAM_CONVERSATIONS,
    SESSION_MS,
    Ask,
    oauth_conversations,
    outcomes,
)
from tests.support.clients.wire import Wire
from tests.support.identity_provider import IdentityProvider, encoded

_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


PROVIDER = IdentityProvider()
NOW = time.time()
CLAIMS = {
    "sub": "alice",
    "aud": "kafka",
    "iss": "https://issuer.test",
    "iat": NOW,
    "exp": NOW + 900,
}
UNSIGNED = ".".join((encoded(b'{"alg":"none"}'), encoded(json.dumps(CLAIMS).encode()), ""))
OAUTH = oauth_conversations(
    PROVIDER.token(CLAIMS),
    [
        UNSIGNED,
        PROVIDER.token({**CLAIMS, "exp": NOW - 31, "iat": NOW - 90}),
        PROVIDER.token({**CLAIMS, "aud": "third"}),
        PROVIDER.token({**CLAIMS, "iss": "https://other.test"}),
        PROVIDER.token({**CLAIMS, "sub": " "}),
        PROVIDER.token(CLAIMS, kid="other"),
        IdentityProvider().token(CLAIMS),
    ],
)


@pytest.fixture(scope="module")
def cluster(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    directory = tmp_path_factory.mktemp("sasl-")
    keys = directory / "jwks.json"
    keys.write_text(json.dumps(PROVIDER.key_set()))
    users = f'{_PLAIN} required user_alice="{PASSWORD}" user_bob="other";'
    plain = {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": users}
    sessions = {
        **plain,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "plain.connections.max.reauth.ms": str(SESSION_MS),
    }
    tokens = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://issuer.test",
    }
    options = ClusterOptions(
        jvm_options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"],
        format_options=["--add-scram", f"SCRAM-SHA-256=[name=alice,password={PASSWORD}]"],
        listeners=(
            Listener("TOKENS", "SASL_PLAINTEXT", properties=tokens),
            Listener("USERS", "SASL_PLAINTEXT", properties=plain),
            Listener("SESSIONS", "SASL_PLAINTEXT", properties=sessions),
        ),
    )
    with KafkaCluster(runtimes(NEWEST), directory, options) as running:
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


@pytest.mark.parametrize(
    ("asks", "expected"), SCRAM_CONVERSATIONS.values(), ids=SCRAM_CONVERSATIONS
)
def test_scram(cluster: KafkaCluster, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(cluster.bootstrap("SESSIONS")) as wire:
        assert outcomes(wire, asks) == list(expected)


@pytest.mark.parametrize(("asks", "expected"), OAUTH.values(), ids=OAUTH)
def test_oauthbearer(cluster: KafkaCluster, asks: Sequence[Ask], expected: Sequence[str]) -> None:
    with Wire(cluster.bootstrap("TOKENS")) as wire:
        assert outcomes(wire, asks) == list(expected)
