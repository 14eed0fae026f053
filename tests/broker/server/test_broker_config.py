from pathlib import Path

import pytest

from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.common.errors import ConfigError
from kclient.network.endpoint import Endpoint


def config(**given: object) -> BrokerConfig:
    return BROKER_CONFIG.parse(
        {"log.dir": "d"} | {name.replace("_", "."): v for name, v in given.items()}
    )


def test_defaults() -> None:
    plain = config()
    assert (plain.node_id, plain.data_dir) == (1, Path("d"))
    assert plain.listener_config().listeners == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert plain.message_max_bytes == 1048588
    assert plain.given == {"log.dir": "d"}


def test_settings_as_text() -> None:
    given = config(
        num_partitions="3", auto_create_topics_enable="FALSE", log_cleanup_policy="compact"
    )
    assert given.num_partitions == 3
    assert given.auto_create_topics_enable is False
    assert given.log_cleanup_policy == ("compact",)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"num.partitions": 0}, "num.partitions: got 0"),
        ({"num.partitions": 2**31}, "num.partitions: got 2147483648"),
        ({"num.partitions": "many"}, "num.partitions: got 'many'"),
        ({"auto.create.topics.enable": 1}, "expected true or false"),
        ({"compression.type": "xz"}, "expected one of"),
        ({"log.cleanup.policy": "shred"}, "'shred' is not one of"),
        ({"log.cleaner.min.cleanable.ratio": 1.5}, "a number from 0 to 1"),
        ({"log.dirs": "a,b"}, "expected one directory"),
        ({"process.roles": "broker"}, "one process is both"),
        ({"broker.id": 1, "node.id": 2}, "set one of them"),
    ],
)
def test_invalid_settings(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        BROKER_CONFIG.parse({"log.dir": "d"} | given)


def test_data_directory_is_required() -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs: got \[\], expected one directory"):
        BROKER_CONFIG.parse({})


def test_broker_settings_become_topic_settings() -> None:
    assert config().log_config().retention_ms == 604_800_000
    assert config(log_retention_minutes=5).log_config().retention_ms == 300_000
    nearest = config(log_retention_hours=1, log_retention_ms=7)
    assert nearest.log_config().retention_ms == 7
    assert config(log_retention_hours=-1).log_config().retention_ms == -1
    assert config(log_roll_hours=2).log_config().segment_ms == 7_200_000
    assert config(message_max_bytes=5).log_config().max_message_bytes == 5
