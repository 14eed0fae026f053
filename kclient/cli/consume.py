r"""``kclient consume``: print records as they arrive, one line each.

In the text form a line has tab-separated fields. UTF-8 text is unchanged; backslash, tab,
newline and carriage return are written \\, \t, \n, \r, other control characters and bytes that are
not UTF-8 \xNN, and null \N. In the JSON form bytes are a string where they are UTF-8 text, else an
object {"base64": "..."}; null is null.
"""

import argparse
import sys
import time

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    seconds,
    timeout_seconds,
    whole_number,
)
from kclient.cli.record_format import TEXT_FORMATS, as_json
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_config import CONSUMER_CONFIG

_IDLE_POLL_S = 0.5
_DAY_S = 86_400.0


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient consume`` to the command line."""
    parser = commands.add_parser(
        "consume",
        help="print the records of topics",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", nargs="+")
    parser.add_argument("--group", help="join this group and commit the offsets of what is printed")
    parser.add_argument(
        "--from-beginning", action="store_true", help="start at the oldest record, not at the end"
    )
    parser.add_argument(
        "--max-records", type=whole_number(1), help="stop after this number of records"
    )
    parser.add_argument(
        "--idle-timeout",
        type=seconds(_DAY_S),
        metavar="SECONDS",
        help="stop after this time without a record",
    )
    parser.add_argument(
        "--format",
        default="text",
        choices=("text", "json"),
        help="text: tab-separated fields; json: one object per line (default: %(default)s)",
    )
    parser.add_argument(
        "--show",
        default="value",
        choices=("value", "key-value", "all"),
        help="fields of the text form; all: topic-partition@offset, timestamp in milliseconds, "
        "key, value, headers (default: %(default)s)",
    )
    add_connection_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    start = {"auto.offset.reset": "earliest"} if options.from_beginning else {}
    settings = client_options(options, CONSUMER_CONFIG, start)
    if options.group:
        settings["group.id"] = options.group
    # Parsed before the cluster is asked for the topics.
    has_group = CONSUMER_CONFIG.parse(settings).group_id is not None
    partitions = _partitions(options.topic, settings)
    progress = _Progress(options)
    is_cut_off = False
    try:
        _consume(options, settings, None if has_group else partitions, progress)
    except BrokenPipeError:
        # It is unknown how much the reader has read; with a group, what is committed is counted.
        is_cut_off = not has_group
        raise
    finally:
        if not is_cut_off:
            records = "record" if progress.count == 1 else "records"
            print(f"{progress.count} {records}", file=sys.stderr)
    return 0


def _consume(
    options: argparse.Namespace,
    settings: dict[str, object],
    partitions: list[TopicPartition] | None,
    progress: "_Progress",
) -> None:
    consumer = Consumer(settings)
    try:
        if partitions is None:
            consumer.subscribe(options.topic)
        else:
            consumer.assign(partitions)
        while not progress.is_over():
            progress.poll(consumer)
    finally:
        consumer.close(timeout_seconds(options))


def _partitions(topics: list[str], settings: dict[str, object]) -> list[TopicPartition]:
    """Return the topics' partitions; raises if a topic does not exist."""
    of_admin = {name: value for name, value in settings.items() if ADMIN_CONFIG.has_key(name)}
    with AdminClient(of_admin) as admin:
        described = admin.describe_topics(topics).raise_for_errors()
    return [
        TopicPartition(name, info.partition)
        for name, topic in described.items()
        for info in topic.partitions
    ]


class _Progress:
    """Prints records, and knows when the command is done.

    Attributes:
        count: Records printed, counted by complete polls.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.count = 0
        self._most: int | None = options.max_records
        self._idle_timeout_s: float | None = options.idle_timeout
        self._format = as_json if options.format == "json" else TEXT_FORMATS[options.show]
        self._last_record = time.monotonic()

    def is_over(self) -> bool:
        """Return whether the maximum was printed, or no record arrived within the idle timeout."""
        if self._most is not None and self.count >= self._most:
            return True
        idle_s = time.monotonic() - self._last_record
        return self._idle_timeout_s is not None and idle_s >= self._idle_timeout_s

    def poll(self, consumer: Consumer) -> None:
        """Print the records of one poll. If that fails, reset the positions to before them."""
        left = None if self._most is None else self._most - self.count
        records = consumer.poll(_IDLE_POLL_S, max_records=left)
        if not records:
            return
        self._last_record = time.monotonic()
        try:
            for record in records:
                sys.stdout.buffer.write(self._format(record).encode() + b"\n")
            sys.stdout.flush()
        except BaseException:
            # The commit at close must not include records that were not printed.
            for partition in records.partitions():
                consumer.seek(partition, records.records(partition)[0].offset)
            raise
        self.count += len(records)
