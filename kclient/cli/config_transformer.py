"""References in values of configuration files (Kafka: ConfigTransformer, KIP-297, KIP-887)."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kclient.common.errors import ConfigError
from kclient.common.java_properties import Property, read_properties

_REFERENCE = re.compile(r"\$\{([^${}:]+):([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_KINDS = {f"{_PACKAGE}EnvVarConfigProvider": "env", f"{_PACKAGE}FileConfigProvider": "file"}

_FORMS = {"env": "${env:NAME}", "file": "${file:/path:key}"}


class ConfigTransformer:
    """Replaces the references of one configuration file by the values that they name.

    A value that a reference names is not searched for references. A reference to an unknown
    provider is left as it is, as in Java.

    Args:
        path: The file, for errors.
        properties: Its values.

    Raises:
        ConfigError: ``config.providers`` names an unknown class.
    """

    def __init__(self, path: Path, properties: Mapping[str, Property]) -> None:
        self._path = path
        self._properties = properties
        self._files: dict[str, dict[str, Property]] = {}
        self._kinds = {"env": "env", "file": "file", **self._configured_kinds()}
        self._readers: dict[str, Callable[[str], str]] = {
            "env": _read_variable,
            "file": self._read_key,
        }

    def transform(self) -> dict[str, Property]:
        """Return the values without references, and without ``config.providers``.

        Raises:
            ConfigError: A variable, a file or a key does not exist. The text has its name and
                place, but no value.
        """
        return {
            name: Property(self._resolved(name, each), each.line)
            for name, each in self._properties.items()
            if not _is_of_providers(name)
        }

    def _configured_kinds(self) -> dict[str, str]:
        names = [name for name in self._properties if _is_of_providers(name)]
        if not names:
            return {}
        listed = self._properties.get(_PROVIDERS, Property("", 0)).value.split(",")
        classes = {f"{_PROVIDERS}.{each.strip()}.class": each.strip() for each in listed}
        kinds: dict[str, str] = {}
        for name in names:
            value, line = self._properties[name]
            if name in classes and value.strip() in _KINDS:
                kinds[classes[name]] = _KINDS[value.strip()]
            elif name in classes:
                raise ConfigError(
                    f"{self._path}:{line}: {name}: got {value!r:.120}, expected one of"
                    f" {', '.join(_KINDS)}"
                )
            elif name != _PROVIDERS:
                raise ConfigError(
                    f"{self._path}:{line}: {name:.120}: got a value, expected none; only the class"
                    f" of a provider in {_PROVIDERS} can be set"
                )
        return kinds

    def _resolved(self, name: str, given: Property) -> str:
        def value_of(match: re.Match[str]) -> str:
            kind = self._kinds.get(match[1])
            if kind is None:
                return match[0]
            try:
                return self._readers[kind](match[2])
            except ConfigError as problem:
                raise ConfigError(f"{self._path}:{given.line}: {name}: {problem}") from None

        return _REFERENCE.sub(value_of, given.value)

    def _read_key(self, reference: str) -> str:
        path, _, key = reference.partition(":")
        if not path or not key:
            raise _malformed("file")
        if path not in self._files:
            try:
                self._files[path] = read_properties(Path(path))
            except OSError as problem:
                raise ConfigError(
                    f"got ${{file:{reference:.200}}}, expected a readable file; {problem.strerror}"
                ) from None
        found = self._files[path].get(key)
        if found is None:
            raise ConfigError(f"got ${{file:{reference:.200}}}, expected a key of the file")
        return found.value


def has_references(value: str) -> bool:
    """Return whether a value has the form of a reference."""
    return _REFERENCE.search(value) is not None


def _is_of_providers(name: str) -> bool:
    return name == _PROVIDERS or name.startswith(f"{_PROVIDERS}.")


def _read_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise _malformed("env")
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(f"got ${{env:{name:.200}}}, expected a variable of the environment")
    return value


def _malformed(kind: str) -> ConfigError:
    # Without the text: a password may contain the two characters that begin a reference.
    return ConfigError(f"got a reference of another form, expected {_FORMS[kind]}")
