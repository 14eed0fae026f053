"""Common options: strict parsing of bootstrap servers and of the security protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.client.client_config import ClientConfig, parse_bootstrap_servers
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError

CLIENT = ConfigDef("client", ClientConfig)


@pytest.mark.parametrize(
    ("given_value", "parsed"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        (["a:1", "b:2", "a:1"], [("a", 1), ("b", 2)]),
        (("my_broker.example.org:65535",), [("my_broker.example.org", 65535)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[fe80::1%eth0]:9092,127.0.0.1:9093", [("fe80::1%eth0", 9092), ("127.0.0.1", 9093)]),
        ("bücher.example:9092", [("bücher.example", 9092)]),
    ],
)
def test_valid_bootstrap_servers_are_parsed(
    given_value: object, parsed: list[tuple[str, int]]
) -> None:
    assert list(parse_bootstrap_servers(given_value)) == parsed


@pytest.mark.parametrize(
    ("given_value", "text"),
    [
        (
            ["a:1", "localhost"],
            "bootstrap_servers[1]: got 'localhost', expected 'host:port'; add ':9092'?",
        ),
        (
            "a:1,,b:2",
            "bootstrap_servers[1]: got '', expected 'host:port'; remove the extra comma",
        ),
        ("localhost", "bootstrap_servers[0]: got 'localhost', expected 'host:port'; add ':9092'?"),
        ("[::1]", "bootstrap_servers[0]: got '[::1]', expected 'host:port'; add ':9092'?"),
        ("::1:9092", "put an IPv6 address in brackets"),
        (
            "http://a:9092",
            "bootstrap_servers[0]: got 'http://a:9092', expected 'host:port'; remove",
        ),
        ("a:0", "bootstrap_servers[0]: got 'a:0', expected 'host:port'; the port is a number"),
        ("a:99999", "the port is a number from 1 to 65535"),
        ("a:x", "the port is a number from 1 to 65535"),
        ("a:٣", "the port is a number from 1 to 65535"),
        ("a:-1", "the port is a number from 1 to 65535"),
        (":9092", "'' is not a host name"),
        ("a b:9092", "'a b' is not a host name"),
        ("a:1,,b:2", "bootstrap_servers[1]: got ''"),
        ("", "bootstrap_servers: got '' (str), expected at least one 'host:port'"),
        ([], "bootstrap_servers: got [] (list), expected at least one 'host:port'"),
        (None, "bootstrap_servers: got None (NoneType), expected 'host:port[,host:port]'"),
        (b"a:1", "bootstrap_servers: got b'a:1' (bytes)"),
        ({"a": 1}, "bootstrap_servers: got {'a': 1} (dict)"),
        ([("a", 1)], "bootstrap_servers[0]: got ('a', 1), expected 'host:port'; it is of type"),
    ],
)
def test_invalid_bootstrap_servers_are_refused(given_value: object, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        CLIENT.parse({"bootstrap_servers": given_value})
    assert str(raised.value).startswith("bootstrap_servers")
    assert text in str(raised.value)


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = parse_bootstrap_servers(text)
    except ConfigError:
        return
    for host, port in parsed:
        assert host
        assert 1 <= port <= 65535


def test_unknown_security_protocol_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected one of 'PLAINTEXT', 'SSL'"):
        CLIENT.parse({"bootstrap_servers": "a:1", "security_protocol": ["SSL"]})
