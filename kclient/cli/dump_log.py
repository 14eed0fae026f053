"""``kclient dump-log``: show what the files of a log hold."""

import argparse
from pathlib import Path

from kclient.broker.log.dump_log import dump_log
from kclient.network.system_runtime import system_runtime


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient dump-log`` to the command line."""
    summary = "show what the files of a log hold"
    parser = commands.add_parser("dump-log", help=summary, description=__doc__)
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=Path,
        help="a file of a partition's directory: .log, .index, .timeindex, .snapshot, ...",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print each file, line by line."""
    files = system_runtime().files
    for path in options.files:
        for line in dump_log(files, path):
            print(line)
    return 0
