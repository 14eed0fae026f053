"""Settings of listeners, as `BrokerConfig` reads them."""

import re

import pytest

from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.listeners import (
    DEFAULT_PROTOCOL_MAP,
    ListenerConfig,
    parse_endpoint,
    parse_protocol_map,
)
from kclient.common.errors import ConfigError
from kclient.network.endpoint import Endpoint, SecurityProtocol

LISTENERS = "listeners"
ADVERTISED = "advertised.listeners"
MAP = "listener.security.protocol.map"
INTER_BROKER = "inter.broker.listener.name"
TWO = {
    LISTENERS: "INTERNAL://127.0.0.1:0,EXTERNAL://localhost:0",
    MAP: "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
}


def listeners_of(**given: object) -> ListenerConfig:
    return BROKER_CONFIG.parse({"log.dir": "d", **given}).listener_config()


def test_default_is_one_loopback_listener() -> None:
    (only,) = listeners_of().listeners
    assert only == Endpoint("PLAINTEXT", "127.0.0.1", 9092)
    assert listeners_of().advertised == (only,)
    assert listeners_of().inter_broker == "PLAINTEXT"


def test_several_listeners() -> None:
    found = listeners_of(**TWO)
    internal, external = found.listeners
    assert internal == Endpoint("INTERNAL", "127.0.0.1", 0)
    assert external == Endpoint("EXTERNAL", "localhost", 0)
    assert found.advertised == found.listeners
    assert found.inter_broker == "INTERNAL"


def test_names_are_case_insensitive() -> None:
    given = {
        LISTENERS: "internal://127.0.0.1:1",
        MAP: "Internal:plaintext",
        ADVERTISED: "iNTERNAL://localhost:2",
        INTER_BROKER: "internal",
    }
    found = listeners_of(**given)
    assert found.listeners == (Endpoint("INTERNAL", "127.0.0.1", 1),)
    assert found.advertised == (Endpoint("INTERNAL", "localhost", 2),)
    assert found.inter_broker == "INTERNAL"


def test_advertised_listeners_are_ordered_as_listeners_and_may_share_a_port() -> None:
    found = listeners_of(**TWO, **{ADVERTISED: "EXTERNAL://b.example:9,INTERNAL://a.example:9"})
    assert [str(each) for each in found.advertised] == [
        "INTERNAL://a.example:9",
        "EXTERNAL://b.example:9",
    ]


def test_a_listener_may_be_left_out_of_the_advertised_ones() -> None:
    found = listeners_of(**TWO, **{ADVERTISED: "EXTERNAL://b.example:9"})
    assert [each.name for each in found.advertised] == ["EXTERNAL"]
    assert found.inter_broker == "EXTERNAL"


def test_bound_ports_are_advertised_for_port_0() -> None:
    found = listeners_of(**TWO, **{ADVERTISED: "INTERNAL://a.example:0,EXTERNAL://b.example:9"})
    bound = [endpoint._replace(port=number) for number, endpoint in enumerate(found.listeners, 70)]
    assert [each.address for each in found.advertised_for(bound)] == ["a.example:70", "b.example:9"]


def test_an_ipv4_and_an_ipv6_address_may_have_the_same_port() -> None:
    given = {LISTENERS: "A://127.0.0.1:9092,B://[::1]:9092", MAP: "A:PLAINTEXT,B:PLAINTEXT"}
    assert [each.port for each in listeners_of(**given).listeners] == [9092, 9092]


COMBINED = {
    LISTENERS: "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
}


def test_controller_listener_is_neither_bound_nor_advertised_to_clients() -> None:
    found = listeners_of(**COMBINED)
    assert [each.name for each in found.listeners] == ["PLAINTEXT"]
    assert [each.name for each in found.advertised] == ["PLAINTEXT"]
    assert found.inter_broker == "PLAINTEXT"
    assert found.controllers == found.advertised_controllers
    assert [str(each) for each in found.controllers] == ["CONTROLLER://127.0.0.1:9093"]


