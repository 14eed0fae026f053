"""Topic settings and the broker settings they fall back to."""

from kclient.broker.log.log_config import (
    BROKER_SYNONYMS,
    TOPIC_CONFIG_KEYS,
    TOPIC_CONFIG_TYPES,
    LogConfig,
)
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.broker_keys import BROKER_KEYS
from kclient.broker.server.server_key import ConfigType, ServerKey

_UNITS = {"hours": 3600 * 1000, "minutes": 60 * 1000}

_SEVERAL = {
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
}
"""Topic settings with more than one broker setting as a fallback, in order."""


def _server_keys(name: str) -> tuple[str, ...]:
    synonym = BROKER_SYNONYMS.get(name)
    keys = _SEVERAL.get(name, () if synonym is None else (synonym,))
    return tuple(key for key in keys if key in BROKER_KEYS)


TOPIC_KEYS: dict[str, ServerKey] = {
    row.name: ServerKey(
        row,
        ConfigType[TOPIC_CONFIG_TYPES.get(row.name, "LONG")],
        read_only=False,
        server_keys=_server_keys(row.name),
    )
    for row in TOPIC_CONFIG_KEYS
}
"""All topic settings by name."""


def to_topic_unit(server_key: str, value: object) -> object:
    """Return a broker setting in the unit of its topic setting, which is milliseconds."""
    unit = _UNITS.get(server_key.rpartition(".")[2])
    if unit is None or not isinstance(value, int) or value < 0:
        return value
    return value * unit


def default_log_config(config: BrokerConfig) -> LogConfig:
    """Return the configuration of a topic without overrides."""
    defaults: dict[str, object] = {}
    for name, key in TOPIC_KEYS.items():
        for server_key in key.server_keys:
            if config[server_key] is not None:
                defaults[name] = to_topic_unit(server_key, config[server_key])
                break
    return LogConfig.parse(defaults)
