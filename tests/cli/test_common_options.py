"""Options shared by the client commands."""

import argparse

import pytest

from kclient.cli.common_options import (
    SERVERS_VARIABLE,
    add_connection_options,
    client_options,
    key_values,
    producer_options,
    seconds,
    whole_number,
)
from kclient.common.errors import ConfigError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection_options(parser)
    return parser.parse_args(arguments)


@pytest.fixture(autouse=True)
def without_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVERS_VARIABLE, raising=False)


def test_defaults() -> None:
    assert client_options(parsed()) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "default.api.timeout.ms": 10_000,
    }


@pytest.mark.parametrize(("variable", "address"), [("h:1", "h:1"), ("", "127.0.0.1:9092")])
def test_address_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, address: str
) -> None:
    monkeypatch.setenv(SERVERS_VARIABLE, variable)
    assert client_options(parsed())["bootstrap.servers"] == address
    assert client_options(parsed("-b", "other:2"))["bootstrap.servers"] == "other:2"


def test_config_precedes_the_option_it_repeats() -> None:
    options = parsed("--timeout", "2", "--config", "default.api.timeout.ms=5", "--config", "a=b=c")
    assert client_options(options)["default.api.timeout.ms"] == "5"
    assert client_options(options)["a"] == "b=c"


def test_producer_has_time_for_a_second_attempt() -> None:
    assert producer_options(parsed("--timeout", "2")) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "max.block.ms": 2_000,
        "request.timeout.ms": 1_000,
        "delivery.timeout.ms": 2_000,
    }
    shortest = producer_options(parsed("--timeout", "0.001"))
    assert (shortest["max.block.ms"], shortest["request.timeout.ms"]) == (1, 1)
    assert shortest["delivery.timeout.ms"] == 10


@pytest.mark.parametrize("own", ["delivery.timeout.ms=9", "request_timeout_ms=9", "linger.ms=9"])
def test_timeouts_of_the_user_are_not_completed(own: str) -> None:
    found = producer_options(parsed("--config", own))
    assert set(found) == {"bootstrap.servers", "max.block.ms", own.partition("=")[0]}


def test_pairs_need_an_equals_sign() -> None:
    assert key_values("--config", ["a=", " b = c "]) == {"a": "", "b": "c"}
    with pytest.raises(ConfigError, match="--config: got 'a', expected KEY=VALUE"):
        key_values("--config", ["a"])


@pytest.mark.parametrize("text", ["", "x", "1.0", "0", "-1", str(2**31)])
def test_whole_numbers_have_limits(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"got '{text}', expected a whole number"):
        whole_number(1)(text)


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "10.1", "nan", "inf"])
def test_seconds_have_limits(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="more than 0 and at most 10"):
        seconds(10)(text)


def test_limits_are_allowed() -> None:
    assert whole_number(1)("1") == 1
    assert whole_number(1)(str(2**31 - 1)) == 2**31 - 1
    assert seconds(10)("10") == 10
