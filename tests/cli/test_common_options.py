"""Options shared by the client commands."""

import argparse
from pathlib import Path

import pytest

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.common_options import (
    FILE_VARIABLE,
    SERVERS_VARIABLE,
    add_connection_options,
    client_options,
    key_values,
    producer_options,
    seconds,
    whole_number,
)
from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.producer_config import PRODUCER_CONFIG


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection_options(parser)
    return parser.parse_args(arguments)


@pytest.fixture(autouse=True)
def without_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVERS_VARIABLE, raising=False)
    monkeypatch.delenv(FILE_VARIABLE, raising=False)


def test_defaults() -> None:
    assert client_options(parsed(), ADMIN_CONFIG) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "default.api.timeout.ms": 10_000,
    }


@pytest.mark.parametrize(("variable", "address"), [("h:1", "h:1"), ("", "127.0.0.1:9092")])
def test_address_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, address: str
) -> None:
    monkeypatch.setenv(SERVERS_VARIABLE, variable)
    assert client_options(parsed(), ADMIN_CONFIG)["bootstrap.servers"] == address
    assert client_options(parsed("-b", "other:2"), ADMIN_CONFIG)["bootstrap.servers"] == "other:2"


def test_controllers_replace_the_default_address() -> None:
    options = client_options(parsed("-X", "bootstrap.controllers=h:1"), ADMIN_CONFIG)
    assert "bootstrap.servers" not in options
    assert options["bootstrap.controllers"] == "h:1"
    both = parsed("-b", "h:2", "-X", "bootstrap.controllers=h:1")
    with pytest.raises(ConfigError, match="bootstrap"):
        ADMIN_CONFIG.parse(client_options(both, ADMIN_CONFIG))


def test_config_precedes_the_option_it_repeats() -> None:
    options = parsed("--timeout", "2", "--config", "default.api.timeout.ms=5", "--config", "a=b=c")
    assert client_options(options, ADMIN_CONFIG)["default.api.timeout.ms"] == "5"
    assert client_options(options, ADMIN_CONFIG)["a"] == "b=c"


def test_producer_has_time_for_a_second_attempt() -> None:
    assert producer_options(parsed("--timeout", "2"), PRODUCER_CONFIG) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "max.block.ms": 2_000,
        "request.timeout.ms": 1_000,
        "delivery.timeout.ms": 2_000,
    }
    shortest = producer_options(parsed("--timeout", "0.001"), PRODUCER_CONFIG)
    assert (shortest["max.block.ms"], shortest["request.timeout.ms"]) == (1, 1)
    assert shortest["delivery.timeout.ms"] == 10


@pytest.mark.parametrize("own", ["delivery.timeout.ms=9", "request_timeout_ms=9", "linger.ms=9"])
def test_timeouts_of_the_user_are_not_completed(own: str) -> None:
    found = producer_options(parsed("--config", own), PRODUCER_CONFIG)
    assert set(found) == {"bootstrap.servers", "max.block.ms", own.partition("=")[0]}


def test_pairs_need_an_equals_sign() -> None:
    assert key_values("--config", ["a=", " b = c "]) == {"a": "", "b": "c"}
    with pytest.raises(ConfigError, match="--config: got 'a', expected KEY=VALUE"):
        key_values("--config", ["a"])
    with pytest.raises(ConfigError, match="-X: got no '=', expected KEY=VALUE"):
        key_values("-X", ["sasl.password:canary7"])


# -- the configuration file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        "# of a Java client\n"
        "bootstrap.servers=file:1\n"
        "linger.ms=7\n"
        "max.poll.records = 8  \n"
        "default.api.timeout.ms=9\n"
        "sasl.mechanism=PLAIN\n"
    )
    return path


def test_each_client_gets_its_own_keys_of_a_shared_file(file: Path) -> None:
    options = parsed("--config-file", str(file))
    common = {"bootstrap.servers": "file:1", "sasl.mechanism": "PLAIN"}
    calls = {"default.api.timeout.ms": "9"}
    assert client_options(options, ADMIN_CONFIG) == common | calls
    consumer = client_options(options, CONSUMER_CONFIG)
    assert consumer == common | calls | {"max.poll.records": "8"}
    producer = producer_options(options, PRODUCER_CONFIG)
    assert producer == common | {"max.block.ms": 10_000, "linger.ms": "7"}


def test_command_line_overrides_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVERS_VARIABLE, "variable:1")
    given = ["--config-file", str(file), "--timeout", "2", "-b", "option:1", "-X", "linger_ms=3"]
    producer = producer_options(parsed(*given), PRODUCER_CONFIG)
    assert producer["bootstrap.servers"] == "option:1"
    assert producer["max.block.ms"] == 2_000
    assert (producer["linger_ms"], producer.get("linger.ms")) == ("3", None)
    assert client_options(parsed(*given[:4]), ADMIN_CONFIG)["default.api.timeout.ms"] == 2_000
    servers = ["-X", "bootstrap_servers=x:1"]
    assert "bootstrap.servers" not in client_options(parsed(*given, *servers), ADMIN_CONFIG)
    start = {"max.poll.records": 1}
    assert client_options(parsed(*given), CONSUMER_CONFIG, start)["max.poll.records"] == 1


def test_environment_names_the_default_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_CONFIG", str(file))
    assert client_options(parsed(), ADMIN_CONFIG)["bootstrap.servers"] == "file:1"
    other = file.with_name("other")
    other.write_text("bootstrap.servers=other:1")
    options = parsed("--config-file", str(other))
    assert client_options(options, ADMIN_CONFIG)["bootstrap.servers"] == "other:1"
    monkeypatch.setenv(FILE_VARIABLE, "")
    assert client_options(parsed(), ADMIN_CONFIG)["bootstrap.servers"] == "127.0.0.1:9092"


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
