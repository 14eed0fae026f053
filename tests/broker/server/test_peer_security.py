"""Security of connections between nodes: which settings it comes from, and which are refused."""

from collections.abc import Mapping

import pytest

from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.common.errors import ConfigError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN = 'username="node" password="canary1"'
CONTROLLER_JAAS = "listener.name.controller.plain.sasl.jaas.config"
BROKER_JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"
BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
MECHANISMS = "sasl.enabled.mechanisms"
THREE = {"controller.quorum.voters": "1@localhost:9093,2@localhost:9094,3@localhost:9095"}
NODE = {
    "log.dir": "d",
    "listeners": "SASL_SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
    MECHANISMS: "PLAIN",
    CONTROLLER_JAAS: f'{PLAIN_MODULE} required {LOGIN} user_node="canary1";',
    BROKER_JAAS: f'{PLAIN_MODULE} required {LOGIN} user_alice="canary2" user_node="canary1";',
    CONTROLLER_MECHANISM: "PLAIN",
    BROKER_MECHANISM: "PLAIN",
    "ssl.keystore.location": "node.pem",
    "ssl.truststore.location": "ca.pem",
}


def parsed(given: Mapping[str, object]) -> BrokerConfig:
    return BROKER_CONFIG.parse({name: each for name, each in given.items() if each is not None})


def test_connections_have_the_security_of_the_listener() -> None:
    own = {
        "listener.name.sasl_ssl.ssl.truststore.location": "others.pem",
        "listener.name.sasl_ssl.ssl.endpoint.identification.algorithm": "",
    }
    config = parsed({**NODE, **THREE, **own})
    name, security = config.inter_broker_security()
    assert (name, security.security_protocol) == ("SASL_SSL", "SASL_SSL")
    assert security.ssl_truststore_location == "others.pem"
    assert security.ssl_keystore_location == "node.pem"
    assert security.ssl_endpoint_identification_algorithm == ""
    name, security = config.controller_security()
    assert (name, security.security_protocol) == ("CONTROLLER", "SASL_PLAINTEXT")
    user, password = security.credentials
    assert (security.sasl_mechanism, user, password.reveal()) == ("PLAIN", "node", "canary1")
    for shown in (config, security, config.overrides, config.listener_securities()):
        assert "canary" not in repr(shown)


def test_host_names_of_nodes_are_verified_by_default() -> None:
    _, security = parsed({**NODE, **THREE}).inter_broker_security()
    assert security.ssl_endpoint_identification_algorithm == "https"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_brokers_may_use_scram(mechanism: str) -> None:
    settings = {
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": f"PLAIN,{mechanism}",
        BROKER_MECHANISM: mechanism,
        f"listener.name.sasl_ssl.{mechanism.lower()}.sasl.jaas.config": (
            f"{SCRAM_MODULE} required {LOGIN};"
        ),
    }
    _, security = parsed({**NODE, **THREE, **settings}).inter_broker_security()
    assert (security.sasl_mechanism, security.credentials[0]) == (mechanism, "node")


def test_protocol_between_brokers_names_their_listener() -> None:
    listeners = "SASL_SSL://127.0.0.1:9092,SSL://127.0.0.1:9096,CONTROLLER://127.0.0.1:9093"
    mapping = f"{NODE['listener.security.protocol.map']},SSL:SSL"
    settings = {"listeners": listeners, "listener.security.protocol.map": mapping}
    config = parsed({**NODE, **settings, "security.inter.broker.protocol": "SSL"})
    assert config.listener_config().inter_broker == "SSL"
    with pytest.raises(
        ConfigError, match=r"^security\.inter\.broker\.protocol: got SSL with inter"
    ):
        parsed(
            {
                **NODE,
                **settings,
                "security.inter.broker.protocol": "SSL",
                "inter.broker.listener.name": "SSL",
            }
        )


@pytest.mark.parametrize("value", [None, "GSSAPI", "PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_node_alone_needs_no_mechanism(value: str | None) -> None:
    alone = {"controller.quorum.voters": "1@localhost:9093"}
    parsed({**NODE, **alone, BROKER_MECHANISM: value, CONTROLLER_MECHANISM: value})


SCRAM_ONLY = {
    "listener.name.controller.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.controller.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required {LOGIN};",
    CONTROLLER_MECHANISM: "SCRAM-SHA-512",
}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {BROKER_MECHANISM: None},
            (
                "sasl.mechanism.inter.broker.protocol: got nothing with the listener SASL_SSL of"
                " SASL_SSL, expected one of PLAIN"
            ),
        ),
        (
            {CONTROLLER_MECHANISM: None},
            (
                "sasl.mechanism.controller.protocol: got nothing with the listener CONTROLLER of"
                " SASL_PLAINTEXT, expected one of PLAIN"
            ),
        ),
        (
            {BROKER_MECHANISM: "GSSAPI"},
            "got 'GSSAPI' with the listener SASL_SSL of SASL_SSL, expected one of PLAIN",
        ),
        ({BROKER_MECHANISM: "OAUTHBEARER"}, "got 'OAUTHBEARER' with the listener SASL_SSL"),
        ({BROKER_MECHANISM: "SCRAM-SHA-512"}, "got 'SCRAM-SHA-512' with the listener SASL_SSL"),
        ({BROKER_MECHANISM: "DIGEST"}, "got 'DIGEST' (str), expected one of GSSAPI, PLAIN"),
        (
            SCRAM_ONLY,
            (
                "sasl.mechanism.controller.protocol: got 'SCRAM-SHA-512' with the listener"
                " CONTROLLER of SASL_PLAINTEXT, expected one of PLAIN, also among the"
                " sasl.enabled.mechanisms of the listener: SCRAM-SHA-512; users of SCRAM are in the"
                " metadata, which controllers know after they connected to each other"
            ),
        ),
        (
            {BROKER_JAAS: f'{PLAIN_MODULE} required user_alice="canary2";'},
            (
                f"{BROKER_JAAS}: got a module without username and password with"
                " sasl.mechanism.inter.broker.protocol=PLAIN, expected those of this node"
            ),
        ),
        (
            {CONTROLLER_JAAS: f'{PLAIN_MODULE} required username="a" user_a="canary2";'},
            (
                f"{CONTROLLER_JAAS}: got a secret value, expected one entry 'MODULE required"
                " OPTIONS;'; it has one of username and password, expected both or none"
            ),
        ),
        (
            {"listener.name.controller.ssl.endpoint.identification.algorithm": "ldap"},
            "got 'ldap' (str), expected 'https' or ''",
        ),
    ],
)
def test_security_that_is_refused(given: Mapping[str, str | None], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed({**NODE, **THREE, **given})
    assert complaint in str(caught.value)
    assert "canary" not in str(caught.value)
