"""Keys of the Java client that are refused."""

from typing import Any

import pytest

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.common.java_only_keys import java_only_keys
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.producer_config import PRODUCER_CONFIG

PLAIN = {"bootstrap.servers": "h:1"}
KEYS = {key.name: key for key in java_only_keys()}


@pytest.mark.parametrize(
    "definition", [ADMIN_CONFIG, CONSUMER_CONFIG, PRODUCER_CONFIG], ids=lambda each: each.owner
)
def test_every_client_refuses_each_key_with_its_reason(definition: ConfigDef[Any]) -> None:
    for name, key in KEYS.items():
        with pytest.raises(ConfigError) as caught:
            definition.parse({**PLAIN, name: "hunter2"})
        assert name in str(caught.value)
        assert key.refused
        assert str(key.refused) in str(caught.value)


def test_values_that_may_be_secret_are_not_shown() -> None:
    for name in ("ssl.engine.factory.class", "sasl.login.class"):
        with pytest.raises(ConfigError) as caught:
            CONSUMER_CONFIG.parse({**PLAIN, name: "hunter2"})
        assert "hunter2" not in str(caught.value)
        assert KEYS[name].secret


def test_values_of_plain_options_are_shown() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.protocol: got 'SSLv3'"):
        CONSUMER_CONFIG.parse({**PLAIN, "ssl.protocol": "SSLv3"})
    assert not KEYS["metric.reporters"].secret
