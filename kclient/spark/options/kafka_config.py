"""From ``kafka.*`` options to the configuration of a client."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from kclient.admin.admin_config import ADMIN_CONFIG
from kclient.common.errors import ConfigError

# How the clients' errors name a key: as it was given, or as the keyword that it is in Python.
_NAMED = re.compile(r"([a-z_.]+): ")
_SUGGESTED = re.compile(r"(?<=did you mean )'([a-z_.]+)'")

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


def checked_config(config: dict[str, str], parse: Callable[[Mapping[str, str]], object]) -> None:
    """Refuse what a client would refuse, in the spelling that Spark's users know.

    Args:
        config: Configuration of a client, by dotted name.
        parse: Checks it.

    Raises:
        ConfigError: A key is unknown or has a value of the wrong form.
    """
    try:
        parse(config)
    except ConfigError as error:
        words = _SUGGESTED.sub(lambda found: f"'{_as_option(found[1])}'", str(error))
        named = _NAMED.match(words)
        if named is None or _as_option(named[1]) not in {_PREFIX + key for key in config}:
            raise ConfigError(f"{_PREFIX}*: {words}") from None
        raise ConfigError(f"{_as_option(named[1])}: {words[named.end() :]}") from None


def _as_option(keyword: str) -> str:
    return _PREFIX + keyword.replace("_", ".")


def admin_config(consumer: Mapping[str, Value]) -> dict[str, Value]:
    """Return what an admin client understands of a consumer's configuration, by dotted name."""
    return {key: value for key, value in consumer.items() if key in ADMIN_CONFIG.keys}
