"""Parser and runner of the command line."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from kclient.common.errors import ConfigError, KafkaError
from kclient.common.version import VERSION

OUTPUT_CLOSED = 128 + signal.SIGPIPE
"""Exit status if the reader of the output closed the pipe, as with ``| head``."""

USAGE = 2
"""Exit status if an argument or an option is wrong."""


class _Command(NamedTuple):
    """Module and description of a command.

    Attributes:
        module: Module whose `add_options` adds the options and actions to a parser.
        summary: One line of the help.
    """

    module: str
    summary: str


_COMMANDS = {
    "broker": _Command("kclient.cli.broker", "run one broker"),
    "cluster": _Command(
        "kclient.cli.cluster.command", "start a cluster on this machine; describe any"
    ),
    "storage": _Command("kclient.cli.storage", "format the directory of a broker"),
    "demo": _Command(
        "kclient.cli.demo.command",
        "send 336,776 real flights through the companion broker and a consumer group",
    ),
    "dump-log": _Command("kclient.cli.dump_log", "print the contents of log files"),
    "topics": _Command("kclient.cli.topics", "list, describe, create, alter and delete topics"),
    "configs": _Command("kclient.cli.configs", "read and change settings of topics and brokers"),
    "records": _Command("kclient.cli.records.delete", "delete the oldest records of partitions"),
    "groups": _Command("kclient.cli.groups.command", "show, reset and delete consumer groups"),
    "transactions": _Command("kclient.cli.transactions", "show, find and end transactions"),
    "users": _Command("kclient.cli.users", "list, add, alter and delete SCRAM users"),
    "acls": _Command("kclient.cli.acls", "list, add and remove access rules"),
    "produce": _Command("kclient.cli.records.produce", "send lines or files as records"),
    "consume": _Command("kclient.cli.records.consume", "print the records of topics"),
    "doctor": _Command(
        "kclient.cli.doctor.command", "find out why a client cannot work with a cluster"
    ),
    "trace": _Command("kclient.cli.trace", "show the time of each stage of a record"),
    "completion": _Command("kclient.cli.completion", "print a script for completion in a shell"),
}
"""The commands, in the order of the help."""


def run(arguments: Sequence[str] | None) -> int:
    """Parse the arguments, run the command and return its exit status.

    Raises:
        KeyboardInterrupt: SIGINT ended the command, after it printed its counts.
    """
    _open_closed_streams()
    options = make_parser().parse_args(arguments)
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
    """Parser that reports unknown arguments with the usage of their command.

    Attributes:
        module: Module of the command if its options are not added yet, so that only the command
            that is run is imported; the broker's takes longer than a command of the admin client.
    """

    module: str | None = None

    def add_options(self) -> None:
        """Import the module of the command, and add its options."""
        if self.module is not None:
            module, self.module = self.module, None
            import_module(module).add_options(self)

    def parse_known_args(  # type: ignore[override]  # the overloads of typeshed
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.add_options()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def make_parser() -> argparse.ArgumentParser:
    """Return a parser that adds the options of a command when it parses its arguments."""
    return _make_parsers()[0]


def make_complete_parser() -> argparse.ArgumentParser:
    """Return a parser with the options of every command, for scripts and pages about them."""
    parser, commands = _make_parsers()
    for command in commands:
        command.add_options()
    return parser


def _make_parsers() -> tuple[argparse.ArgumentParser, list[_Parser]]:
    """Return the parser and those of the commands."""
    parser = _Parser(prog="kclient", description="Kafka in Python.")
    parser.add_argument("--version", action="version", version=f"kclient {VERSION}")
    parser.add_argument(
        "--log-level",
        default="WARNING",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="what to log to standard error (default: %(default)s)",
    )
    actions = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands = []
    for name, command in _COMMANDS.items():
        made = actions.add_parser(name, help=command.summary)
        made.module = command.module
        commands.append(made)
    return parser, commands
