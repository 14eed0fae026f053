"""The ``kclient`` command: one module a subcommand."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence

from kclient.cli import broker, consume, dump_log, groups, produce, topics
from kclient.cli.demo import command as demo
from kclient.common.errors import KafkaError

_COMMANDS: tuple[Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None], ...] = (
    broker.add_parser,
    demo.add_parser,
    dump_log.add_parser,
    topics.add_parser,
    groups.add_parser,
    produce.add_parser,
    consume.add_parser,
)
"""Each adds its parser, with its function as the default of `run`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog="kclient", description="Kafka in Python.")
    parser.add_argument(
        "--log-level",
        default="WARNING",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        help="what to log to standard error (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add_parser in _COMMANDS:
        add_parser(commands)
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=options.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        status: int = options.run(options)
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KafkaError, OSError) as error:
        print(f"kclient {options.command}: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
