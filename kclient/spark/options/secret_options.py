"""Secrets of clients: as options of Spark, and by reference to a variable or a file.

Spark shows options in query plans, except those whose name matches ``spark.redaction.regex``.
Options with references travel to the workers as they are, and are resolved where a client is
created.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.common.errors import ConfigError

Value = TypeVar("Value")

_MAX_BYTES = 1024 * 1024
_REDACTED = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
"""Default of spark.redaction.regex."""

SECRETS = tuple(
    sorted(key.name for key in ADMIN_CONFIG.keys.values() if key.secret and not key.refused)
)
"""Keys of clients whose values are secret."""

SHOWN_SECRETS = tuple(name for name in SECRETS if not _REDACTED.search(name))
"""Keys among them whose values Spark would show."""


def check_not_shown(key: str) -> None:
    """Check that Spark does not show the value of an option.

    Raises:
        ConfigError: It would.
    """
    if key in SHOWN_SECRETS:
        raise ConfigError(
            f"kafka.{key}: got a secret value, expected kafka.{key}.file or kafka.{key}.env; Spark "
            "shows the value of this option in query plans"
        )


def resolved(config: Mapping[str, Value]) -> dict[str, Value | str]:
    """Return a client's configuration with the secrets in place of the references to them.

    Args:
        config: Configuration by dotted name. ``KEY.env`` names a variable of the environment, and
            ``KEY.file`` a file with the value.

    Raises:
        ConfigError: The variable or the file does not exist in this process, or a secret is given
            twice. The text has no value.
    """
    found: dict[str, Value | str] = dict(config)
    for key in SECRETS:
        given = [name for name in (key, f"{key}.env", f"{key}.file") if name in config]
        if len(given) > 1:
            raise ConfigError(f"{given[1]}: got it with {given[0]}, expected one of them")
        if given == [f"{key}.env"]:
            found[key] = _variable(given[0], str(found.pop(given[0])))
        elif given == [f"{key}.file"]:
            found[key] = _content(given[0], str(found.pop(given[0])))
    return found


def _variable(option: str, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(
            f"{option}: got {name!r:.200}, expected a variable of the environment of the driver and"
            " of each worker"
        )
    return value


def _content(option: str, path: str) -> str:
    expected = "a readable file on the driver and on each worker"
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) <= _MAX_BYTES:
            return data.decode().rstrip("\r\n")
        problem = f"it has more than {_MAX_BYTES} bytes"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        problem = "it is not in UTF-8"
    raise ConfigError(f"{option}: got {path!r:.200}, expected {expected}; {problem}")
