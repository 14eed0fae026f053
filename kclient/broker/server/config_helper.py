"""Descriptions of topic and broker settings, with the source of each value."""

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from kclient.broker.log.log_config import TOPIC_CONFIG
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.common.config_def import ConfigKey, ConfigType


class ConfigSource(IntEnum):
    """Source of a value (Kafka: ConfigEntry.ConfigSource)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigSynonym(NamedTuple):
    """One candidate for a setting's value, with its source."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """Effective value of a setting; its synonyms list all candidates, the first one wins."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    doc: str
    synonyms: list[ConfigSynonym]

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is hidden."""
        return self.type is ConfigType.PASSWORD


class ConfigHelper:
    """Effective topic and broker settings (Kafka: ConfigHelper).

    Attributes:
        static: Values set before this broker started, as text by dotted name.
    """

    def __init__(self, config: BrokerConfig, static: Mapping[str, str | None]) -> None:
        self._config = config
        self.static = {name: as_text(value) for name, value in config.given.items()} | dict(static)

    def topic_entries(self, image: MetadataImage, topic: str) -> list[ConfigEntry]:
        """Return every setting of a topic."""
        return self.entries_with(image.topic_config(topic))

    def entries_with(self, overrides: Mapping[str, str | None]) -> list[ConfigEntry]:
        """Return every setting of a topic with the given overrides."""
        return [self._topic_entry(key, overrides) for key in TOPIC_CONFIG.keys.values()]

    def broker_entries(self) -> list[ConfigEntry]:
        """Return every setting of this broker."""
        return [self._broker_entry(key) for key in BROKER_CONFIG.keys.values() if not key.refused]

    def _topic_entry(self, key: ConfigKey, overrides: Mapping[str, str | None]) -> ConfigEntry:
        synonyms = []
        if key.name in overrides:
            source = ConfigSource.TOPIC_CONFIG
            synonyms.append(ConfigSynonym(key.name, overrides[key.name], source))
        synonyms += self._server_synonyms(key)
        value, source = self._in_force(key, synonyms)
        return ConfigEntry(
            key.name,
            value,
            source,
            key.type,
            read_only=False,
            doc=key.doc,
            synonyms=synonyms,
        )

    def _server_synonyms(self, key: ConfigKey) -> Iterator[ConfigSynonym]:
        for name in key.server_keys:
            if self.static.get(name) is not None:
                yield ConfigSynonym(name, self.static[name], ConfigSource.STATIC_BROKER_CONFIG)
        for name in key.server_keys:
            default = BROKER_CONFIG.keys[name].default
            if default is not None:
                yield ConfigSynonym(name, as_text(default), ConfigSource.DEFAULT_CONFIG)

    def _in_force(
        self, key: ConfigKey, synonyms: list[ConfigSynonym]
    ) -> tuple[str | None, ConfigSource]:
        if not synonyms:
            return as_text(key.default), ConfigSource.DEFAULT_CONFIG
        name, value, source = synonyms[0]
        if source is ConfigSource.TOPIC_CONFIG:
            return value, source
        return as_text(self._config.topic_value(name)), source

    def _broker_entry(self, key: ConfigKey) -> ConfigEntry:
        default = as_text(key.default)
        synonyms = []
        if key.name in self.static:
            source = ConfigSource.STATIC_BROKER_CONFIG
            synonyms.append(ConfigSynonym(key.name, self.static[key.name], source))
        if default is not None:
            synonyms.append(ConfigSynonym(key.name, default, ConfigSource.DEFAULT_CONFIG))
        value = self.static.get(key.name, default)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        if key.secret:
            value = None
            synonyms = [each._replace(value=None) for each in synonyms]
        return ConfigEntry(
            key.name, value, source, key.type, read_only=True, doc=key.doc, synonyms=synonyms
        )


def only(entries: list[ConfigEntry], names: Collection[str] | None) -> list[ConfigEntry]:
    """Return the entries of the given names; None or an empty collection returns all."""
    return [entry for entry in entries if entry.name in names] if names else entries


def as_text(value: object) -> str | None:
    """Return a setting's value as Kafka prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value)
    return str(value)
