"""Configuration files of clients, in the form of Java's properties files."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from kclient.cli.config_transformer import ConfigTransformer, has_references
from kclient.cli.secret_input import warn_of_readers
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.common.java_properties import Property, read_properties
from kclient.network.security_config import SecurityConfig

_BLANK = "".join(map(chr, range(33)))
"""Characters that Java removes at the ends of a value."""

_CLIENTS = (
    ("kclient.admin.admin_core", "ADMIN_CONFIG"),
    ("kclient.consumer.consumer_config", "CONSUMER_CONFIG"),
    ("kclient.producer.producer_config", "PRODUCER_CONFIG"),
)


class ConfigFile(NamedTuple):
    """Configuration file, which several kinds of clients may share.

    Attributes:
        path: The file.
        properties: Its values by key, without references.
    """

    path: Path
    properties: Mapping[str, Property]

    def options_for(self, definition: ConfigDef[Any]) -> dict[str, object]:
        """Return the options of one kind of client by dotted name.

        Raises:
            ConfigError: A value is invalid, or a key is that of no client; with file and line.
        """
        options: dict[str, object] = {}
        for name, (text, line) in self.properties.items():
            if not definition.has_key(name) and _is_of_another_client(name):
                continue
            value = text.strip(_BLANK)
            try:
                key = definition.key(name)
                key.value_of(value, name)
            except ConfigError as error:
                raise ConfigError(f"{self.path}:{line}: {error}") from None
            if key.name in options:
                raise ConfigError(f"{self.path}:{line}: got {key.name} twice, expected it once")
            options[key.name] = value
        return options


def load_config_file(path: Path) -> ConfigFile:
    """Read a file, and warn if its secrets can be read by all users.

    Raises:
        ConfigError: The file is too large, is no properties file, or has an invalid reference.
        OSError: The file cannot be read.
    """
    given = read_properties(path)
    secrets = {key.name for key in SecurityConfig.CONFIG_KEYS.values() if key.secret}
    shown = [
        name for name, line in given.items() if name in secrets and not has_references(line.value)
    ]
    if shown:
        warn_of_readers(path, ", ".join(shown))
    return ConfigFile(path, ConfigTransformer(path, given).transform())


def _is_of_another_client(name: str) -> bool:
    # Imported with the first key that the client of the command does not have.
    definitions = [getattr(import_module(module), attribute) for module, attribute in _CLIENTS]
    return any(definition.has_key(name) for definition in definitions)
