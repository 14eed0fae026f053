"""Options shared by the client commands."""

import argparse
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kclient.cli.config_file import ConfigFile, load_config_file
from kclient.common.arguments import LONGEST_S
from kclient.common.config_def import ConfigDef, merged
from kclient.common.errors import ConfigError

SERVERS_VARIABLE = "KCLIENT_BOOTSTRAP_SERVERS"
"""Environment variable with the default of --bootstrap-server."""

FILE_VARIABLE = "KCLIENT_CONFIG"
"""Environment variable with the default of --config-file."""

_DEFAULT_SERVERS = "127.0.0.1:9092"
_CONTROLLERS = "bootstrap.controllers"
_KEY = re.compile(r"[a-z._]{0,60}")
_DEFAULT_TIMEOUT_S = 10.0
_MAX_INT = 2**31 - 1


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add the address, the timeout and the client's options."""
    parser.add_argument(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        help="brokers to connect to first (default: that of --config-file, "
        f"{SERVERS_VARIABLE}, or {_DEFAULT_SERVERS})",
    )
    parser.add_argument(
        "--timeout",
        type=seconds(LONGEST_S),
        metavar="SECONDS",
        help="fail if the cluster does not respond within this time "
        f"(default: {_DEFAULT_TIMEOUT_S:g})",
    )
    parser.add_argument(
        "--config",
        "-X",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any client option by its dotted name; may be repeated",
    )
    add_config_file_option(parser, f"(default: {FILE_VARIABLE})")


def add_config_file_option(parser: argparse.ArgumentParser, remark: str) -> None:
    """Add the option of the configuration file."""
    parser.add_argument(
        "--config-file",
        type=Path,
        metavar="FILE",
        help="client options in a Java properties file; options of the command line override it "
        f"{remark}",
    )


def config_file(options: argparse.Namespace) -> ConfigFile | None:
    """Read the configuration file of a command; return None if there is none.

    Raises:
        ConfigError: The file is no properties file.
        OSError: It cannot be read.
    """
    path: Path | None = options.config_file
    if path is None and os.environ.get(FILE_VARIABLE):
        path = Path(os.environ[FILE_VARIABLE])
    return None if path is None else load_config_file(path)


def client_options(
    options: argparse.Namespace,
    definition: ConfigDef[Any],
    own: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the options of a consumer or an admin client by dotted name.

    Args:
        options: The parsed command line.
        definition: Keys of the client.
        own: Options of the command itself, which override those of the configuration file.

    Raises:
        ConfigError: A --config is not of the form key=value, or the file is invalid.
        OSError: The file cannot be read.
    """
    timeout = {"default.api.timeout.ms": _milliseconds(options)}
    given = _overridden(
        _options_of_file(options, definition),
        _given_servers(options) | (timeout if options.timeout is not None else {}),
        own or {},
        key_values("--config", options.config),
    )
    servers = {} if _CONTROLLERS in _dotted(given) else _default_servers()
    return merged(_overridden(servers | timeout, given), {})  # errors name keys with dots


def producer_options(options: argparse.Namespace, definition: ConfigDef[Any]) -> dict[str, object]:
    """Return a producer's options by dotted name; see `client_options`."""
    timeout_ms = _milliseconds(options)
    timeout = {"max.block.ms": timeout_ms}
    own = _overridden(
        _options_of_file(options, definition),
        _given_servers(options) | (timeout if options.timeout is not None else {}),
        key_values("--config", options.config),
    )
    attempts: dict[str, object] = {}
    if not _dotted(own) & {"delivery.timeout.ms", "request.timeout.ms", "linger.ms"}:
        # Leaves a record time for a second attempt.
        attempts["request.timeout.ms"] = max(1, timeout_ms // 2)
        attempts["delivery.timeout.ms"] = max(timeout_ms, timeout_ms // 2 + 10)
    return merged(_overridden(_default_servers() | timeout | attempts, own), {})


def _default_servers() -> dict[str, object]:
    return {"bootstrap.servers": os.environ.get(SERVERS_VARIABLE) or _DEFAULT_SERVERS}


def _given_servers(options: argparse.Namespace) -> dict[str, object]:
    given = options.bootstrap_server
    return {} if given is None else {"bootstrap.servers": given}


def _options_of_file(options: argparse.Namespace, definition: ConfigDef[Any]) -> dict[str, object]:
    file = config_file(options)
    return {} if file is None else file.options_for(definition)


def _overridden(*layers: Mapping[str, object]) -> dict[str, object]:
    """Merge options; a later layer overrides a key of an earlier one in either spelling."""
    result: dict[str, object] = {}
    for layer in layers:
        names = _dotted(layer)
        kept = {name: value for name, value in result.items() if not _dotted([name]) & names}
        result = {**kept, **layer}
    return result


def _dotted(names: Iterable[str]) -> set[str]:
    return {name.replace("_", ".") for name in names}


def timeout_seconds(options: argparse.Namespace) -> float:
    """Return the time that a command waits for the cluster."""
    timeout: float | None = options.timeout
    return _DEFAULT_TIMEOUT_S if timeout is None else timeout


def _milliseconds(options: argparse.Namespace) -> int:
    return max(1, round(timeout_seconds(options) * 1000))


def key_values(option: str, pairs: list[str]) -> dict[str, object]:
    """Parse the KEY=VALUE pairs of a command line option.

    Raises:
        ConfigError: A pair has no '='.
    """
    parsed: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            # Other text may have the value, and be a secret.
            shown = repr(pair) if _KEY.fullmatch(pair) else "no '='"
            raise ConfigError(f"{option}: got {shown}, expected KEY=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed


def whole_number(low: int, high: int = _MAX_INT) -> Callable[[str], int]:
    """Return a parser of numbers from `low` to `high`, by default the maximum of an int32."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise argparse.ArgumentTypeError(
                f"got {text!r:.80}, expected a whole number from {low} to {high}"
            )
        return number

    return parse


def seconds(most: float) -> Callable[[str], float]:
    """Return a parser of seconds, more than 0 and at most `most`."""
    return positive_number(most, "seconds")


def positive_number(most: float, what: str) -> Callable[[str], float]:
    """Return a parser of a number of `what`, more than 0 and at most `most`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(
                f"got {text!r:.80}, expected {what}, more than 0 and at most {most:g}"
            )
        return value

    return parse
