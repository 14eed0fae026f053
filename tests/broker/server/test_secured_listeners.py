"""Clients of listeners that authenticate: our own, and those of other projects."""

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest

from kclient import AdminClient, Consumer, Producer
from kclient.admin import (
    ScramCredentialInfo,
    UserScramCredentialUpsertion,
)
from kclient.admin.admin_types import ConfigResource, ConfigResourceType
from kclient.broker.metadata.storage_formatter import FormatOptions, format_storage
from kclient.broker.network.request_channel import Request
from kclient.common.broker_errors import SaslAuthenticationError, UnsupportedSaslMechanismError
from kclient.common.errors import BootstrapError, ConfigError, KafkaError, SslAuthenticationError
from kclient.network.sasl.scram import (
    SCRAM_MECHANISMS,
    ScramKeys,
    random_salt,
    salted_password,
)
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord
from kclient.testing import EmbeddedCluster
from kclient.testing.certificate_authority import CertificateAuthority, Identity
from tests.support.certificates import encrypted
from tests.support.checks.shown_locals import shown_locals
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord
from tests.support.clients.foreign_security import options_of_librdkafka, secured_foreign_client
from tests.support.clients.wire import Wire
from tests.support.identity_provider import IdentityProvider
from tests.support.token_server import Reply, token_server

PASSWORD = "canary pass;word='="
MECHANISMS = ("PLAIN", *SCRAM_MECHANISMS)
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
NAMES = ("SASL_PLAINTEXT", "SSL", "MTLS", "SASL_SSL")
SHORT, OAUTH = "SHORT", "OAUTH"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PROVIDER = IdentityProvider()
SESSION_MS = 1000
USER = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": PASSWORD}
NO_USER = dict.fromkeys(USER)


def token(life_s: float = 60, **others: Any) -> tuple[str, float]:
    """Return a token of the identity provider, and its expiry."""
    now_s = time.time()
    claims = {
        "sub": "alice",
        "iss": "https://issuer.test",
        "aud": "kafka",
        "iat": now_s,
        "exp": now_s + life_s,
        **others,
    }
    return PROVIDER.token(claims), now_s + life_s


class Secured(NamedTuple):
    """Broker with a listener for each security protocol.

    Attributes:
        cluster: The broker.
        authority: Authority that signed its certificate.
        client: Certificate of a client.
        directory: Directory with ``ca.pem`` and ``client.pem``.
    """

    cluster: EmbeddedCluster
    authority: CertificateAuthority
    client: Identity
    directory: Path

    def options(self, listener: str, mechanism: str = "PLAIN", **others: Any) -> dict[str, Any]:
        """Return the options of one of our clients."""
        protocol = {"MTLS": "SSL", SHORT: "SASL_SSL", OAUTH: "SASL_SSL"}.get(listener, listener)
        given: dict[str, Any] = {
            "bootstrap_servers": self.cluster.bootstrap_servers_of(listener),
            "security_protocol": protocol,
        }
        if protocol.endswith("SSL"):
            given["ssl_truststore_location"] = str(self.directory / "ca.pem")
        if listener == "MTLS":
            given["ssl_keystore_location"] = str(self.directory / "client.pem")
        if listener == OAUTH:
            given |= {"sasl_mechanism": "OAUTHBEARER", "sasl_token_provider": token}
        elif protocol.startswith("SASL"):
            given |= {**USER, "sasl_mechanism": mechanism}
        return {**given, **others}

    def foreign(self, name: str, listener: str, mechanism: str = "PLAIN") -> Any:
        """Return another project's client."""
        return secured_foreign_client(name, self.options(listener, mechanism))


