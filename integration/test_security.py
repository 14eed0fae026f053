"""TLS and SASL of our clients against Apache Kafka."""

import base64
import json
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.secured_kafka import PASSWORD, SCRAM_MODULE
from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.common.broker_errors import SaslAuthenticationError, UnsupportedSaslMechanismError
from kclient.common.errors import (
    AuthenticationError,
    BootstrapError,
    KafkaError,
    SslAuthenticationError,
)
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.errors import DeliveryTimeoutError
from kclient.testing.certificate_authority import CertificateAuthority, Identity
from tests.support.certificates import encrypted
from tests.support.checks.document_blocks import all_blocks
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ROOT, script
from tests.support.signed_tokens import TokenSigner
from tests.support.token_server import Received, Reply, token_reply, token_server

LIFETIME_S = 2
_TOKEN_LIFE_S = 6  # a fifth is enough to get another, on a loaded machine too
_SHORT_SESSIONS = {
    f"{mechanism}.connections.max.reauth.ms": str(LIFETIME_S * 1000)
    for mechanism in ("plain", "scram-sha-256", "scram-sha-512")
}
_UNSECURED_TOKENS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer"
    ".OAuthBearerLoginModule required;",
}
_SIGNED_TOKENS = {
    **_UNSECURED_TOKENS,
    "oauthbearer.sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer"
    ".OAuthBearerValidatorCallbackHandler",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer.test",
}
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Secured(NamedTuple):
    """Apache Kafka with a listener for each security protocol.

    Attributes:
        cluster: The cluster.
        authority: Authority that signed the certificates of the broker.
        client: Certificate of a client that the broker accepts.
        directory: For files of tests.
        identity_provider: Issuer of the tokens of the listener OIDC.
    """

    cluster: KafkaCluster
    authority: CertificateAuthority
    client: Identity
    directory: Path
    identity_provider: TokenSigner

    def options(self, listener: str, protocol: str, **others: Any) -> dict[str, Any]:
        """Return the options of a client of a listener."""
        given = {
            "bootstrap_servers": self.cluster.bootstrap(listener),
            "security_protocol": protocol,
            **others,
        }
        if protocol.endswith("SSL") and "ssl_truststore_location" not in others:
            given.setdefault("ssl_truststore_certificates", self.authority.pem)
        return given


@pytest.fixture(scope="module")
def secured(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("security-")
    authority = CertificateAuthority("authority of the test")
    broker = authority.issue("broker", ("localhost", "127.0.0.1"))
    client = authority.issue("client of the test", ("client.example",))
    (directory / "server.pem").write_text(broker.pem)
    (directory / "ca.pem").write_text(authority.pem)
    identity_provider = TokenSigner()
    keys = directory / "jwks.json"
    keys.write_text(identity_provider.key_set)
    signed_tokens = {**_SIGNED_TOKENS, "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri()}
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }
    sasl = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "plain.sasl.jaas.config": f'{_PLAIN_MODULE} required user_alice="{PASSWORD}";',
        "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    only_plain = {
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": sasl["plain.sasl.jaas.config"],
    }
    options = ClusterOptions(
        listeners=(
            Listener("TLS", "SSL", properties=tls),
            Listener("MTLS", "SSL", properties={**tls, "ssl.client.auth": "required"}),
            Listener("SASL", "SASL_PLAINTEXT", properties=sasl),
            Listener("BOTH", "SASL_SSL", properties={**tls, **sasl}),
            Listener("SHORT", "SASL_SSL", properties={**tls, **sasl, **_SHORT_SESSIONS}),
            Listener("OAUTH", "SASL_SSL", properties={**tls, **_UNSECURED_TOKENS}),
            Listener("OIDC", "SASL_SSL", properties={**tls, **signed_tokens}),
            Listener("PLAINONLY", "SASL_PLAINTEXT", properties=only_plain),
        ),
        jvm_options=[
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}",
        ],
        format_options=[
            part
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for part in ("--add-scram", f'{mechanism}=[name=alice,password="{PASSWORD}"]')
        ],
    )
    with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
        yield Secured(cluster, authority, client, directory, identity_provider)


