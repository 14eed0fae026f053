r"""``kclient consume``: print records as they arrive.

Without options it starts at the end of the topics and prints new records until Ctrl-C. With
--until-end or --to-time it starts at the beginning, unless a start is given. The number of records
is printed on standard error. Options of the consumer are given by -X, such as
-X isolation.level=read_committed.

Formats:
  text    tab-separated fields, see --show. UTF-8 text is unchanged; backslash, tab, newline and
          carriage return are \\, \t, \n, \r, other control characters and bytes that are not
          UTF-8 \xNN, null is \N. 'kclient produce --escaped' reads it.
  json    an object with topic, partition, offset, timestamp (milliseconds), timestamp_type, key,
          value, headers (a list of [name, value]). Bytes that are not UTF-8 are
          {"base64": "..."}. 'kclient produce --format json' reads it.
  raw     the bytes of the value
  a text with tokens, as for kcat's -f; nothing is appended unless --delimiter is given:
          %s value, %k key, %S and %K their length (-1 for null), %R length of the value as a
          big-endian int32, %t topic, %p partition, %o offset, %T timestamp in milliseconds,
          %h headers as name=value,..., %% a percent sign; \n, \r, \t, \\ and \xNN
"""

import argparse

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    seconds,
    timeout_seconds,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.records.record_printer import RecordPrinter, format_option
from kclient.cli.records.record_range import RecordRange, StopOffsets, offset_option
from kclient.cli.records.record_text import delimiter
from kclient.cli.time_option import TIME_FORMS, accept_leading_minus, milliseconds
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_config import CONSUMER_CONFIG

_DAY_S = 86_400.0
_GROUP_ID = ("group.id", "group_id")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient consume``."""
    parser.description = __doc__
    parser.add_argument("topic", nargs="+", help="topics to read")
    parser.add_argument("--group", help="join this group and commit the offsets of what is printed")
    _add_range(parser)
    _add_output(parser)
    add_connection_options(parser)
    accept_leading_minus(parser)
    add_examples(
        parser,
        "kclient consume orders --tail 5",
        "kclient consume orders --until-end --format json > orders.jsonl",
        "kclient consume orders --offset 2 --partition 0 --max-records 2",
        "kclient consume orders --from-time -2h --to-time -1h --show all",
        r"kclient consume orders --tail 3 --format '%T %p %o %k %s\n'",
        "kclient consume orders --group reports --from-beginning --idle-timeout 5",
    )
    parser.set_defaults(run=_run, refuse=parser.error)


def _add_range(parser: argparse.ArgumentParser) -> None:
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning",
        action="store_true",
        help="start at the oldest record; with --group, in partitions without a committed offset",
    )
    start.add_argument(
        "--offset",
        type=offset_option,
        metavar="N",
        help="start at this offset, at beginning or end, or -N: N offsets before the end; the "
        "nearest one that exists",
    )
    start.add_argument(
        "--from-time", type=milliseconds, metavar="TIME", help=f"start at {TIME_FORMS}"
    )
    start.add_argument(
        "--tail",
        type=whole_number(1),
        metavar="N",
        help="print the last N offsets of each partition and stop: --offset -N --until-end",
    )
    parser.add_argument(
        "--partition",
        type=whole_number(0),
        action="append",
        metavar="P",
        help="read this partition of the topics only; may be repeated",
    )
    parser.add_argument(
        "--until-end", action="store_true", help="stop at the end of the topics as it is now"
    )
    parser.add_argument(
        "--to-time",
        type=milliseconds,
        metavar="TIME",
        help="stop before the first record of this time, or at the end as it is now",
    )
    parser.add_argument(
        "--max-records", type=whole_number(1), metavar="N", help="stop after N records"
    )
    parser.add_argument(
        "--idle-timeout",
        type=seconds(_DAY_S),
        metavar="SECONDS",
        help="stop after this time without a record",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        type=format_option,
        default="text",
        metavar="FORMAT",
        help="text, json, raw, or a text with tokens, see above (default: %(default)s)",
    )
    parser.add_argument(
        "--show",
        default="value",
        choices=("value", "key-value", "all"),
        help="fields of the text form; all: topic-partition@offset, timestamp in milliseconds, "
        "key, value, headers (default: %(default)s)",
    )
    parser.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="TEXT",
        help=r"text after each record, such as \t or \x00 (default: \n)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not print the number of records")


def _run(options: argparse.Namespace) -> int:
    reading = _range(options)
    is_positioned = reading.has_start or bool(options.partition)
    if is_positioned and options.group:
        options.refuse(
            "argument --group: not allowed with --offset, --from-time, --tail and --partition: "
            "the group determines partitions and positions"
        )
    is_from_beginning = options.from_beginning or (reading.has_stop and not reading.has_start)
    start = {"auto.offset.reset": "earliest"} if is_from_beginning else {}
    settings = client_options(options, CONSUMER_CONFIG, start)
    if options.group:
        settings["group.id"] = options.group
    elif is_positioned:  # the group of a configuration file is not joined
        settings = {name: value for name, value in settings.items() if name not in _GROUP_ID}
    # Parsed before the cluster is asked for the topics.
    has_group = CONSUMER_CONFIG.parse(settings).group_id is not None
    partitions = _partitions(options.topic, options.partition, settings)
    printing = RecordPrinter(options)
    is_cut_off = False
    try:
        _consume(options, settings, partitions, printing, has_group=has_group)
    except BrokenPipeError:
        # It is unknown how much the reader has read; with a group, what is committed is counted.
        is_cut_off = not has_group
        raise
    finally:
        printing.end(is_reported=not is_cut_off and not options.quiet)
    return 0


def _range(options: argparse.Namespace) -> RecordRange:
    tail: int | None = options.tail
    return RecordRange(
        offset=options.offset if tail is None else -tail,
        from_time_ms=options.from_time,
        to_time_ms=options.to_time,
        until_end=options.until_end or tail is not None,
    )


def _partitions(
    topics: list[str], numbers: list[int] | None, settings: dict[str, object]
) -> list[TopicPartition]:
    """Return the topics' partitions; raises if a topic or a partition does not exist."""
    of_admin = {name: value for name, value in settings.items() if ADMIN_CONFIG.has_key(name)}
    with AdminClient(of_admin) as admin:
        described = admin.describe_topics(topics).raise_for_errors()
    partitions = []
    for name, topic in described.items():
        existing = [info.partition for info in topic.partitions]
        for number in numbers or ():
            if number not in existing:
                raise ConfigError(
                    f"--partition: got {number}, expected one of 0 to {len(existing) - 1}, "
                    f"the partitions of topic {name!r}"
                )
        partitions += [TopicPartition(name, n) for n in existing if not numbers or n in numbers]
    return partitions


def _consume(
    options: argparse.Namespace,
    settings: dict[str, object],
    partitions: list[TopicPartition],
    printing: RecordPrinter,
    *,
    has_group: bool,
) -> None:
    reading = _range(options)
    consumer = Consumer(settings)
    try:
        needs_ends = reading.has_start or reading.has_stop
        ends = consumer.end_offsets(partitions) if needs_ends else {}
        stops = StopOffsets(consumer, reading.stops(consumer, ends)) if reading.has_stop else None
        if has_group:
            consumer.subscribe(options.topic, on_assigned=printing.set_assigned)
        else:
            consumer.assign(partitions)
            printing.set_assigned(partitions)
            if reading.has_start:
                for partition, first in reading.starts(consumer, partitions, ends).items():
                    consumer.seek(partition, first)
        while not printing.is_over():
            printing.poll(consumer, stops)
    finally:
        consumer.close(timeout_seconds(options))
