"""Topic settings and the broker settings they fall back to."""

from kclient.broker.log.log_config import TOPIC_CONFIG, LogConfig
from kclient.broker.server.broker_config import BrokerConfig

_UNITS = {"hours": 3600 * 1000, "minutes": 60 * 1000}


def to_topic_unit(server_key: str, value: object) -> object:
    """Return a broker setting in the unit of its topic setting, which is milliseconds."""
    unit = _UNITS.get(server_key.rpartition(".")[2])
    if unit is None or not isinstance(value, int) or value < 0:
        return value
    return value * unit


def default_log_config(config: BrokerConfig) -> LogConfig:
    """Return the configuration of a topic without overrides."""
    defaults: dict[str, object] = {}
    for name, key in TOPIC_CONFIG.keys.items():
        for server_key in key.server_keys:
            if config[server_key] is not None:
                defaults[name] = to_topic_unit(server_key, config[server_key])
                break
    return LogConfig.parse(defaults)
