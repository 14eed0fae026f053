"""``kclient produce``: sends each line of standard input as a record."""

import argparse
import sys

from kclient.cli.common_options import add_connection_options, producer_options, whole_number
from kclient.cli.record_text import separator, unescape
from kclient.producer.producer import Producer
from kclient.producer.producer_config import PRODUCER_CONFIG


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient produce`` to the command line."""
    parser = commands.add_parser(
        "produce", help="send standard input, one record per line", description=__doc__
    )
    parser.add_argument("topic")
    parser.add_argument(
        "--partition", type=whole_number(0), help="send every record to this partition"
    )
    parser.add_argument(
        "--key-separator",
        metavar="TEXT",
        type=separator,
        help=r"text between key and value of a line, \t for a tab; a line without it has no key",
    )
    parser.add_argument(
        "--escaped",
        action="store_true",
        help=r"lines are in the form that 'kclient consume' prints: \t, \n, \xNN, \N for null",
    )
    add_connection_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    deliveries = _Deliveries()
    key_separator: bytes | None = options.key_separator
    created = Producer(producer_options(options, PRODUCER_CONFIG))
    try:
        # The end of the block waits for the outcome of every record, also after Ctrl-C.
        with created as producer:
            for line in sys.stdin.buffer:
                key, value = _split(line.rstrip(b"\r\n"), key_separator, escaped=options.escaped)
                deliveries.sent += 1
                producer.send(
                    options.topic,
                    value,
                    key=key,
                    partition=options.partition,
                    on_delivery=deliveries.record,
                )
    finally:
        deliveries.report()
    return 1 if deliveries.delivered < deliveries.sent else 0


class _Deliveries:
    """Counts records and their outcomes.

    Attributes:
        sent: Records read from the input.
        delivered: Acknowledged records.
    """

    def __init__(self) -> None:
        self.sent = 0
        self.delivered = 0
        self._first_failure: BaseException | None = None

    def record(self, _: object, error: BaseException | None) -> None:
        """Count an outcome; called by the producer's thread."""
        if error is None:
            self.delivered += 1
        elif self._first_failure is None:
            self._first_failure = error

    def report(self) -> None:
        """Print the counts and the first failure."""
        print(f"{self.delivered} of {self.sent} records delivered", file=sys.stderr)
        if self._first_failure is not None:
            print(f"first failure: {self._first_failure}", file=sys.stderr)


def _split(
    line: bytes, separator: bytes | None, *, escaped: bool
) -> tuple[bytes | None, bytes | None]:
    before, found, after = line.partition(separator) if separator else (b"", b"", b"")
    key, value = (before, after) if found else (None, line)
    if not escaped:
        return key, value
    return None if key is None else unescape(key), unescape(value)
