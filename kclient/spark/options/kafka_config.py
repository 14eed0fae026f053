"""Conversion of ``kafka.*`` options to the configuration of a client."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.common.errors import ConfigError
from kclient.spark.options.secret_options import check_not_shown, resolved

# The key in an error of a client: its dotted name, or its Python keyword.
_NAMED = re.compile(r"([a-z_.]+): ")
_SUGGESTED = re.compile(r"(?<=did you mean )'([a-z_.]+)'")

Value = TypeVar("Value")

_PREFIX = "kafka."

_FORMAT = "keys and values are bytes here; convert the columns instead"
_RESERVED_BY_BOTH = {
    "interceptor.classes": "neither Java classes nor objects of this process exist in the workers",
}

RESERVED_BY_SOURCE: Mapping[str, str] = {
    **_RESERVED_BY_BOTH,
    "group.id": "the source joins no group; for lag monitoring use the option 'groupId'",
    "group.instance.id": "the source joins no group",
    "auto.offset.reset": "use 'startingOffsets' for the start and 'failOnDataLoss' for "
    "lost records",
    "enable.auto.commit": "positions are stored in Spark's checkpoint",
    "auto.commit.interval.ms": "positions are stored in Spark's checkpoint",
    "key.deserializer": _FORMAT,
    "value.deserializer": _FORMAT,
    "allow.auto.create.topics": "reading must not create a deleted topic",
}
"""Consumer keys that users may not set, each with the reason."""

RESERVED_BY_SINK: Mapping[str, str] = {
    **_RESERVED_BY_BOTH,
    "key.serializer": _FORMAT,
    "value.serializer": _FORMAT,
    "transactional.id": "each task would need an id of its own",
}
"""Producer keys that users may not set, each with the reason."""


def kafka_config(options: Mapping[str, str], reserved: Mapping[str, str]) -> dict[str, str]:
    """Return the ``kafka.*`` options without their prefix: a client's configuration.

    Args:
        options: Options as Spark passes them; other options are ignored.
        reserved: Keys that may not be set: `RESERVED_BY_SOURCE` or `RESERVED_BY_SINK`.

    Raises:
        ConfigError: ``kafka.bootstrap.servers`` is missing, or a key is set that is reserved or
            that Spark would show.
    """
    config: dict[str, str] = {}
    for given, value in options.items():
        name = given.lower()
        if not name.startswith(_PREFIX):
            continue
        key = name.removeprefix(_PREFIX)
        if key in reserved:
            raise ConfigError(f"{_PREFIX}{key}: got a value, expected none; {reserved[key]}")
        check_not_shown(key)
        config[key] = value
    if not config.get("bootstrap.servers"):
        raise ConfigError(
            "kafka.bootstrap.servers: got nothing, expected 'host:port[,host:port]' of one or more "
            "brokers"
        )
    return config


def checked_config(config: dict[str, str], parse: Callable[[Mapping[str, str]], object]) -> None:
    """Validate a client's configuration; errors name the keys as ``kafka.*`` options.

    Args:
        config: Configuration of a client, by dotted name, with references to secrets.
        parse: The client's own validation.

    Raises:
        ConfigError: A key is unknown or has a value of the wrong form.
    """
    try:
        parse(resolved(config))
    except ConfigError as error:
        message = _SUGGESTED.sub(lambda found: f"'{_as_option(found[1])}'", str(error))
        named = _NAMED.match(message)
        if named is None or _as_option(named[1]) not in {_PREFIX + key for key in config}:
            raise ConfigError(f"{_PREFIX}*: {message}") from None
        raise ConfigError(f"{_as_option(named[1])}: {message[named.end() :]}") from None


def _as_option(keyword: str) -> str:
    return _PREFIX + keyword.replace("_", ".")


def admin_config(consumer: Mapping[str, Value]) -> dict[str, Value | str]:
    """Return the entries of a consumer's configuration that an admin client has, too.

    Raises:
        ConfigError: A reference to a secret cannot be resolved.
    """
    return {key: value for key, value in resolved(consumer).items() if key in ADMIN_CONFIG.keys}
