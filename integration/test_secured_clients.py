"""Other projects' clients at the secured listeners of the companion broker.

A cell is a client, a listener and a mechanism. One broker, in this process, has all listeners.
"""

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration.conftest import ToolsFor
from integration.harness.go_programs import FRANZ_GO
from integration.harness.secured_clients import CLIENTS, JAVA, RENEWING, Traffic, secured_client
from kclient import AdminClient, NewTopic
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kclient.network.sasl.oauthbearer import OAUTHBEARER
from kclient.testing import EmbeddedCluster
from kclient.testing.certificate_authority import CertificateAuthority, Identity
from tests.support.checks.waiting import HarnessError
from tests.support.identity_provider import IdentityProvider

SHORT, OAUTH = "SHORT", "OAUTH"
SESSION_MS = 2_000
PERIODS = 3.5
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROVIDER = IdentityProvider()
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    SHORT: "SASL_SSL",
    OAUTH: "SASL_SSL",
}
CELLS = [
    *((listener, None) for listener in ("PLAINTEXT", "SSL", "MTLS")),
    *((listener, name) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for name in MECHANISMS),
    (OAUTH, OAUTHBEARER),
]
LOGINS = [("MTLS", None), *(("SASL_SSL", name) for name in MECHANISMS)]

REFUSED_CERTIFICATE = {
    JAVA: r"sun\.security\.ssl\.Alert",
    FRANZ_GO: "tls: unknown certificate authority",
    "confluent-kafka": "alert unknown ca",
    "kafka-python": "Unable to bootstrap",
    "aiokafka": "Unable to bootstrap",
}
REFUSED_PASSWORD = {
    JAVA: "SaslAuthenticationException",
    FRANZ_GO: "SASL_AUTHENTICATION_FAILED",
    "confluent-kafka": "_AUTHENTICATION",
    "kafka-python": "Unable to bootstrap|Authentication",
    "aiokafka": "Unable to bootstrap|Authentication",
}
REFUSED_TOKEN = {  # aiokafka does not check the response, and retries without an error
    JAVA: "SaslAuthenticationException.*invalid_token",
    FRANZ_GO: "unexpected data in oauth response",
    "confluent-kafka": "_AUTHENTICATION",
    "kafka-python": "Unable to bootstrap|Authentication",
}
DENIED = {
    JAVA: "AuthorizationException",
    FRANZ_GO: "TOPIC_AUTHORIZATION_FAILED",
    "confluent-kafka": "TOPIC_AUTHORIZATION_FAILED",
    "kafka-python": "TopicAuthorizationFailedError",
    "aiokafka": "TopicAuthorizationFailedError",
}


def allowed(user: str, kind: ResourceType) -> AclBinding:
    entry = AccessControlEntry(f"User:{user}", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(kind, "cell-", PatternType.PREFIXED), entry)


def token(user: str, audience: str = "kafka") -> tuple[str, float]:
    """Return a token of a user for an audience, and its expiry."""
    now_s = time.time()
    claims = {"sub": user, "aud": audience, "iat": now_s, "exp": now_s + 600}
    return PROVIDER.token(claims), now_s + 600


class Secured(NamedTuple):
    """The broker, and the files of its clients.

    Attributes:
        cluster: The broker.
        directory: Directory with ``ca.pem``, and a certificate of each user.
    """

    cluster: EmbeddedCluster
    directory: Path

    def options(self, listener: str, mechanism: str | None, user: str = "alice") -> dict[str, Any]:
        """Return the options of one of our clients."""
        protocol = PROTOCOLS[listener]
        given: dict[str, Any] = {
            "bootstrap_servers": self.cluster.bootstrap_servers_of(listener),
            "security_protocol": protocol,
        }
        if protocol.endswith("SSL"):
            given["ssl_truststore_location"] = str(self.directory / "ca.pem")
        if listener == "MTLS":
            given["ssl_keystore_location"] = str(self.directory / f"{user}.pem")
        if mechanism is not None:
            given["sasl_mechanism"] = mechanism
        if mechanism == OAUTHBEARER:
            given["sasl_token_provider"] = partial(token, user)
        elif mechanism is not None:
            given["sasl_username"] = user
            given["sasl_password"] = USERS[user]
        return given

    def create_topic(self, name: str) -> str:
        with AdminClient(**self.cluster.client_config()) as admin:
            admin.create_topics(NewTopic(name, 1, 1))
        return name


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured-")
    authority, other = CertificateAuthority("test"), CertificateAuthority("other")
    (directory / "ca.pem").write_text(authority.pem)
    for user in USERS:
        (directory / f"{user}.pem").write_text(authority.issue(user, (user,)).pem)
    (directory / "other.pem").write_text(other.issue("alice", ("alice",)).pem)
    (directory / "jwks.json").write_text(json.dumps(PROVIDER.key_set()))
    server = authority.issue("broker", ("localhost", "127.0.0.1"))
    acls = [
        allowed(user, kind)
        for user in ("alice", "ANONYMOUS")
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    with EmbeddedCluster(
        security="sasl_plaintext",
        users=USERS,
        acls=acls,
        config=settings(server, authority, directory),
    ) as cluster:
        yield Secured(cluster, directory)


def settings(
    server: Identity, authority: CertificateAuthority, directory: Path
) -> dict[str, object]:
    """Return the settings of all listeners; those of SASL_PLAINTEXT are the cluster's own."""
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    module = "org.apache.kafka.common.security"
    jaas = {
        "plain": f"{module}.plain.PlainLoginModule required {users};",
        "scram-sha-256": f"{module}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{module}.scram.ScramLoginModule required;",
    }
    names = ["SASL_PLAINTEXT", *(name for name in PROTOCOLS if name != "SASL_PLAINTEXT")]
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()
        ),
        "ssl.keystore.key": server.key,
        "ssl.keystore.certificate.chain": server.chain,
        "ssl.truststore.certificates": authority.pem,
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.short.connections.max.reauth.ms": SESSION_MS,
        "listener.name.oauth.sasl.enabled.mechanisms": OAUTHBEARER,
        "listener.name.oauth.oauthbearer.sasl.jaas.config": (
            f"{module}.oauthbearer.OAuthBearerLoginModule required;"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": (directory / "jwks.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        **{
            f"listener.name.{name}.{mechanism}.sasl.jaas.config": text
            for name in ("sasl_ssl", "short")
            for mechanism, text in jaas.items()
        },
    }


