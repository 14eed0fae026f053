"""Options shared by the client commands."""

import argparse
import math
import os
from collections.abc import Callable

from kclient.common.arguments import LONGEST_S
from kclient.common.errors import ConfigError

SERVERS_VARIABLE = "KCLIENT_BOOTSTRAP_SERVERS"
"""Environment variable with the default of --bootstrap-server."""

_DEFAULT_SERVERS = "127.0.0.1:9092"
_DEFAULT_TIMEOUT_S = 10.0
_MAX_INT = 2**31 - 1


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add the address, the timeout and the client's options."""
    parser.add_argument(
        "--bootstrap-server",
        "-b",
        default=os.environ.get(SERVERS_VARIABLE) or _DEFAULT_SERVERS,
        metavar="HOST:PORT[,…]",
        help=f"brokers to connect to first (default: {SERVERS_VARIABLE}, or {_DEFAULT_SERVERS})",
    )
    parser.add_argument(
        "--timeout",
        type=seconds(LONGEST_S),
        default=_DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help="fail if the cluster does not respond within this time (default: %(default)g)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any client option by its dotted name; may be repeated",
    )


def client_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the options of a consumer or an admin client by dotted name.

    Raises:
        ConfigError: A --config is not of the form key=value.
    """
    return {
        "bootstrap.servers": options.bootstrap_server,
        "default.api.timeout.ms": _milliseconds(options),
        **key_values("--config", options.config),
    }


def producer_options(options: argparse.Namespace) -> dict[str, object]:
    """Return a producer's options by dotted name; see `client_options`."""
    timeout_ms = _milliseconds(options)
    given = key_values("--config", options.config)
    timeouts: dict[str, object] = {"max.block.ms": timeout_ms}
    own = {key.replace("_", ".") for key in given}
    if not own & {"delivery.timeout.ms", "request.timeout.ms", "linger.ms"}:
        # Leaves a record time for a second attempt.
        timeouts["request.timeout.ms"] = max(1, timeout_ms // 2)
        timeouts["delivery.timeout.ms"] = max(timeout_ms, timeout_ms // 2 + 10)
    return {"bootstrap.servers": options.bootstrap_server, **timeouts, **given}


def _milliseconds(options: argparse.Namespace) -> int:
    timeout: float = options.timeout
    return max(1, round(timeout * 1000))


def key_values(option: str, pairs: list[str]) -> dict[str, object]:
    """Parse the KEY=VALUE pairs of a command line option.

    Raises:
        ConfigError: A pair has no '='.
    """
    parsed: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{option}: got {pair!r:.80}, expected KEY=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed


def whole_number(low: int) -> Callable[[str], int]:
    """Return a parser of numbers from `low` to the maximum of an int32."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not low <= number <= _MAX_INT:
            raise argparse.ArgumentTypeError(
                f"got {text!r:.80}, expected a whole number from {low} to {_MAX_INT}"
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
