"""Settings of brokers that change while they run (Kafka: DynamicBrokerConfig, KIP-226).

A setting has the value of this broker, or else that of the cluster, or else the static one.

Differences from Apache Kafka: the numbers of threads, listeners and the settings of their security
are static.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kclient.broker.log.config_check import check_value
from kclient.broker.log.log_config import TOPIC_CONFIG, LogConfig
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import BROKER_RESOURCE, ConfigResource, MetadataImage
from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.common.broker_errors import InvalidConfigurationError, InvalidRequestError
from kclient.common.config_def import ConfigKey, ConfigType
from kclient.common.errors import ConfigError

_log = logging.getLogger(__name__)

_OF_TOPICS: Final = frozenset(
    key.server_keys[0] for key in TOPIC_CONFIG.keys.values() if key.server_keys
)
_OF_THIS_BROKER: Final = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
    }
)
HONOURED: Final = _OF_TOPICS | _OF_THIS_BROKER
"""Dynamic settings that take effect."""

_WITHOUT_EFFECT: Final = frozenset(
    {
        "background.threads",
        "follower.fetch.last.tiered.offset.enable",
        "group.consumer.assignment.interval.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "metric.reporters",
        "num.recovery.threads.per.data.dir",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
        "share.coordinator.cached.buffer.max.bytes",
    }
)
_PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
_THROTTLES: Final = {
    name: ConfigKey(name, ConfigType.LONG, str, "", None, "Accepted without effect.", low=0)
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
"""Dynamic settings that are not in server.properties."""

_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


def is_dynamic(name: str) -> bool:
    """Return whether a setting can be changed while the broker runs."""
    return name in HONOURED or name in _WITHOUT_EFFECT or name in _THROTTLES


def broker_key(name: str) -> ConfigKey | None:
    """Return a setting of brokers, None if it is not known."""
    return BROKER_CONFIG.keys.get(name) or BROKER_CONFIG.unused.get(name) or _THROTTLES.get(name)


def synonyms_of(name: str) -> tuple[str, ...]:
    """Return the settings that are listed as sources of one, in the order of precedence.

    As in Kafka, they are those of the retention time alone, though ``log.roll.hours`` and others
    have the same relation to another setting.
    """
    return _RETENTION if name in _RETENTION else (name,)


def check_broker_configs(given: Mapping[str, str]) -> None:
    """Check all dynamic settings of a broker, or of the cluster.

    Names that are not known are accepted, as Kafka does for its plug-ins.

    Raises:
        InvalidRequestError: One cannot be changed, or its value is invalid.
    """
    per_listener = [name for name in given if name in _PER_LISTENER]
    fixed = [
        name
        for name in given
        if name not in _PER_LISTENER and not is_dynamic(name) and _is_known(name)
    ]
    if fixed:
        raise InvalidRequestError(f"Cannot update these configs dynamically: {_listed(fixed)}")
    if per_listener:
        raise InvalidRequestError(
            "These security configs can be dynamically updated only per-listener using the listener"
            f" prefix: {_listed(per_listener)}"
        )
    for name, value in given.items():
        key = broker_key(name)
        if key is not None:
            _check(key, value)


def _is_known(name: str) -> bool:
    try:
        BROKER_CONFIG.key(name)
    except ConfigError:
        return False
    return "." in name


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(f'{name:.250}' for name in names)}]"


def _check(key: ConfigKey, value: str) -> None:
    try:
        check_value(key, value)
    except InvalidConfigurationError as error:
        raise InvalidRequestError(str(error)) from None


class DynamicBrokerConfig:
    """Settings of this broker in force.

    Attributes:
        config: All settings, replaced when one of them changes.
        log_defaults: Configuration of a topic without overrides.
    """

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self.config = static
        self.log_defaults: LogConfig = static.log_config()
        self._followers: list[Callable[[BrokerConfig], None]] = []

    def follow(self, follower: Callable[[BrokerConfig], None]) -> None:
        """Call a function with the settings now, and again when one of them changes.

        The thread that publishes the metadata calls it later.
        """
        self._followers.append(follower)
        follower(self.config)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> bool:
        """Apply a change of the metadata.

        Returns:
            Whether the defaults of topics have changed.
        """
        if not any(resource in delta.changed_configs for resource in self._resources()):
            return False
        self.config = self._static.with_values(**dict(self._values(image)))
        old, self.log_defaults = self.log_defaults, self.config.log_config()
        for follow in self._followers:
            follow(self.config)
        return self.log_defaults != old

    def _resources(self) -> tuple[ConfigResource, ConfigResource]:
        return (BROKER_RESOURCE, ""), (BROKER_RESOURCE, str(self._static.node_id))

    def _values(self, image: MetadataImage) -> Iterator[tuple[str, object]]:
        for resource in self._resources():
            for name, text in image.config(*resource).items():
                if name not in HONOURED:
                    continue
                key = BROKER_CONFIG.keys[name]
                try:
                    yield key.keyword, key.value_of(text, name)
                except ConfigError as error:
                    _log.warning("dynamic settings: %s", error)
