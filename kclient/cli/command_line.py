"""Parser and runner of the command line."""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence

from kclient.cli import broker, consume, dump_log, groups, produce, topics
from kclient.cli.demo import command as demo
from kclient.common.errors import KafkaError
from kclient.common.version import VERSION

OUTPUT_CLOSED = 128 + signal.SIGPIPE
"""Exit status if the reader of the output closed the pipe, as with ``| head``."""

_COMMANDS: tuple[Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None], ...] = (
    broker.add_parser,
    demo.add_parser,
    dump_log.add_parser,
    topics.add_parser,
    groups.add_parser,
    produce.add_parser,
    consume.add_parser,
)
"""Functions that add a command's parser, with its function as the default of `run`."""


def run(arguments: Sequence[str] | None) -> int:
    """Parse the arguments, run the command and return its exit status.

    Raises:
        KeyboardInterrupt: SIGINT ended the command, after it printed its counts.
    """
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
        return 1
    return status


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="kclient", description="Kafka in Python.")
    parser.add_argument("--version", action="version", version=f"kclient {VERSION}")
    parser.add_argument(
        "--log-level",
        default="WARNING",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="what to log to standard error (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add_parser in _COMMANDS:
        add_parser(commands)
    return parser
