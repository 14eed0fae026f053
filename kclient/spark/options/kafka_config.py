"""From ``kafka.*`` options to the configuration of a client."""

from collections.abc import Mapping
from typing import TypeVar

from kclient.admin.admin_config import ADMIN_CONFIG
from kclient.common.errors import ConfigError

Value = TypeVar("Value")

_PREFIX = "kafka."

_FORMAT = "keys and values are bytes here; convert the columns instead"
_SETTINGS_OF_BOTH = {
    "interceptor.classes": "objects of Java or of this process do not reach the workers",
}

SOURCE_OWNED: Mapping[str, str] = {
    **_SETTINGS_OF_BOTH,
    "group.id": "the source joins no group; commits to watch the lag by: option 'groupId'",
    "group.instance.id": "the source joins no group",
    "auto.offset.reset": "where to start is said by 'startingOffsets'; later loss by "
    "'failOnDataLoss'",
    "enable.auto.commit": "positions are kept in Spark's checkpoint",
    "auto.commit.interval.ms": "positions are kept in Spark's checkpoint",
    "key.deserializer": _FORMAT,
    "value.deserializer": _FORMAT,
    "allow.auto.create.topics": "reading must not create a topic that was deleted",
}
"""Keys of consumers that users may not set, each with the reason."""

SINK_OWNED: Mapping[str, str] = {
    **_SETTINGS_OF_BOTH,
    "key.serializer": _FORMAT,
    "value.serializer": _FORMAT,
    "transactional.id": "each task would need an id of its own",
}
"""Keys of producers that users may not set, each with the reason."""


def kafka_config(options: Mapping[str, str], owned: Mapping[str, str]) -> dict[str, str]:
    """Return what the options say after ``kafka.``, under the dotted names of Kafka's clients.

    Args:
        options: Options as Spark hands them over; others are passed by.
        owned: Keys that may not be set: `SOURCE_OWNED` or `SINK_OWNED`.

    Raises:
        ConfigError: The brokers' addresses are missing, or a key is not the user's to set.
    """
    config: dict[str, str] = {}
    for given, value in options.items():
        name = given.lower()
        if not name.startswith(_PREFIX):
            continue
        key = name.removeprefix(_PREFIX)
        if key in owned:
            raise ConfigError(f"{_PREFIX}{key}: got a value, expected none; {owned[key]}")
        config[key] = value
    if not config.get("bootstrap.servers"):
        raise ConfigError(
            "kafka.bootstrap.servers: got nothing, expected 'host:port[,host:port]' of one broker "
            "or more"
        )
    return config


def admin_config(consumer: Mapping[str, Value]) -> dict[str, Value]:
    """Return what an admin client understands of a consumer's configuration, by dotted name."""
    return {key: value for key, value in consumer.items() if key in ADMIN_CONFIG.keys}