def format_with_user(directory: Path, user: str, password: str) -> None:
    """Format a directory for a cluster with a user that has credentials for SCRAM."""
    records = []
    for mechanism in SCRAM_MECHANISMS.values():
        salt = random_salt()
        salted = salted_password(mechanism.hash_name, password.encode(), salt, 8192)
        keys = ScramKeys.of(mechanism.hash_name, salted)
        records.append(
            UserScramCredentialRecord(
                name=user,
                mechanism=mechanism.code,
                salt=salt,
                stored_key=keys.stored_key,
                server_key=keys.server_key,
                iterations=8192,
            )
        )
    options = FormatOptions(
        cluster_id="cluster-of-the-test-22", node_id=1, directories=[directory], credentials=records
    )
    format_storage(system_runtime(), options)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("security-")
    authority = CertificateAuthority("authority of the test")
    client = authority.issue("Client of the test", ("client.example",))
    (directory / "server.pem").write_text(authority.issue("broker", ("127.0.0.1",)).pem)
    (directory / "ca.pem").write_text(authority.pem)
    (directory / "client.pem").write_text(client.pem)
    config = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in (*NAMES, SHORT, OAUTH)),
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,MTLS:SSL,"
        "SASL_SSL:SASL_SSL,SHORT:SASL_SSL,OAUTH:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.location": str(directory / "ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/L",
        "listener.name.short.connections.max.reauth.ms": SESSION_MS,
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "listener.name.oauth.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{directory / 'jwks.json'}",
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.expected.issuer": "https://issuer.test",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{
            f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config": (
                f"{SCRAM_MODULE} required;"
                if mechanism in SCRAM_MECHANISMS
                else f'{PLAIN_MODULE} required user_alice="{PASSWORD}";'
            )
            for name in ("sasl_plaintext", "sasl_ssl", "short")
            for mechanism in MECHANISMS
        },
    }
    (directory / "jwks.json").write_text(json.dumps(PROVIDER.key_set()))
    format_with_user(directory / "data", "alice", PASSWORD)
    with EmbeddedCluster(data_dir=directory / "data", config=config) as cluster:
        yield Secured(cluster, authority, client, directory)


