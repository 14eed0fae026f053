"""Descriptions of settings, with the source of each value."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import dropwhile
from typing import NamedTuple

from kclient.broker.log.config_check import list_items
from kclient.broker.log.log_config import TOPIC_CONFIG
from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    ConfigResource,
    MetadataImage,
)
from kclient.broker.metadata.resource_configs import CLIENT_METRICS_KEYS, GROUP_KEYS
from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.broker.server.dynamic_broker_config import broker_key, is_dynamic, synonyms_of
from kclient.common.config_def import ConfigKey, ConfigType
from kclient.common.config_source import ConfigSource

_CLUSTER: ConfigResource = (BROKER_RESOURCE, "")


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
    is_sensitive: bool
    doc: str
    synonyms: list[ConfigSynonym]


class ConfigHelper:
    """Effective settings of topics, brokers, groups and client metrics (Kafka: ConfigHelper).

    Attributes:
        static: Values set before this broker started, as text by dotted name.
    """

    def __init__(self, config: BrokerConfig, static: Mapping[str, str | None]) -> None:
        self._defaults = config.log_config()
        self._own: ConfigResource = (BROKER_RESOURCE, str(config.node_id))
        self.static = {name: as_text(value) for name, value in config.given.items()} | dict(static)

    def topic_entries(self, image: MetadataImage, topic: str) -> list[ConfigEntry]:
        """Return every setting of a topic."""
        return self.entries_with(image, image.topic_config(topic))

    def entries_with(
        self, image: MetadataImage, overrides: Mapping[str, str | None]
    ) -> list[ConfigEntry]:
        """Return every setting of a topic with the given overrides."""
        return [self._topic_entry(image, key, overrides) for key in TOPIC_CONFIG.keys.values()]

    def broker_entries(self, image: MetadataImage) -> list[ConfigEntry]:
        """Return every setting of this broker."""
        keys = [key for key in BROKER_CONFIG.keys.values() if not key.refused]
        known = {key.name for key in keys}
        dynamic = dict.fromkeys([*image.config(*self._own), *image.config(*_CLUSTER)])
        keys += [_key_of(name) for name in dynamic if name not in known]
        return [self._broker_entry(image, key) for key in keys]

    def cluster_entries(self, image: MetadataImage) -> list[ConfigEntry]:
        """Return the dynamic settings of the cluster, which brokers may override."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        entries = []
        for name, text in image.config(*_CLUSTER).items():
            key = _key_of(name)
            value = None if _is_hidden(key) else _as_kept(key, text)
            synonyms = [ConfigSynonym(name, value, source)]
            entries.append(_entry(key, synonyms, read_only=not is_dynamic(name)))
        return entries

    def _topic_entry(
        self, image: MetadataImage, key: ConfigKey, overrides: Mapping[str, str | None]
    ) -> ConfigEntry:
        synonyms = []
        if key.name in overrides:
            value = _as_kept(key, overrides[key.name])
            synonyms.append(ConfigSynonym(key.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
        if key.server_keys:
            synonyms += self._server_synonyms(image, synonyms_of(key.server_keys[0]))
        entry = _entry(key, synonyms, read_only=False)
        if entry.source in (ConfigSource.STATIC_BROKER_CONFIG, ConfigSource.DEFAULT_CONFIG):
            # In the unit of the topic's setting.
            entry = entry._replace(value=as_text(getattr(self._defaults, key.keyword)))
        return entry

    def _server_synonyms(
        self, image: MetadataImage, names: tuple[str, ...]
    ) -> Iterator[ConfigSynonym]:
        """Yield the values of settings of brokers, in the order of precedence."""
        for resource, source in (
            (self._own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (_CLUSTER, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ):
            values = image.config(*resource)
            for name in names:
                if name in values:
                    yield ConfigSynonym(name, _as_kept(_key_of(name), values[name]), source)
        for name in names:
            if self.static.get(name) is not None:
                yield ConfigSynonym(name, self.static[name], ConfigSource.STATIC_BROKER_CONFIG)
        for name in names:
            default = _key_of(name).default
            if default is not None:
                yield ConfigSynonym(name, as_text(default), ConfigSource.DEFAULT_CONFIG)

    def _broker_entry(self, image: MetadataImage, key: ConfigKey) -> ConfigEntry:
        found = self._server_synonyms(image, synonyms_of(key.name))
        # A value of another unit, such as hours, is below that of the setting itself.
        synonyms = list(dropwhile(lambda each: each.name != key.name, found))
        if _is_hidden(key):
            synonyms = [each._replace(value=None) for each in synonyms]
        return _entry(key, synonyms, read_only=not is_dynamic(key.name))


def group_entries(image: MetadataImage, group: str) -> list[ConfigEntry]:
    """Return every setting of a group."""
    values = image.config(GROUP_RESOURCE, group)
    entries = []
    for name, row in GROUP_KEYS.items():
        synonyms = []
        if name in values:
            kept = _as_kept(row.key, values[name])
            synonyms.append(ConfigSynonym(name, kept, ConfigSource.DYNAMIC_GROUP_CONFIG))
        default = ConfigSynonym(
            row.server_key or name, as_text(row.key.default), ConfigSource.DEFAULT_CONFIG
        )
        entries.append(_entry(row.key, [*synonyms, default], read_only=False))
    return entries


def client_metrics_entries(image: MetadataImage, name: str) -> list[ConfigEntry]:
    """Return every setting of client metrics."""
    values = image.config(CLIENT_METRICS_RESOURCE, name)
    return [
        _entry(
            key,
            [
                ConfigSynonym(
                    key.name, values[key.name], ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
                )
                for _ in (key.name,)
                if key.name in values
            ],
            read_only=False,
        )
        for key in CLIENT_METRICS_KEYS.values()
    ]


def logger_entries(levels: Iterable[tuple[str, str]]) -> list[ConfigEntry]:
    """Return the levels of loggers, given with their names."""
    return [
        ConfigEntry(
            name,
            level,
            ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            ConfigType.UNKNOWN,
            read_only=False,
            is_sensitive=False,
            doc="",
            synonyms=[],
        )
        for name, level in levels
    ]


def _entry(key: ConfigKey, synonyms: list[ConfigSynonym], *, read_only: bool) -> ConfigEntry:
    """Return an entry with the value of its first synonym, or the default."""
    value, source = as_text(key.default), ConfigSource.DEFAULT_CONFIG
    if synonyms:
        _, value, source = synonyms[0]
    return ConfigEntry(
        key.name,
        value,
        source,
        key.type,
        read_only=read_only,
        is_sensitive=_is_hidden(key),
        doc=key.doc,
        synonyms=synonyms,
    )


def _key_of(name: str) -> ConfigKey:
    """Return a setting of brokers; one of an unknown name may be a secret."""
    return broker_key(name) or ConfigKey(name, ConfigType.UNKNOWN, str, "", None, "")


def _is_hidden(key: ConfigKey) -> bool:
    return key.secret or key.type in (ConfigType.UNKNOWN, ConfigType.PASSWORD)


def _as_kept(key: ConfigKey, text: str | None) -> str | None:
    """Return a value without the blanks that its type does not keep."""
    if text is None:
        return None
    if key.type is ConfigType.LIST:
        return ",".join(dict.fromkeys(list_items(text)))
    if key.type in (ConfigType.INT, ConfigType.LONG, ConfigType.SHORT):
        number = text.strip()
        return str(int(number)) if number.removeprefix("+").isdigit() else number
    if key.type is ConfigType.BOOLEAN:
        return text.strip().lower()
    return text.strip()


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
