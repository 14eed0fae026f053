"""Options that the client commands share."""

import argparse

from kclient.common.errors import ConfigError


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add where to connect and how."""
    parser.add_argument(
        "--bootstrap-server",
        "-b",
        default="127.0.0.1:9092",
        metavar="HOST:PORT[,…]",
        help="brokers to ask first (default: %(default)s)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any client option by its dotted name; may be repeated",
    )


def client_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the client's options by dotted name.

    Raises:
        ConfigError: A --config is not of the form key=value.
    """
    return {"bootstrap.servers": options.bootstrap_server, **key_values(options.config)}


def key_values(pairs: list[str]) -> dict[str, object]:
    """Read KEY=VALUE pairs.

    Raises:
        ConfigError: A pair has no '='.
    """
    parsed: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--config: got {pair!r:.80}, expected KEY=VALUE")
        parsed[key] = value
    return parsed
