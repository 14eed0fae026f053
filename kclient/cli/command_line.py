"""Parser and runner of the command line."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from kclient.common.errors import ConfigError, KafkaError
from kclient.common.version import VERSION

OUTPUT_CLOSED = 128 + signal.SIGPIPE
"""Exit status if the reader of the output closed the pipe, as with ``| head``."""

USAGE = 2
"""Exit status if an argument or an option is wrong."""

_COMMANDS = {
    "broker": "kclient.cli.broker",
    "cluster": "kclient.cli.cluster.command",
    "storage": "kclient.cli.storage",
    "demo": "kclient.cli.demo.command",
    "dump-log": "kclient.cli.dump_log",
    "topics": "kclient.cli.topics",
    "configs": "kclient.cli.configs",
    "records": "kclient.cli.records.delete",
    "groups": "kclient.cli.groups.command",
    "transactions": "kclient.cli.transactions",
    "users": "kclient.cli.users",
    "acls": "kclient.cli.acls",
    "produce": "kclient.cli.records.produce",
    "consume": "kclient.cli.records.consume",
    "doctor": "kclient.cli.doctor.command",
    "trace": "kclient.cli.trace",
    "completion": "kclient.cli.completion",
}
"""Modules of the commands, in the order of the help."""


def run(arguments: Sequence[str] | None) -> int:
    """Parse the arguments, run the command and return its exit status.

    Raises:
        KeyboardInterrupt: SIGINT ended the command, after it printed its counts.
    """
    _open_closed_streams()
    given = sys.argv[1:] if arguments is None else arguments
    options = make_parser(given).parse_args(given)
    logging.basicConfig(
        level=options.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Discards the buffered output, which could not be written at interpreter exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except (KafkaError, OSError) as error:
        print(f"kclient {options.command}: {error}", file=sys.stderr)
        # An address in use is no wrong argument, although the error names the option.
        is_usage = isinstance(error, ConfigError) and not isinstance(error.__cause__, OSError)
        return USAGE if is_usage else 1
    return status


def _open_closed_streams() -> None:
    """Discard what is written to a standard stream that is closed, as with ``>&-``.

    In this order the devices get the numbers 1 and 2, which no connection may have.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the end of the process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


class _Parser(argparse.ArgumentParser):
    """Parser that reports unknown arguments with the usage of their command."""

    def parse_known_args(  # type: ignore[override]  # the overloads of typeshed
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def make_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return a parser for the arguments.

    If they name a command, only its module is imported; the broker's takes longer than a command
    of the admin client. Otherwise the parser knows all commands.
    """
    parser = _Parser(prog="kclient", description="Kafka in Python.")
    parser.add_argument("--version", action="version", version=f"kclient {VERSION}")
    parser.add_argument(
        "--log-level",
        default="WARNING",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="what to log to standard error (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _commands_for(arguments):
        import_module(_COMMANDS[name]).add_parser(commands)
    return parser


def _commands_for(arguments: Sequence[str]) -> Iterable[str]:
    command = arguments[2:3] if list(arguments[:1]) == ["--log-level"] else arguments[:1]
    return command if command and command[0] in _COMMANDS else _COMMANDS