def test_controller_listener_may_have_an_advertised_address() -> None:
    found = listeners_of(
        **COMBINED, **{ADVERTISED: "PLAINTEXT://localhost:9092,CONTROLLER://localhost:7000"}
    )
    assert [str(each) for each in found.advertised] == ["PLAINTEXT://localhost:9092"]
    assert [each.port for each in found.controllers] == [9093]
    assert [each.address for each in found.advertised_controllers] == ["localhost:7000"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {LISTENERS: "PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:2"},
            (
                "listeners: got PLAINTEXT://127.0.0.1:1 and PLAINTEXT://127.0.0.1:2, expected "
                "different names"
            ),
        ),
        (
            {**TWO, LISTENERS: "INTERNAL://127.0.0.1:1,EXTERNAL://127.0.0.2:1"},
            (
                "listeners: got INTERNAL://127.0.0.1:1 and EXTERNAL://127.0.0.2:1, expected "
                "different ports"
            ),
        ),
        (
            {**TWO, LISTENERS: "INTERNAL://localhost:1,EXTERNAL://[::1]:1"},
            "expected different ports",
        ),
        (
            {LISTENERS: "INTERNAL://127.0.0.1:1"},
            (
                "listeners: got 'INTERNAL://127.0.0.1:1', but listener.security.protocol.map has "
                "no security protocol for INTERNAL"
            ),
        ),
        ({LISTENERS: ""}, "listeners: got none, expected at least one listener"),
        (
            {MAP: "PLAINTEXT:PLAINTEXT,CLIENT:TLS"},
            (
                "listener.security.protocol.map: got 'CLIENT:TLS', expected 'NAME:PROTOCOL' with "
                "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
            ),
        ),
        ({MAP: ":PLAINTEXT"}, "listener.security.protocol.map: got ':PLAINTEXT'"),
        (
            {**TWO, ADVERTISED: "INTERNAL://a:1,PLAINTEXT://b:1"},
            "has no security protocol for PLAINTEXT",
        ),
        (
            {ADVERTISED: "SSL://b:1"},
            "advertised.listeners: got 'SSL://b:1', expected a name of listeners: PLAINTEXT",
        ),
        (
            {ADVERTISED: "PLAINTEXT://a:1,PLAINTEXT://b:2"},
            "advertised.listeners: got PLAINTEXT://a:1 and PLAINTEXT://b:2, expected different",
        ),
        (
            {ADVERTISED: "PLAINTEXT://0.0.0.0:9092"},
            "advertised.listeners: got '0.0.0.0:9092', which clients cannot connect to",
        ),
        ({ADVERTISED: "PLAINTEXT://:9092"}, "advertised.listeners: got '0.0.0.0:9092'"),
        ({ADVERTISED: ""}, "advertised.listeners: got none"),
        (
            {**TWO, INTER_BROKER: "OTHER"},
            (
                "inter.broker.listener.name: got 'OTHER', expected an advertised listener: "
                "INTERNAL, EXTERNAL"
            ),
        ),
        (
            {**TWO, ADVERTISED: "EXTERNAL://b:9", INTER_BROKER: "INTERNAL"},
            "inter.broker.listener.name: got 'INTERNAL', expected an advertised listener: EXTERNAL",
        ),
        (
            {"controller.listener.names": "CONTROLLER"},
            "controller.listener.names: got 'CONTROLLER', expected a name of listeners: PLAINTEXT",
        ),
        (
            {**COMBINED, INTER_BROKER: "CONTROLLER"},
            "inter.broker.listener.name: got 'CONTROLLER', expected no name of controller.listener",
        ),
        (
            {**COMBINED, LISTENERS: "CONTROLLER://127.0.0.1:9093"},
            "listeners: got CONTROLLER://127.0.0.1:9093, expected one for clients",
        ),
        (
            {**COMBINED, LISTENERS: "PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093"},
            "listeners: got '0.0.0.0:9093', which other machines can reach",
        ),
        (
            {**TWO, LISTENERS: "INTERNAL://127.0.0.1:0,EXTERNAL://192.0.2.1:0"},
            "listeners: got '192.0.2.1:0', which other machines can reach",
        ),
        (
            {
                **TWO,
                LISTENERS: "INTERNAL://127.0.0.1:0,EXTERNAL://:0",
                "allow.unauthenticated.listeners": True,
            },
            "listeners: got '0.0.0.0:0', which clients cannot connect to; set advertised.listeners",
        ),
    ],
)
def test_refused_settings(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        listeners_of(**given)


def test_endpoints() -> None:
    protocols = parse_protocol_map(DEFAULT_PROTOCOL_MAP)
    assert parse_endpoint("x", "[::1]:9092", protocols) == Endpoint("PLAINTEXT", "::1", 9092)
    assert parse_endpoint("x", "SASL_SSL://h:1", protocols) == Endpoint(
        "SASL_SSL", "h", 1, SecurityProtocol.SASL_SSL
    )
    for text in ("h", "h:", "h:x", "h:65536", "://h:1", "PLAINTEXT://h"):
        with pytest.raises(ConfigError, match=r"x: got .*, expected 'host:port'"):
            parse_endpoint("x", text, protocols)
