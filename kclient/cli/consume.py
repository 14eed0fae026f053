"""``kclient consume``: print records as they come."""

import argparse
import sys
import time

from kclient.admin.admin_client import AdminClient
from kclient.cli.common_options import add_connection_options, client_options
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.record import ConsumerRecord

_IDLE_POLL_S = 0.5


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient consume`` to the command line."""
    parser = commands.add_parser("consume", help="print the records of topics")
    parser.add_argument("topic", nargs="+")
    parser.add_argument("--group", help="share the work in this group and commit positions")
    parser.add_argument(
        "--from-beginning", action="store_true", help="start at the oldest record, not at the end"
    )
    parser.add_argument("--max-records", type=int, help="stop after so many")
    parser.add_argument(
        "--idle-timeout", type=float, metavar="SECONDS", help="stop after so long without a record"
    )
    parser.add_argument(
        "--show",
        default="value",
        choices=("value", "key-value", "all"),
        help="what to print of each record (default: %(default)s)",
    )
    add_connection_options(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    settings = {
        "auto.offset.reset": "earliest" if options.from_beginning else "latest",
        **client_options(options),
    }
    if options.group:
        settings["group.id"] = options.group
    count = 0
    with Consumer(settings) as consumer:
        if options.group:
            consumer.subscribe(options.topic)
        else:
            consumer.assign(_partitions(options))
        last = time.monotonic()
        while not _is_over(options, count, last):
            left = None if options.max_records is None else options.max_records - count
            for record in consumer.poll(_IDLE_POLL_S, max_records=left):
                count += 1
                last = time.monotonic()
                sys.stdout.buffer.write(_line(record, options.show))
            sys.stdout.flush()
    print(f"{count} records", file=sys.stderr)
    return 0


def _partitions(options: argparse.Namespace) -> list[TopicPartition]:
    with AdminClient(client_options(options)) as admin:
        described = admin.describe_topics(options.topic)
    return [
        TopicPartition(name, info.partition)
        for name, topic in described.items()
        for info in topic.partitions
    ]


def _is_over(options: argparse.Namespace, count: int, last: float) -> bool:
    if options.max_records is not None and count >= options.max_records:
        return True
    return options.idle_timeout is not None and time.monotonic() - last >= options.idle_timeout


def _line(record: ConsumerRecord, show: str) -> bytes:
    value = b"null" if record.value is None else bytes(record.value)
    if show == "value":
        return value + b"\n"
    key = b"null" if record.key is None else bytes(record.key)
    if show == "key-value":
        return key + b"\t" + value + b"\n"
    place = f"{record.topic}-{record.partition}@{record.offset} {record.timestamp_ms} "
    headers = b",".join(name.encode() + b"=" + (data or b"null") for name, data in record.headers)
    return place.encode() + key + b"\t" + value + b"\t" + headers + b"\n"