ALICE = {"sasl_username": "alice", "sasl_password": PASSWORD}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CASES = [
    ("TLS", "SSL", {}),
    (
        "TLS",
        "SSL",
        {
            "ssl_protocol": "TLSv1.2",
            "ssl_cipher_suites": ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
        },
    ),
    *(("SASL", "SASL_PLAINTEXT", {"sasl_mechanism": each, **ALICE}) for each in MECHANISMS),
    *(("BOTH", "SASL_SSL", {"sasl_mechanism": each, **ALICE}) for each in MECHANISMS),
]


@pytest.mark.parametrize(("listener", "protocol", "others"), CASES)
def test_records_are_written_and_read_in_a_group(
    secured: Secured, listener: str, protocol: str, others: dict[str, Any]
) -> None:
    options = secured.options(listener, protocol, **others)
    check_round_trip(options, f"round-{listener}-{others.get('sasl_mechanism', len(others))}")


def check_round_trip(options: dict[str, Any], topic: str) -> None:
    values = [bytes([number % 256]) * (number * 37) for number in range(500)]
    values += [bytes(900_000), b"last"]
    with AdminClient(**options) as admin:
        admin.create_topics(NewTopic(topic, 2))
    with Producer(**options) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % 2)
        producer.flush(60)
    with Consumer(**options, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic)
        found: list[bytes] = []
        while len(found) < len(values):
            records = consumer.poll(30)
            assert records
            found += [bytes(record.value or b"") for record in records]
        consumer.commit()
    assert sorted(found) == sorted(values)


def test_client_certificate_from_files_and_from_text(secured: Secured) -> None:
    store = secured.directory / "client.pem"
    store.write_text(encrypted(secured.client, "key password"))
    trust = secured.directory / "trust.pem"
    trust.write_text(f"an authority\n{secured.authority.pem}")
    files = {
        "ssl_keystore_location": str(store),
        "ssl_key_password": "key password",
        "ssl_truststore_location": str(trust),
    }
    check_round_trip(secured.options("MTLS", "SSL", **files), "files")
    text = {
        "ssl_keystore_key": secured.client.key,
        "ssl_keystore_certificate_chain": secured.client.chain,
    }
    check_round_trip(secured.options("MTLS", "SSL", **text), "text")


REFUSALS = [
    (
        "BOTH",
        {"sasl_mechanism": "SCRAM-SHA-512", **ALICE, "sasl_password": "canary-wrong"},
        SaslAuthenticationError,
        r"the broker refused user 'alice' by SCRAM-SHA-512: .*invalid credentials",
    ),
    (
        "BOTH",
        {"sasl_mechanism": "PLAIN", **ALICE, "sasl_username": "bob"},
        SaslAuthenticationError,
        r"the broker refused user 'bob' by PLAIN: .*Invalid username or password",
    ),
    (
        "PLAINONLY",
        {"sasl_mechanism": "SCRAM-SHA-256", **ALICE, "security_protocol": "SASL_PLAINTEXT"},
        UnsupportedSaslMechanismError,
        r"sasl.mechanism: got SCRAM-SHA-256, the listener has enabled PLAIN$",
    ),
    (
        "PLAINTEXT",
        {"sasl_mechanism": "PLAIN", **ALICE, "security_protocol": "SASL_PLAINTEXT"},
        AuthenticationError,
        r"the listener takes no SASL; security.protocol should be PLAINTEXT or SSL",
    ),
    (
        "TLS",
        {"security_protocol": "SSL", "ssl_truststore_certificates": "other"},
        SslAuthenticationError,
        r"signed by an unknown issuer 'authority of the test'; add the issuer to ssl.truststore",
    ),
    (
        "MTLS",
        {"security_protocol": "SSL"},
        SslAuthenticationError,
        r"the peer requires a client certificate that it trusts .*; set ssl.keystore",
    ),
    (
        "PLAINTEXT",
        {"security_protocol": "SSL"},
        BootstrapError,
        r"closed the connection in the TLS handshake; the port may be one without TLS",
    ),
    (
        "TLS",
        {"security_protocol": "PLAINTEXT"},
        BootstrapError,
        r"the peer expects TLS, this side speaks plaintext; check security.protocol",
    ),
    (
        "SASL",
        {"security_protocol": "PLAINTEXT"},
        BootstrapError,
        r"the listener probably requires SASL or TLS",
    ),
]


