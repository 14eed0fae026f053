"""Keys of listeners: which value is in force, and which are refused."""

from collections.abc import Mapping

import pytest

from kclient.broker.network.listener_security import ListenerSecurity
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.common.errors import ConfigError
from kclient.testing import EmbeddedCluster

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required username="x" password="canary1" user_alice="canary2" user_bob=canary3;'
MECHANISMS = "sasl.enabled.mechanisms"
REAUTH = "connections.max.reauth.ms"
SIZE = "sasl.server.max.receive.size"
ONE = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    MECHANISMS: "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
}
TWO = {
    "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT",
    MECHANISMS: "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": JAAS,
    "listener.name.out.plain.sasl.jaas.config": JAAS,
}


def resolved(given: Mapping[str, object]) -> dict[str, ListenerSecurity]:
    config = BROKER_CONFIG.parse({"log.dir": "d", **given})
    return {each.name: each for each in config.listener_securities()}


def test_most_specific_value_is_in_force() -> None:
    found = resolved(
        {
            **TWO,
            REAUTH: 1000,
            SIZE: 100,
            f"listener.name.in.{REAUTH}": "2000",
            f"listener.name.in.{SIZE}": "200",
            f"listener.name.in.plain.{REAUTH}": "3000",
            f"listener.name.out.{REAUTH}": 4000,
        }
    )
    lifetimes = {name: each.mechanisms["PLAIN"].max_reauth_ms for name, each in found.items()}
    assert lifetimes == {"IN": 3000, "OUT": 4000}
    assert {name: each.max_receive_size for name, each in found.items()} == {"IN": 200, "OUT": 100}


def test_users_of_plain_are_not_shown() -> None:
    config = BROKER_CONFIG.parse({"log.dir": "d", **ONE})
    (security,) = config.listener_securities()
    users = security.mechanisms["PLAIN"].users
    assert {name: each.reveal() for name, each in users.items()} == {
        "alice": "canary2",
        "bob": "canary3",
    }
    for shown in (config, security, config.overrides, config.given):
        assert "canary" not in repr(shown)


def test_listener_with_sasl_may_be_reached_by_other_machines() -> None:
    given = {**ONE, "listeners": "SASL_PLAINTEXT://192.0.2.1:9094"}
    assert resolved(given)["SASL_PLAINTEXT"].authenticates


def test_certificates_authenticate_only_if_they_are_required() -> None:
    stores = {"ssl.keystore.location": "server.pem", "ssl.truststore.location": "ca.pem"}
    names = {**stores, "listeners": "SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0", MECHANISMS: "PLAIN"}
    jaas = {"listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS}
    for client_auth in ("none", "requested", "required"):
        found = resolved({**names, **jaas, "ssl.client.auth": client_auth})
        assert found["SSL"].authenticates == (client_auth == "required")
        tls = found["SASL_SSL"].tls
        assert tls is not None
        assert tls.client_auth == "none"
    with pytest.raises(ConfigError, match="which other machines can reach"):
        resolved({**stores, "listeners": "SSL://192.0.2.1:0", "ssl.client.auth": "requested"})
    resolved({**stores, "listeners": "SSL://192.0.2.1:0", "ssl.client.auth": "required"})


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {**ONE, MECHANISMS: ""},
            "sasl.enabled.mechanisms: got nothing for the listener SASL_PLAINTEXT",
        ),
        ({**ONE, MECHANISMS: "GSSAPI"}, "'GSSAPI' is not one of PLAIN"),
        (
            {"listeners": ONE["listeners"], MECHANISMS: "PLAIN"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: got nothing",
        ),
        (
            {**ONE, f"listener.name.other.{REAUTH}": 1},
            f"listener.name.other.{REAUTH}: got a value for an unknown listener",
        ),
        (
            {**ONE, "listener.name.sasl_plaintext.num.partitions": 1},
            "num.partitions is no option of a listener",
        ),
        (
            {**ONE, f"listener.name.sasl_plaintext.plain.{SIZE}": 1},
            f"{SIZE} is no option of the mechanism plain of a listener",
        ),
        (
            {**ONE, "listener.name.sasl_plaintext.sasl.jaas.config": JAAS},
            "set listener.name.sasl_plaintext.MECHANISM.sasl.jaas.config",
        ),
        ({**ONE, "listener.name.SASL_PLAINTEXT.a": 1}, "expected listener.name.NAME.KEY"),
        ({**ONE, f"listener.name.sasl_plaintext.{SIZE}": 0}, f"{SIZE}: got 0"),
    ],
)
def test_refused_settings(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(given)
    assert complaint in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("jaas", "complaint"),
    [
        (f"{MODULE} required;", "it has no user"),
        (f"{MODULE} required username=a password=canary;", "it has no user"),
        (f"{MODULE} required user_a='';", "empty password"),
        (f"{MODULE} required user_=canary;", "is none of username, password, user_NAME"),
        (f"{MODULE} required canary=canary;", "is none of username, password, user_NAME"),
        (f"{MODULE} required user_a=canary user_a=canary;", "twice"),
        ("canary", "it does not end with ';'"),
    ],
)
def test_refused_login_modules(jaas: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved({**ONE, "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas})
    assert complaint in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.fault("A10")
@pytest.mark.parametrize(
    "key",
    [
        "listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class",
        "principal.builder.class",
        "ssl.engine.factory.class",
        "security.providers",
        "config.providers",
        "create.topic.policy.class.name",
        "alter.config.policy.class.name",
        "client.quota.callback.class",
        "authorizer.class.name",
    ],
)
def test_no_class_is_loaded_by_its_name(key: str) -> None:
    with pytest.raises(ConfigError):
        EmbeddedCluster(config={**ONE, key: "a.B"}).start()


@pytest.mark.fault("A10")
def test_login_modules_of_java_are_refused() -> None:
    """Some of them connect to a server that the entry names (CVE-2023-25194)."""
    for module in ("com.sun.security.auth.module.JndiLoginModule", "a.LdapLoginModule"):
        jaas = f'{module} required user.provider.url="ldap://canary" user_alice="b";'
        with pytest.raises(ConfigError, match="is none of org") as caught:
            resolved({**ONE, "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas})
        assert "canary" not in str(caught.value)
