"""``kclient produce``: each line of standard input becomes a record."""

import argparse
import sys

from kclient.cli.common_options import add_connection_options, client_options
from kclient.producer.producer import Producer


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient produce`` to the command line."""
    parser = commands.add_parser(
        "produce", help="send standard input, one record a line", description=__doc__
    )
    parser.add_argument("topic")
    parser.add_argument("--partition", type=int, help="send everything to this partition")
    parser.add_argument(
        "--key-separator", metavar="TEXT", help="what stands before it in a line is the key"
    )
    add_connection_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    failures: list[BaseException] = []
    count = 0
    separator = options.key_separator.encode() if options.key_separator else None
    with Producer(client_options(options)) as producer:
        for line in sys.stdin.buffer:
            key, value = _split(line.rstrip(b"\r\n"), separator)
            producer.send(
                options.topic,
                value,
                key=key,
                partition=options.partition,
                on_delivery=lambda _, error: failures.append(error) if error else None,
            )
            count += 1
        producer.flush()
    print(f"{count - len(failures)} of {count} records delivered", file=sys.stderr)
    if failures:
        print(f"first failure: {failures[0]}", file=sys.stderr)
    return 1 if failures else 0


def _split(line: bytes, separator: bytes | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    return (key, value) if found else (None, line)
