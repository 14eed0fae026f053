"""Configuration of a broker from a server.properties file."""

from collections.abc import Mapping
from pathlib import Path

from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.common.errors import ConfigError
from kclient.common.java_properties import Property, read_properties


def load_server_properties(path: Path, overrides: Mapping[str, object]) -> BrokerConfig:
    """Return the configuration of a file, with other values of some keys.

    Raises:
        ConfigError: A key is unknown, or a value is invalid; with the file and the line.
        OSError: The file cannot be read.
    """
    overridden = {name.replace("_", ".") for name in overrides}
    properties = {
        name: each for name, each in read_properties(path).items() if name not in overridden
    }
    for name, each in properties.items():
        try:
            BROKER_CONFIG.key(name).value_of(each.value.strip(), name)
        except ConfigError as error:
            raise ConfigError(f"{path}:{each.line}: {error}") from None
    values = {name: each.value.strip() for name, each in properties.items()}
    try:
        return BROKER_CONFIG.parse({**values, **overrides})
    except ConfigError as error:
        raise ConfigError(f"{_place(path, properties, str(error))}{error}") from None


def _place(path: Path, properties: Mapping[str, Property], problem: str) -> str:
    """Return the place of the key that an error begins with, if the file has it."""
    found = properties.get(problem.partition(":")[0])
    return "" if found is None else f"{path}:{found.line}: "
