"""Options of TLS and SASL: what fits together, and what errors show."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from kclient import AdminClient, Producer
from kclient.client.client_config import ClientConfig
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.common.secret import Secret
from kclient.network.client_channel_builder import sasl_client
from kclient.network.sasl.credentials import FixedCredentials, KerberosLogin, UserCredentials
from kclient.network.sasl.credentials_loading import credentials_source
from kclient.network.sasl.kerberos import acquire_ticket
from kclient.network.sasl.scram import SaltedPasswords
from kclient.network.sasl.service_tickets import ServiceTickets
from kclient.network.security_config import SASL_MECHANISMS, SecurityConfig, SecurityOptions
from kclient.network.system_runtime import system_runtime

CLIENT = ConfigDef("test", ClientConfig)
ALICE = {"sasl_username": "alice", "sasl_password": "canary"}
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def parse(**given: object) -> ClientConfig:
    return CLIENT.parse({"bootstrap_servers": "a:1", **given})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"security_protocol": "plaintext"},
        {"security_protocol": "SSL"},
        {"security_protocol": "ssl", "ssl.truststore.type": "pem"},
        {"security_protocol": "SSL", "ssl_context": CONTEXT},
        {
            "security_protocol": "SSL",
            "ssl_keystore_key": "k",
            "ssl_keystore_certificate_chain": "c",
        },
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "scram-sha-512", **ALICE},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **ALICE},
    ],
)
def test_settings_that_fit_together(given: dict[str, object]) -> None:
    config = parse(**given)
    assert config.uses_ssl == config.security_protocol.endswith("SSL")
    assert config.uses_sasl == config.security_protocol.startswith("SASL")
    assert "canary" not in repr(config)


WITH_SASL: dict[str, object] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", **ALICE}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"ssl_truststore_location": "f"},
            "got 'PLAINTEXT' with ssl_truststore_location, expected",
        ),
        (
            {"sasl_username": "u"},
            "got 'PLAINTEXT' with sasl_username, expected SASL_PLAINTEXT or S",
        ),
        ({"security_protocol": "SSL", **ALICE}, "got 'SSL' with sasl_username, expected SASL_PLA"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism: got nothing with SASL_SSL, expected"),
        ({**WITH_SASL, "sasl_mechanism": "SCRAM-SHA512"}, "did you mean 'SCRAM-SHA-512'?"),
        ({**WITH_SASL, "sasl_mechanism": "NTLM"}, "sasl_mechanism: got 'NTLM' .str., expected"),
        (
            {**WITH_SASL, "sasl_mechanism": "GSSAPI"},
            "sasl_kerberos_service_name: got nothing, expected it with GSSAPI",
        ),
        (
            {**WITH_SASL, "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "kafka"},
            "sasl_username: got it with GSSAPI, expected sasl_kerberos_service_name",
        ),
        (
            {**WITH_SASL, "sasl_kerberos_service_name": "kafka"},
            "sasl_kerberos_service_name: got it with PLAIN, expected sasl_username and sasl_pass",
        ),
        (
            {**WITH_SASL, "sasl_kerberos_service_name": "kafka/b-1@REALM"},
            "got 'kafka/b-1@REALM' .str., .*; the host name of the broker is added",
        ),
        (
            {**WITH_SASL, "sasl_password": None},
            "sasl_password: got nothing, expected it with PLAIN",
        ),
        (
            {**WITH_SASL, "sasl_username": None},
            "sasl_username: got nothing, expected it with PLAIN",
        ),
        (
            {**WITH_SASL, "sasl_password": ""},
            "sasl_password: got a secret value, expected a non-em",
        ),
        ({**WITH_SASL, "sasl_password": "canary\0"}, "got a NUL, expected text without one"),
        (
            {**WITH_SASL, "sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "élise"},
            "sasl_username: got 'élise' .str., expected an ASCII user name",
        ),
        (
            {"security_protocol": "SSL", "ssl_keystore_key": "canary"},
            "ssl_keystore_key, ssl_keystore_certificate_chain: got one, expected both or none",
        ),
        (
            {
                "security_protocol": "SSL",
                "ssl_truststore_location": "f",
                "ssl_truststore_certificates": "t",
            },
            "ssl_truststore_location: got it with ssl_truststore_certificates, expected one",
        ),
        (
            {"security_protocol": "SSL", "ssl_context": CONTEXT, "ssl_truststore_location": "f"},
            "ssl_context: got it with ssl_truststore_location, expected one of them",
        ),
        (
            {"security_protocol": "SSL", "ssl_context": "x"},
            "ssl_context: got 'x' .str., expected an",
        ),
        (
            {"security_protocol": "SSL", "ssl_truststore_type": "JKS"},
            "ssl_truststore_type: got 'JKS'",
        ),
        (
            {"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "none"},
            "got 'none' .str., expected 'https' or ''",
        ),
        ({"bootstrap_servers": "SASL_SSL://a:1"}, "remove 'SASL_SSL://' and set security_protocol"),
    ],
)
def test_errors_name_what_is_missing(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        parse(**given)
    assert "canary" not in str(caught.value)


PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def jaas(mechanism: str, entry: object, **others: object) -> dict[str, object]:
    given = {"security_protocol": "SASL_SSL", "sasl_mechanism": mechanism}
    return {**given, "sasl.jaas.config": entry, **others}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN_MODULE), ("SCRAM-SHA-256", SCRAM_MODULE), ("SCRAM-SHA-512", SCRAM_MODULE)],
)
def test_jaas_config_has_the_credentials(mechanism: str, module: str) -> None:
    entry = f'{module} required username="alice" password="canary;=";'
    for given in (entry, Secret(entry), parse(**jaas(mechanism, entry)).sasl_jaas_config):
        config = parse(**jaas(mechanism, given))
        username, password = config.credentials
        assert (username, password.reveal()) == ("alice", "canary;=")
        assert "canary" not in f"{config} {config.sasl_jaas_config!r}"
        source = FixedCredentials(UserCredentials(username, password))
        runtime = system_runtime()
        passwords = SaltedPasswords(runtime.tasks)
        tickets = ServiceTickets(acquire_ticket, runtime, NO_LOG_CONTEXT)
        client = sasl_client(mechanism, source, passwords, tickets, "b-1")
        assert client.identity == "user 'alice'"


def test_delegation_token_authenticates_by_scram() -> None:
    entry = f"{SCRAM_MODULE} required username=id password=canary tokenauth=true;"
    config = parse(**jaas("SCRAM-SHA-256", entry))
    source = credentials_source(config, system_runtime(), NO_LOG_CONTEXT)
    assert source is not None
    assert source.current() == UserCredentials("id", Secret("canary"), is_token=True)
    runtime = system_runtime()
    tickets = ServiceTickets(acquire_ticket, runtime, NO_LOG_CONTEXT)
    client = sasl_client("SCRAM-SHA-256", source, SaltedPasswords(runtime.tasks), tickets, "b-1")
    assert client.initial_response().endswith(b",tokenauth=true")


KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


def test_service_name_is_given_in_one_of_two_places() -> None:
    entry = f"{KERBEROS_MODULE} required useTicketCache=true serviceName=kafka;"
    named = jaas("GSSAPI", entry, sasl_kerberos_service_name="kafka")
    for given in (jaas("GSSAPI", entry), named):
        assert parse(**given).kerberos_login == KerberosLogin("kafka", "", "", "")
    with pytest.raises(ConfigError, match="got 'other' and another serviceName in sasl_jaas_con"):
        parse(**jaas("GSSAPI", entry, sasl_kerberos_service_name="other"))
    plain = jaas("PLAIN", entry)
    with pytest.raises(ConfigError, match="got 'PLAIN' with a module of GSSAPI in sasl_jaas_con"):
        parse(**plain)


ALICE_ENTRY = 'required username="alice" password="canary";'


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            jaas("PLAIN", f"{SCRAM_MODULE} {ALICE_ENTRY}"),
            "sasl_mechanism: got 'PLAIN' with a module of SCRAM-SHA-256, SCRAM-SHA-512 in",
        ),
        (
            jaas("PLAIN", f"{PLAIN_MODULE} {ALICE_ENTRY}", sasl_password="canary"),
            "sasl_jaas_config: got it with sasl_password, expected one of them",
        ),
        (
            jaas("PLAIN", f"{PLAIN_MODULE} {ALICE_ENTRY}", sasl_username="canary"),
            "sasl_jaas_config: got it with sasl_username, expected one of them",
        ),
        (
            {"sasl_jaas_config": f"{PLAIN_MODULE} {ALICE_ENTRY}"},
            "security_protocol: got 'PLAINTEXT' with sasl_jaas_config, expected SASL_PLAIN",
        ),
        (
            jaas("SCRAM-SHA-256", f"{SCRAM_MODULE} required username='canaré' password=a;"),
            "sasl_jaas_config: got a secret value, expected an ASCII user name",
        ),
        (
            jaas("PLAIN", f"{PLAIN_MODULE} required username=a password='canary\0';"),
            "sasl_jaas_config: got a NUL, expected text without one",
        ),
        (jaas("PLAIN", "canary"), "sasl.jaas.config: got a secret value, .*; it does not end with"),
        (jaas("PLAIN", 7), "sasl.jaas.config: got a secret value, expected one entry"),
    ],
)
def test_errors_of_jaas_config_show_no_value(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        parse(**given)
    assert "canar" not in str(caught.value)


def test_store_is_loaded_when_the_client_is_created() -> None:
    options: dict[str, Any] = {"bootstrap_servers": "a:1", "security_protocol": "SSL"}
    for kind in (Producer, AdminClient):
        with pytest.raises(ConfigError, match="_location: got 'missing', which"):
            kind(**options, ssl_truststore_location="missing")


def test_typed_options_are_the_keys() -> None:
    assert set(SecurityOptions.__annotations__) == set(SecurityConfig.CONFIG_KEYS)
    mechanism = SecurityOptions.__annotations__["sasl_mechanism"]
    assert all(repr(each) in str(mechanism) for each in SASL_MECHANISMS)


def test_secret_is_kept_as_a_secret() -> None:
    password = Secret("p")
    assert parse(**{**WITH_SASL, "sasl_password": password}).sasl_password is password


JNDI_MODULE = 'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://a";'


@pytest.mark.fault("A10")
@pytest.mark.parametrize(
    "given",
    [
        {
            **WITH_SASL,
            "sasl_username": None,
            "sasl_password": None,
            "sasl.jaas.config": JNDI_MODULE,
        },
        {**WITH_SASL, "sasl.login.class": "a.B"},
        {**WITH_SASL, "sasl.login.callback.handler.class": "a.B"},
        {**WITH_SASL, "sasl.client.callback.handler.class": "a.B"},
        {"ssl.engine.factory.class": "a.B"},
        {"security.providers": "a.B"},
        {"config.providers": "file"},
        {"interceptor.classes": "a.B"},
        {"key.serializer": "os.system"},
        {"partitioner.class": "a.B"},
        {"sasl.oauthbearer.jwt.retriever.class": "a.B"},
        {"sasl_token_provider": "os.system"},
    ],
)
def test_no_class_is_loaded_by_its_name(given: dict[str, Any]) -> None:
    """A text of a configuration runs no code (CVE-2023-25194)."""
    with pytest.raises(ConfigError):
        Producer(bootstrap_servers="127.0.0.1:1", **given)


@pytest.mark.fault("A10")
def test_references_in_values_are_not_resolved(tmp_path: Path) -> None:
    """A value with the syntax of Kafka's config providers is a text (CVE-2024-31141)."""
    (tmp_path / "secret").write_text("user=canary")
    references = [f"${{file:{tmp_path}/secret:user}}", f"${{dir:{tmp_path}:secret}}", "${env:HOME}"]
    for reference in references:
        config = parse(**{**WITH_SASL, "sasl_username": reference, "sasl_password": reference})
        assert config.sasl_username == reference
        assert isinstance(config.sasl_password, Secret)
        assert config.sasl_password.reveal() == reference