@pytest.mark.parametrize(("listener", "given", "kind", "text"), REFUSALS)
def test_refusals_name_their_cause(
    secured: Secured, listener: str, given: dict[str, Any], kind: type[KafkaError], text: str
) -> None:
    others = dict(given)
    protocol = others.pop("security_protocol", "SASL_SSL")
    if others.get("ssl_truststore_certificates") == "other":
        others["ssl_truststore_certificates"] = CertificateAuthority("other").pem
    options = secured.options(listener, protocol, **others)
    with (
        AdminClient(**options, default_api_timeout_ms=5_000) as admin,
        pytest.raises(kind, match=text) as caught,
    ):
        admin.list_topics()
    assert "canary" not in repr(caught.value)
    assert "canary" not in str(caught.getrepr(style="long", showlocals=False))


def test_page(secured: Secured, tmp_path: Path) -> None:
    password, token, oidc, *_ = all_blocks(ROOT / "docs" / "how-to" / "tls-and-sasl.md", "python")
    with AdminClient(**secured.options("TLS", "SSL")) as admin:
        admin.create_topics(NewTopic("orders", 1))
    with token_server(lambda _: signed_reply(secured, 60)) as endpoint:
        check_page(
            secured,
            tmp_path,
            oidc,
            {
                "localhost:9096": secured.cluster.bootstrap("OIDC"),
                "https://login.example.com/token": endpoint.url,
            },
            "1 broker\n",
        )
    for code, replaced, printed in (
        (
            password,
            {"localhost:9094": secured.cluster.bootstrap("BOTH"), "alice-secret": PASSWORD},
            "written at offset 0\n",
        ),
        (
            token,
            {
                "localhost:9095": secured.cluster.bootstrap("OAUTH"),
                "my-token": unsecured_token(60)[0],
            },
            "1 broker\n",
        ),
    ):
        check_page(secured, tmp_path, code, replaced, printed)


def check_page(
    secured: Secured, directory: Path, code: str, replaced: dict[str, str], printed: str
) -> None:
    program = code
    for shown, real in {**replaced, "ca.pem": str(secured.directory / "ca.pem")}.items():
        assert shown in code
        program = program.replace(shown, real)
    with script(directory, program) as process:
        process.finish()
        assert process.stdout == printed


