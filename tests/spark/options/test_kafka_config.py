"""Options ``kafka.*`` as the configuration of a client."""

from collections.abc import Mapping

import pytest

from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.spark.options.kafka_config import (
    RESERVED_BY_SINK,
    RESERVED_BY_SOURCE,
    admin_config,
    checked_config,
    kafka_config,
)

SERVERS = {"kafka.bootstrap.servers": "h:1"}


def refusal(config: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        checked_config(config, CONSUMER_CONFIG.parse)
    return str(caught.value)


def test_prefix_is_removed_and_other_options_are_ignored() -> None:
    given = {"KAFKA.Bootstrap.Servers": "h:1", "kafka.client.id": "Me", "subscribe": "t"}
    assert kafka_config(given, RESERVED_BY_SOURCE) == {
        "bootstrap.servers": "h:1",
        "client.id": "Me",
    }


@pytest.mark.parametrize("options", [{}, {"kafka.bootstrap.servers": ""}])
def test_servers_are_required(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers: got nothing"):
        kafka_config(options, RESERVED_BY_SOURCE)


@pytest.mark.parametrize("reserved", [RESERVED_BY_SOURCE, RESERVED_BY_SINK])
def test_reserved_keys_are_refused_with_their_reason(reserved: Mapping[str, str]) -> None:
    for key, reason in reserved.items():
        with pytest.raises(ConfigError) as caught:
            kafka_config({**SERVERS, f"kafka.{key.upper()}": "x"}, reserved)
        assert str(caught.value) == f"kafka.{key}: got a value, expected none; {reason}"


def test_valid_configuration_passes() -> None:
    checked_config({"bootstrap.servers": "h:1", "fetch.min.bytes": "5"}, CONSUMER_CONFIG.parse)


def test_errors_name_the_option() -> None:
    servers = {"bootstrap.servers": "h:1"}
    wrong = refusal({**servers, "fetch.min.bytes": "x"})
    assert wrong.startswith("kafka.fetch.min.bytes: got 'x'")
    misspelt = refusal({**servers, "fetch.min.byte": "1"})
    assert misspelt.startswith("kafka.*: ")
    assert "did you mean 'kafka.fetch.min.bytes'?" in misspelt


def test_admin_client_gets_the_keys_that_it_has() -> None:
    consumer = {"bootstrap.servers": "h:1", "fetch.min.bytes": "5", "client.id": "me"}
    assert admin_config(consumer) == {"bootstrap.servers": "h:1", "client.id": "me"}
