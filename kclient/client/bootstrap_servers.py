"""Parser of ``bootstrap.servers``."""

from collections.abc import Sequence

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.common.runtime import Address

_NAME = "bootstrap_servers"
_EXPECTED = "'host:port'"
_DEFAULT_PORT = 9092
_MAX_PORT = 65535


def parse_bootstrap_servers(given: object) -> tuple[Address, ...]:
    """Return names and ports from ``"host:port,host:port"`` or a sequence of ``"host:port"``.

    An IPv6 address is in brackets: ``[::1]:9092``. Names are not looked up.

    Raises:
        ConfigError: An entry does not have this form.
    """
    if isinstance(given, str):
        entries: Sequence[object] = given.split(",")
    elif isinstance(given, Sequence) and not isinstance(given, bytes | bytearray | memoryview):
        entries = given
    else:
        hint = "; decode it first" if isinstance(given, bytes | bytearray) else ""
        raise ConfigError(
            f"{_NAME}: got {describe(given)}, expected 'host:port[,host:port]' or a list{hint}"
        )
    if not entries or entries == [""]:
        raise ConfigError(f"{_NAME}: got {describe(given)}, expected at least one {_EXPECTED}")
    parsed = [_parse(index, entry) for index, entry in enumerate(entries)]
    return tuple(dict.fromkeys(parsed))


def _parse(index: int, entry: object) -> Address:
    if not isinstance(entry, str):
        raise _error(index, entry, f"it is of type {type(entry).__name__}")
    text = entry.strip()
    if "://" in text:
        raise _error(index, entry, "remove the part up to '://'")
    if not text:
        raise _error(index, entry, "remove the extra comma")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise _error(index, entry, f"add ':{_DEFAULT_PORT}'?")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise _error(index, entry, f"put an IPv6 address in brackets: '[{text}]:{_DEFAULT_PORT}'")
    if not host or not all(_may_be_in_host(character) for character in host):
        raise _error(index, entry, f"{host!r} is not a host name")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= _MAX_PORT):
        raise _error(index, entry, f"the port is a number from 1 to {_MAX_PORT}")
    return host, int(port)


def _may_be_in_host(character: str) -> bool:
    return character.isalnum() or character in "-._:%"


def _error(index: int, entry: object, hint: str) -> ConfigError:
    return ConfigError(f"{_NAME}[{index}]: got {entry!r:.80}, expected {_EXPECTED}; {hint}")