def test_secret_is_in_no_log_line(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    for mechanism in MECHANISMS:
        options = secured.options("BOTH", "SASL_SSL", sasl_mechanism=mechanism, **ALICE)
        with Producer(**options) as producer:
            producer.partitions_for("logged")
        options |= {"sasl_password": "canary-wrong"}
        with (
            AdminClient(**options, default_api_timeout_ms=5_000) as admin,
            pytest.raises(SaslAuthenticationError),
        ):
            admin.list_topics()
    assert len(caplog.records) > 20
    for record in caplog.records:
        assert "canary" not in f"{record.getMessage()} {record.exc_text} {record.__dict__}"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_sessions_are_renewed_under_load(
    secured: Secured, caplog: pytest.LogCaptureFixture, mechanism: str
) -> None:
    caplog.set_level("DEBUG", logger="kclient")
    options = secured.options("SHORT", "SASL_SSL", sasl_mechanism=mechanism, **ALICE)
    topic = f"renewed-{mechanism}"
    with AdminClient(**options) as admin:
        admin.create_topics(NewTopic(topic, 1))
    found: list[bytes] = []
    sent = 0
    with (
        Producer(**options, linger_ms=0) as producer,
        Consumer(**options, group_id=topic, auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(topic)
        caplog.clear()
        end = time.monotonic() + 4 * LIFETIME_S
        while time.monotonic() < end:
            futures = [producer.send(topic, b"%d" % (sent + number)) for number in range(50)]
            sent += len(futures)
            found += [bytes(record.value or b"") for record in consumer.poll(1)]
            for future in futures:
                future.result(10)
        while len(found) < sent:
            records = consumer.poll(10)
            assert records
            found += [bytes(record.value or b"") for record in records]
        consumer.commit()
    assert found == [b"%d" % number for number in range(sent)]
    lines = [record.getMessage() for record in caplog.records]
    renewals = sum("renewed the session" in line for line in lines)
    assert renewals >= 2 * 3  # of the producer's connection and of the consumer's
    assert [line for line in lines if "ended" in line] == []


def unsecured_token(life_s: float) -> tuple[str, float]:
    """Return a token without signature, as Kafka's validator for development accepts."""
    now_s = time.time()
    claims = {"sub": "alice", "iat": now_s, "exp": now_s + life_s}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, claims)
    ]
    return f"{parts[0]}.{parts[1]}.", now_s + life_s


def test_tokens_are_renewed_before_they_expire(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    """The session ends with the token, so that each renewal needs a new token."""
    caplog.set_level("DEBUG", logger="kclient")
    calls: list[float] = []

    def provide() -> tuple[str, float]:
        calls.append(time.monotonic())
        return unsecured_token(_TOKEN_LIFE_S)

    options = secured.options(
        "OAUTH", "SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_token_provider=provide
    )
    with AdminClient(**options) as admin:
        admin.create_topics(NewTopic("tokens", 1))
    with Producer(**options, linger_ms=0) as producer:
        producer.send("tokens", b"first").result(20)
        caplog.clear()
        calls.clear()
        end = time.monotonic() + 3 * _TOKEN_LIFE_S
        while time.monotonic() < end:
            producer.send("tokens", b"next").result(20)
    assert len(calls) >= 2
    lines = [record.getMessage() for record in caplog.records]
    assert sum("renewed the session" in line for line in lines) >= 2
    assert [line for line in lines if "ended" in line] == []


def signed_reply(secured: Secured, life_s: float) -> Reply:
    """Return the response of an identity provider with a token that the listener OIDC accepts."""
    now_s = time.time()
    claims = {"sub": "alice", "aud": "kafka", "iss": "https://issuer.test"}
    token = secured.identity_provider.sign(**claims, iat=now_s, exp=now_s + life_s)
    return token_reply(token, expires_in=life_s)


def test_tokens_of_an_oidc_endpoint(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    life_s = _TOKEN_LIFE_S

    def respond(received: Received) -> Reply:
        _, _, credentials = received.headers["authorization"].partition(" ")
        if base64.b64decode(credentials) != b"me:canary-secret":
            return Reply(401, b'{"error": "invalid_client", "error_description": "canary"}')
        return signed_reply(secured, life_s)

    identity = secured.authority.issue("identity provider", ("localhost",))
    with token_server(respond, identity) as endpoint:
        options = secured.options(
            "OIDC",
            "SASL_SSL",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=endpoint.url,
            sasl_oauthbearer_client_credentials_client_id="me",
            sasl_oauthbearer_client_credentials_client_secret="canary-secret",  # noqa: S106
            sasl_oauthbearer_scope="produce",
            https_ca_location=str(secured.directory / "ca.pem"),
        )
        check_round_trip(options, "oidc")
        with Producer(**options, linger_ms=0) as producer:
            caplog.clear()
            end = time.monotonic() + 2.5 * life_s
            while time.monotonic() < end:
                producer.send("oidc", b"next").result(20)
        lines = [record.getMessage() for record in caplog.records]
        assert sum("renewed the session" in line for line in lines) >= 2
        assert {tuple(each.form["scope"]) for each in endpoint.received} == {("produce",)}
        options["sasl_oauthbearer_client_credentials_client_secret"] = "canary-wrong"  # noqa: S105
        with (
            AdminClient(**options, default_api_timeout_ms=3_000) as admin,
            pytest.raises(BootstrapError, match=r"localhost:\d+: responded 401 invalid_client"),
        ):
            admin.list_topics()
    assert "canary" not in caplog.text


def test_refused_and_missing_tokens(secured: Secured) -> None:
    def failing() -> tuple[str, float]:
        raise ConnectionError("canary")

    def expired() -> tuple[str, float]:
        return unsecured_token(-100)[0], time.time() + 100

    for provide, kind, text in (
        (expired, SaslAuthenticationError, "refused the token by OAUTHBEARER: .*check its issuer"),
        (failing, BootstrapError, "could not get credentials: .* the function raised ConnectionE"),
    ):
        options = secured.options(
            "OAUTH", "SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_token_provider=provide
        )
        with (
            AdminClient(**options, default_api_timeout_ms=3_000) as admin,
            pytest.raises(kind, match=text) as caught,
        ):
            admin.list_topics()
        assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_password_that_a_function_returns(secured: Secured) -> None:
    options = secured.options(
        "BOTH",
        "SASL_SSL",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username=lambda: "alice",
        sasl_password=lambda: PASSWORD,
    )
    check_round_trip(options, "functions")


def test_records_wait_while_credentials_are_refused(secured: Secured) -> None:
    """The sessions of the listener end soon, so that other credentials are needed at once."""
    given = [PASSWORD]
    options = secured.options(
        "SHORT",
        "SASL_SSL",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="alice",
        sasl_password=lambda: given[0],
    )
    with AdminClient(**options) as admin:
        admin.create_topics(NewTopic("waiting", 1))
    with Producer(
        **options, linger_ms=0, request_timeout_ms=2_000, delivery_timeout_ms=8_000
    ) as producer:
        producer.send("waiting", b"first").result(20)
        given[0] = "canary-wrong"
        sent = send_until_refused(producer)
        queued = producer.send("waiting", b"queued")
        for lost in (sent, queued):
            error = lost.exception(20)
            assert isinstance(error, DeliveryTimeoutError)
            assert "the broker refused user 'alice' by SCRAM-SHA-256" in str(error)
            assert "canary" not in "".join(traceback.format_exception(error))
            assert lost is sent or not error.possibly_written
        kept = producer.send("waiting", b"kept")
        given[0] = PASSWORD
        assert kept.result(20).offset > 0


def send_until_refused(producer: Producer) -> DeliveryFuture:
    """Send records until one waits for a new connection; return its future."""
    end = time.monotonic() + 10 * LIFETIME_S
    while time.monotonic() < end:
        future = producer.send("waiting", b"next")
        try:
            future.result(1)
        except TimeoutError:
            return future
    raise AssertionError("the session of the producer did not end")


def test_renewed_client_certificate_is_used_without_a_restart(secured: Secured) -> None:
    store = secured.directory / "renewed.pem"
    store.write_text(CertificateAuthority("other").issue("client").pem)
    options = secured.options("MTLS", "SSL", ssl_keystore_location=str(store))
    with AdminClient(**options, default_api_timeout_ms=20_000) as admin:
        with pytest.raises(SslAuthenticationError):
            admin.list_topics()
        renewed = store.with_suffix(".new")
        renewed.write_text(secured.client.pem)
        renewed.replace(store)
        wait_until(partial(_can_list_topics, admin), "the renewed certificate is used", every=0.2)


def _can_list_topics(admin: AdminClient) -> bool:
    try:
        admin.list_topics()
    except SslAuthenticationError:
        return False
    return True