@pytest.mark.parametrize("listener", [*NAMES, OAUTH])
def test_own_clients_write_and_read_in_a_group(secured: Secured, listener: str) -> None:
    given, topic = secured.options(listener), f"own-{listener}"
    values = [bytes([number]) * 300_000 for number in range(8)]
    with Producer(**given) as producer:
        for value in values:
            producer.send(topic, value).result(30)
    read: list[bytes | None] = []
    with Consumer(**given, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        while len(read) < len(values):
            read += [record.value for record in consumer.poll(30)]
    assert read == values
    with AdminClient(**given) as admin:
        nodes = admin.describe_cluster().nodes
    assert [f"{node.host}:{node.port}" for node in nodes] == [given["bootstrap_servers"]]


@pytest.mark.parametrize("listener", [*NAMES, OAUTH])
@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_foreign_client_writes_and_reads(secured: Secured, name: str, listener: str) -> None:
    client = secured.foreign(name, listener)
    topic = f"of-{name}-{listener}"
    client.produce(topic, [ForeignRecord(value=b"first" * 100_000)])
    read = client.consume(topic, 1, group=f"group-{topic}")
    assert [record.value for record in read] == [b"first" * 100_000]


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
@pytest.mark.parametrize("name", ["kclient", *FOREIGN_CLIENTS])
def test_clients_authenticate_by_scram(secured: Secured, name: str, mechanism: str) -> None:
    topic = f"of-{name}-{mechanism}"
    if name == "kclient":
        with Producer(**secured.options("SASL_SSL", mechanism)) as producer:
            assert producer.send(topic, b"first").result(30).offset == 0
    else:
        client = secured.foreign(name, "SASL_PLAINTEXT", mechanism)
        client.produce(topic, [ForeignRecord(value=b"first")])
        assert [record.value for record in client.read_all(topic)] == [b"first"]


@pytest.mark.fault("C17")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_sessions_are_renewed_under_load(
    secured: Secured, caplog: pytest.LogCaptureFixture, mechanism: str
) -> None:
    caplog.set_level("DEBUG", logger="kclient")
    options, topic = secured.options(SHORT, mechanism), f"short-{mechanism}"
    ends_at = time.monotonic() + 3.5 * SESSION_MS / 1000
    sent: list[int] = []
    received: list[int] = []
    with (
        Producer(**options) as producer,
        Consumer(**options, group_id=topic, auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe([topic])
        while time.monotonic() < ends_at:
            sent.append(producer.send(topic, b"%d" % len(sent)).result(10).offset)
            received += [record.offset for record in consumer.poll(0.02)]
        while len(received) < len(sent):
            received += [record.offset for record in consumer.poll(10)]
    assert received == sent == list(range(len(sent)))
    assert "renewed the session" in caplog.text
    assert "has expired" not in caplog.text


def test_sessions_of_librdkafka_are_renewed(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="kclient")
    options = options_of_librdkafka(secured.options(SHORT))
    producer = confluent_kafka.Producer({"linger.ms": 0, **options})
    offsets: list[int | None] = []
    ends_at = time.monotonic() + 3.5 * SESSION_MS / 1000
    while time.monotonic() < ends_at:
        producer.produce("rd", b"value", on_delivery=lambda _, m: offsets.append(m.offset()))
        producer.flush(10)
    assert offsets == list(range(len(offsets)))
    assert len(offsets) > 20
    assert "has expired" not in caplog.text


def test_session_ends_with_the_token(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="kclient")
    options = secured.options(OAUTH, sasl_token_provider=lambda: token(life_s=1.5))
    ends_at = time.monotonic() + 4
    offsets = []
    with Producer(**options) as producer:
        while time.monotonic() < ends_at:
            offsets.append(producer.send("tokens", b"value").result(10).offset)
    assert offsets == list(range(len(offsets)))
    assert "renewed the session" in caplog.text


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        ("SASL_PLAINTEXT", "User:alice"),
        ("SASL_SSL", "User:alice"),
        (OAUTH, "User:alice"),
        ("SSL", "User:ANONYMOUS"),
        ("MTLS", "User:client of the test"),
    ],
)
def test_request_has_the_principal_of_the_client(
    secured: Secured, listener: str, expected: str
) -> None:
    seen: set[str] = set()

    def intercept(request: Request, handle: Callable[[Request], None]) -> None:
        seen.add(f"{request.principal} at {request.listener_name}")
        handle(request)

    secured.cluster.broker.intercept(intercept)
    with AdminClient(**secured.options(listener)) as admin:
        admin.describe_cluster()
    assert seen == {f"{expected} at {listener}"}


@pytest.mark.fault("A9", "C16")
@pytest.mark.parametrize(
    ("listener", "wrong", "error", "text"),
    [
        (
            "SASL_PLAINTEXT",
            {"sasl_password": "canary-wrong"},
            SaslAuthenticationError,
            "refused user 'alice' by PLAIN: .*Authentication failed: Invalid username or password",
        ),
        (
            "SASL_SSL",
            {
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_username": None,
                "sasl_password": None,
                "sasl_token_provider": lambda: ("token", 9e9),
            },
            UnsupportedSaslMechanismError,
            "the listener has enabled PLAIN",
        ),
        *(
            (
                "SASL_SSL",
                {"sasl_mechanism": "SCRAM-SHA-512", **wrong},
                SaslAuthenticationError,
                "due to invalid credentials with SASL mechanism SCRAM-SHA-512",
            )
            for wrong in ({"sasl_password": "canary-wrong"}, {"sasl_username": "mallory"})
        ),
        (
            "SASL_PLAINTEXT",
            {**NO_USER, "security_protocol": "PLAINTEXT"},
            BootstrapError,
            "the listener probably requires SASL",
        ),
        (
            OAUTH,
            {"sasl_token_provider": lambda: token(aud="third")},
            SaslAuthenticationError,
            r"refused the token by OAUTHBEARER: .*\{\"status\":\"invalid_token\"\}",
        ),
        (
            "MTLS",
            {"ssl_keystore_location": None},
            SslAuthenticationError,
            "the peer requires a client certificate",
        ),
        (
            "SSL",
            {"security_protocol": "PLAINTEXT", "ssl_truststore_location": None},
            BootstrapError,
            "closed the connection|requires SASL or TLS",
        ),
        (
            "SASL_PLAINTEXT",
            {"security_protocol": "SASL_SSL"},
            BootstrapError,
            "closed the connection in the TLS handshake",
        ),
    ],
)
def test_refusals_name_their_cause(
    secured: Secured, listener: str, wrong: dict[str, Any], error: type[KafkaError], text: str
) -> None:
    limits = {"request_timeout_ms": 2000, "default_api_timeout_ms": 3000}
    given = {**secured.options(listener, **wrong), **limits}
    with AdminClient(**given) as admin, pytest.raises(error, match=text) as caught:
        admin.describe_cluster()
    assert "canary" not in str(caught.value)
    assert "canary" not in shown_locals(caught.value)


@pytest.mark.fault("A9")
def test_no_secret_is_in_a_log_line_or_a_repr(
    secured: Secured, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Of clients and the broker, at the lowest level (CVE-2026-33558)."""
    caplog.set_level(1)
    (tmp_path / "client.pem").write_text(encrypted(secured.client, "canary-key"))
    shown: list[object] = [secured.cluster.broker]
    for mechanism in MECHANISMS:
        with (
            Producer(**secured.options(SHORT, mechanism)) as producer,
            Consumer(**secured.options(SHORT, mechanism), group_id="logged") as consumer,
        ):
            consumer.subscribe(["logged"])
            ends_at = time.monotonic() + 1.2 * SESSION_MS / 1000
            while time.monotonic() < ends_at:
                producer.send("logged", b"a").result(10)
                consumer.poll(0.05)
            shown += [producer, consumer, producer.metrics(), consumer.metrics()]
        wrong = secured.options(
            "SASL_SSL", mechanism, sasl_password="canary-wrong", default_api_timeout_ms=3000
        )
        with AdminClient(**wrong) as admin, pytest.raises(SaslAuthenticationError):
            admin.describe_cluster()
    key = {"ssl_keystore_location": str(tmp_path / "client.pem"), "ssl_key_password": "canary-key"}
    with AdminClient(**secured.options("MTLS", **key)) as admin:
        found = ScramCredentialInfo("SCRAM-SHA-512", 4096)
        created = UserScramCredentialUpsertion("carol", found, "canary-new")
        admin.alter_user_scram_credentials([created]).raise_for_errors()
        shown += [
            admin,
            created,
            admin.describe_configs(ConfigResource(ConfigResourceType.BROKER, "1")),
        ]
    assert "renewed the session" in caplog.text
    assert len(caplog.records) > 100
    for record in caplog.records:
        assert "canary" not in f"{record.getMessage()} {record.exc_text} {record.__dict__}"
    assert "canary" not in repr(shown)


def test_certificate_of_another_authority_is_refused(secured: Secured, tmp_path: Path) -> None:
    other = CertificateAuthority("another authority").issue("client", ("client.example",))
    (tmp_path / "other.pem").write_text(other.pem)
    given = secured.options("MTLS", ssl_keystore_location=str(tmp_path / "other.pem"))
    with AdminClient(**given) as admin, pytest.raises(SslAuthenticationError):
        admin.describe_cluster()


def test_renewed_certificate_of_a_listener_is_used_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authorities = CertificateAuthority("first"), CertificateAuthority("second")
    stores = [each.issue("broker", ("127.0.0.1",)).pem for each in authorities]
    store = tmp_path / "server.pem"
    store.write_text(stores[0])
    config = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(store)}
    with EmbeddedCluster(config=config) as cluster:
        assert presented_by(cluster.bootstrap_servers, authorities) == "first"
        for damaged in ("", stores[1][:200]):
            caplog.clear()
            replace(store, damaged)
            while "cannot be used, and the earlier one is kept: listener SSL" not in caplog.text:
                assert presented_by(cluster.bootstrap_servers, authorities) == "first"
        replace(store, stores[1])
        wait_until(
            lambda: presented_by(cluster.bootstrap_servers, authorities) == "second",
            "new connections get the renewed certificate",
        )


def replace(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def presented_by(servers: str, authorities: Iterable[CertificateAuthority]) -> str:
    """Return the name of the authority that has signed the certificate of a listener."""
    context = ssl.create_default_context(cadata="".join(each.pem for each in authorities))
    host, port = servers.split(":")
    with (
        socket.create_connection((host, int(port)), 20) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        certificate: Any = connection.getpeercert()
        return str(dict(field for part in certificate["issuer"] for field in part)["commonName"])


def test_subject_without_a_rule_is_refused(secured: Secured, tmp_path: Path) -> None:
    config = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(secured.directory / "server.pem"),
        "ssl.truststore.certificates": secured.authority.pem,
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^O=.*$/never/",
    }
    with EmbeddedCluster(config=config) as cluster:
        given = {
            **secured.options("MTLS"),
            "bootstrap_servers": cluster.bootstrap_servers,
            "default_api_timeout_ms": 2000,
        }
        with AdminClient(**given) as admin, pytest.raises(KafkaError):
            admin.describe_cluster()


def test_listener_has_no_tickets(secured: Secured) -> None:
    host, _, port = secured.cluster.bootstrap_servers_of("SSL").rpartition(":")
    context = ssl.create_default_context(cafile=str(secured.directory / "ca.pem"))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.minimum_version = context.maximum_version = version
        with (
            socket.create_connection((host, int(port)), 10) as plain,
            context.wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            assert encrypted.session is None or not encrypted.session.has_ticket


def test_listener_uses_configured_versions_and_suites(secured: Secured) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    config = {
        "listeners": "OLD://127.0.0.1:0,NEW://127.0.0.1:0",
        "listener.security.protocol.map": "OLD:SSL,NEW:SSL",
        "ssl.keystore.location": str(secured.directory / "server.pem"),
        "listener.name.old.ssl.cipher.suites": suite,
        "listener.name.new.ssl.enabled.protocols": "TLSv1.3",
    }
    found = {}
    context = ssl.create_default_context(cafile=str(secured.directory / "ca.pem"))
    with EmbeddedCluster(config=config) as cluster:
        for name in ("OLD", "NEW"):
            host, _, port = cluster.bootstrap_servers_of(name).rpartition(":")
            with (
                socket.create_connection((host, int(port)), 10) as plain,
                context.wrap_socket(plain, server_hostname=host) as encrypted,
            ):
                found[name] = encrypted.version(), encrypted.cipher()
    assert found["OLD"] == ("TLSv1.2", ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256))
    assert found["NEW"][0] == "TLSv1.3"


def test_listener_refuses_tls_1_1(secured: Secured) -> None:
    hello = b"\3\2" + bytes(32) + bytes.fromhex("00 0002 c009 0100")
    message = b"\1" + len(hello).to_bytes(3, "big") + hello
    record = b"\x16\3\1" + len(message).to_bytes(2, "big") + message
    with Wire(secured.cluster.bootstrap_servers_of("SSL")) as wire:
        wire.send_bytes(record)
        alert = wire.socket.recv(7)
    assert (alert[0], alert[5:]) == (0x15, bytes([2, 70]))  # fatal, protocol_version


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "listener SSL: ssl.keystore.location: got nothing, expected a file"),
        ({"ssl.keystore.location": "/none"}, "listener SSL: ssl.keystore.location: got '/none'"),
        ({"ssl.keystore.key": "canary"}, "ssl.keystore.certificate.chain: got one, expected both"),
        (
            {"ssl.keystore.location": "SERVER", "ssl.client.auth": "required"},
            "listener SSL: ssl.truststore.location: got nothing with ssl.client.auth=required",
        ),
        (
            {"ssl.keystore.location": "ENCRYPTED"},
            "got an encrypted private key, expected listener SSL: ssl.key.password too",
        ),
        (
            {"ssl.keystore.location": "ENCRYPTED", "ssl.key.password": "canary"},
            "a private key that listener SSL: ssl.key.password does not open",
        ),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type: got 'JKS' (str), expected 'PEM'"),
        ({"ssl.cipher.suites": "RC4"}, "ssl.cipher.suites: got 'RC4' (str), expected a list"),
        (
            {
                "ssl.keystore.location": "SERVER",
                "ssl.protocol": "TLSv1.2",
                "ssl.enabled.protocols": "TLSv1.3",
            },
            "listener SSL: ssl.enabled.protocols: got TLSv1.3 with ssl.protocol TLSv1.2, expected",
        ),
        ({"ssl.principal.mapping.rules": "x"}, "ssl.principal.mapping.rules: got 'x'"),
    ],
)
def test_refused_settings(
    secured: Secured, tmp_path: Path, given: dict[str, str], complaint: str
) -> None:
    (tmp_path / "encrypted.pem").write_text(encrypted(secured.client, "password"))
    files = {"SERVER": secured.directory / "server.pem", "ENCRYPTED": tmp_path / "encrypted.pem"}
    settings = {name: str(files.get(value, value)) for name, value in given.items()}
    with pytest.raises(ConfigError) as caught:
        EmbeddedCluster(config={"listeners": "SSL://127.0.0.1:0", **settings}).start()
    assert complaint in str(caught.value)
    assert "canary" not in str(caught.value)


def test_keys_of_tokens_are_fetched_from_a_url(tmp_path: Path) -> None:
    identity = CertificateAuthority("authority of the provider")
    authorities = tmp_path / "provider.pem"
    authorities.write_text(identity.pem)
    reply = Reply(200, json.dumps(PROVIDER.key_set()).encode())
    with token_server(lambda _: reply, identity.issue("provider", ("localhost",))) as provider:
        config = {
            "listeners": "TOKENS://127.0.0.1:0",
            "listener.security.protocol.map": "TOKENS:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.tokens.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
            "sasl.oauthbearer.jwks.endpoint.url": provider.url,
            "sasl.oauthbearer.expected.audience": "kafka",
            "https.ca.location": str(authorities),
        }
        options: Any = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_token_provider": token,
        }
        with (
            EmbeddedCluster(config=config) as cluster,
            AdminClient(bootstrap_servers=cluster.bootstrap_servers, **options) as admin,
        ):
            assert admin.list_topics() == []
        with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url: got 'localhost:.*certificate"):
            EmbeddedCluster(config={**config, "https.ca.location": None}).start()