@pytest.mark.parametrize(("listener", "mechanism"), CELLS)
@pytest.mark.parametrize("name", CLIENTS)
def test_client_writes_and_reads_in_a_group(
    secured: Secured, tools_for: ToolsFor, name: str, listener: str, mechanism: str | None
) -> None:
    client = secured_client(name, secured.options(listener, mechanism), tools_for)
    topic = secured.create_topic(f"cell-{name}-{listener}-{mechanism}")
    values = [b"%d" % number for number in range(20)]
    client.write(topic, values)
    assert client.read(topic, len(values), f"{topic}-group") == values


@pytest.mark.parametrize(("listener", "mechanism"), LOGINS)
@pytest.mark.parametrize("name", CLIENTS)
def test_client_with_wrong_credentials_is_refused(
    secured: Secured, tools_for: ToolsFor, name: str, listener: str, mechanism: str | None
) -> None:
    options = secured.options(listener, mechanism)
    if mechanism is None:
        options["ssl_keystore_location"] = str(secured.directory / "other.pem")
    else:
        options["sasl_password"] = USERS["bob"]
    expected = (REFUSED_CERTIFICATE if mechanism is None else REFUSED_PASSWORD)[name]
    with pytest.raises(HarnessError, match=expected):
        secured_client(name, options, tools_for).fail("cell-refused")


@pytest.mark.parametrize("name", REFUSED_TOKEN)
def test_client_with_token_for_another_audience_is_refused(
    secured: Secured, tools_for: ToolsFor, name: str
) -> None:
    options = secured.options(OAUTH, OAUTHBEARER)
    options["sasl_token_provider"] = partial(token, "alice", "other")
    with pytest.raises(HarnessError, match=REFUSED_TOKEN[name]):
        secured_client(name, options, tools_for).fail("cell-refused")


@pytest.mark.parametrize(("listener", "mechanism"), [LOGINS[0], LOGINS[-1], (OAUTH, OAUTHBEARER)])
@pytest.mark.parametrize("name", CLIENTS)
def test_client_without_permission_is_denied(
    secured: Secured, tools_for: ToolsFor, name: str, listener: str, mechanism: str | None
) -> None:
    topic = secured.create_topic(f"cell-denied-{name}-{listener}")
    client = secured_client(name, secured.options(listener, mechanism, "bob"), tools_for)
    with pytest.raises(HarnessError, match=DENIED[name]):
        client.fail(topic)


def test_renewed_sessions_lose_and_double_no_record(
    secured: Secured, tools_for: ToolsFor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="kclient.broker.network")
    options = secured.options(SHORT, "SCRAM-SHA-512")

    def traffic_of(name: str) -> Traffic:
        topic = secured.create_topic(f"cell-renewed-{name}")
        client = secured_client(name, options, tools_for)
        return client.write_and_read(topic, round(PERIODS * SESSION_MS / 1000))

    with ThreadPoolExecutor() as threads:  # at the same time: each of them takes the periods
        found = dict(zip(RENEWING, threads.map(traffic_of, RENEWING), strict=True))
    for name, traffic in found.items():
        assert len(traffic.written) > 100, name
        assert traffic.read == traffic.written, name
    assert "has expired" not in caplog.text
