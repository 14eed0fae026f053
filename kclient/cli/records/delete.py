"""``kclient records``: deletes the oldest records of partitions (kafka-delete-records)."""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import OffsetSpec
from kclient.cli.common_options import add_connection_options, client_options, whole_number
from kclient.cli.examples import add_examples
from kclient.cli.log_bounds import find_log_bounds
from kclient.cli.offset_file import read_delete_records
from kclient.cli.output import add_json_option, show_errors, show_rows, succeeded
from kclient.cli.partition_scope import Scope, partitions_of
from kclient.cli.time_option import TIME_FORMS, accept_leading_minus, milliseconds
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition

_HIGH_WATERMARK = -1


class Deletion(NamedTuple):
    """Records of a partition that are to be deleted, or were.

    Attributes:
        topic: Topic.
        partition: Partition number.
        log_start_offset: First offset of the log before the deletion.
        before_offset: First offset that remains.
        records: Number of offsets between them.
    """

    topic: str
    partition: int
    log_start_offset: int
    before_offset: int
    records: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient records``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    deleting = actions.add_parser("delete", help="delete records before an offset or a time")
    deleting.description = (
        "Delete the oldest records of partitions. Without --execute nothing is deleted, and the "
        "table shows what would be."
    )
    deleting.add_argument("topic", nargs="?")
    deleting.add_argument(
        "--partition",
        action="append",
        type=whole_number(0),
        metavar="P",
        help="a partition; may be repeated (default: all)",
    )
    limit = deleting.add_mutually_exclusive_group(required=True)
    limit.add_argument(
        "--before-offset", type=whole_number(0, 2**63 - 1), metavar="N", help="first one to keep"
    )
    limit.add_argument(
        "--before-time",
        type=milliseconds,
        metavar="TIME",
        help=f"keep the first record of {TIME_FORMS}, and those after it",
    )
    limit.add_argument("--all", action="store_true", help="delete every record")
    limit.add_argument(
        "--from-file",
        type=Path,
        metavar="FILE",
        help="offsets by partition, in the JSON form of kafka-delete-records",
    )
    deleting.add_argument("--execute", action="store_true", help="delete the records")
    accept_leading_minus(deleting)
    add_examples(
        deleting,
        "kclient records delete orders --partition 0 --before-offset 2",
        "kclient records delete orders --partition 0 --before-offset 2 --execute",
        "kclient records delete orders --before-time -7d --execute",
        "kclient records delete --from-file delete.json --execute --json",
        "kclient records delete orders --all --execute",
    )
    deleting.set_defaults(run=_delete)
    add_json_option(deleting)
    add_connection_options(deleting)


def _delete(options: argparse.Namespace) -> int:
    has_topic = options.topic is not None
    if has_topic == (options.from_file is not None) or (options.partition and not has_topic):
        raise ConfigError("records delete: expected TOPIC, or --from-file without TOPIC")
    given = None if options.from_file is None else read_delete_records(options.from_file)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        numbers = None if options.partition is None else tuple(options.partition)
        wanted = given or partitions_of(admin, [Scope(options.topic, numbers)])
        deletions, status = _plan(admin, options, list(wanted), given)
        if options.execute and deletions:
            limits = {TopicPartition(each.topic, each.partition): each for each in deletions}
            results = admin.delete_records(
                {partition: each.before_offset for partition, each in limits.items()}
            )
            deletions = [
                _done(limits[partition], done.low_watermark)
                for partition, done in succeeded(results)
            ]
            status = max(status, show_errors("records", results))
    show_rows(options, Deletion._fields, [each._asdict() for each in deletions])
    if not options.execute:
        print("nothing was deleted: --execute deletes the records", file=sys.stderr)
    return status


def _plan(
    admin: AdminClient,
    options: argparse.Namespace,
    wanted: list[TopicPartition],
    given: dict[TopicPartition, int] | None,
) -> tuple[list[Deletion], int]:
    """Return the first offset to keep of each partition, and 1 if some are not available."""
    bounds, status = find_log_bounds("records", admin, wanted)
    at_time = {}
    if options.before_time is not None and bounds:
        spec = OffsetSpec.for_timestamp(options.before_time)
        found = admin.list_offsets(dict.fromkeys(bounds, spec))
        status = max(status, show_errors("records", found))
        at_time = {partition: info.offset for partition, info in succeeded(found)}
    deletions = []
    for partition, log in sorted(bounds.items()):
        limit = _HIGH_WATERMARK
        if given is not None:
            limit = given[partition]
        elif options.before_offset is not None:
            limit = options.before_offset
        elif options.before_time is not None:
            limit = at_time.get(partition, 0)
        before = log.end if limit == _HIGH_WATERMARK else limit
        if before > log.end and not options.execute:  # otherwise the broker reports it
            wrong = f"got offset {before}, expected at most {log.end}, the log end"
            print(f"kclient records: partition {partition}: {wrong}", file=sys.stderr)
            status = 1
            continue
        deletions.append(_done(Deletion(*partition, log.start, log.start, 0), before))
    return deletions, status


def _done(deletion: Deletion, before_offset: int) -> Deletion:
    start = deletion.log_start_offset
    before = max(start, before_offset)
    return deletion._replace(before_offset=before, records=before - start)
