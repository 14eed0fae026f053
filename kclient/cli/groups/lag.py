"""``kclient groups lag``: how far groups are behind, in records and in seconds."""

import argparse
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.common_options import client_options, seconds, timeout_seconds
from kclient.cli.examples import add_examples
from kclient.cli.groups.consumer_groups import committed_offsets, groups_of
from kclient.cli.log_bounds import OffsetBounds, find_log_bounds
from kclient.cli.output import show_rows
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer

_DAY_S = 86_400.0
_INTERVAL_S = 5.0
_POLL_S = 0.2
UNKNOWN = "unknown"

BELOW_START = "below log start"
ABOVE_END = "above log end"
NOT_COMMITTED = "not committed"
BEHIND = "behind"
CAUGHT_UP = "caught up"


class GroupLag(NamedTuple):
    """Progress of a group in a partition.

    Attributes:
        group_id: Group.
        topic: Topic.
        partition: Partition number.
        offset: Committed offset, None if there is none.
        log_start_offset: Offset of the oldest record.
        log_end_offset: Offset after the newest record.
        lag: Offsets from the committed one to the log end; negative if it is above the end.
        lag_seconds: Age of the first record that is not committed, by its timestamp; 0 if there is
            no such record, "unknown" if it is gone or was not read in time, None without a
            committed offset.
        status: "caught up", "behind", "below log start", "above log end" or "not committed".
    """

    group_id: str
    topic: str
    partition: int
    offset: int | None
    log_start_offset: int
    log_end_offset: int
    lag: int | None
    lag_seconds: float | str | None
    status: str


def add_lag_action(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient groups lag``."""
    parser.description = (
        "Show how far groups are behind. Seconds are the age of the first record that is not "
        "committed: its timestamp, compared with the clock of this machine. They are 0 for a group "
        f"that has committed every record, and {UNKNOWN} if that record is gone."
    )
    parser.add_argument("group", nargs="*", help="groups to show (default: all)")
    parser.add_argument(
        "--watch",
        nargs="?",
        type=seconds(_DAY_S),
        const=_INTERVAL_S,
        metavar="SECONDS",
        help=f"show it again at this interval until Ctrl-C (default: {_INTERVAL_S:g})",
    )
    add_examples(
        parser,
        "kclient groups lag",
        "kclient groups lag billing",
        "kclient groups lag billing --json",
        "kclient groups lag billing --watch 2",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    settings = client_options(options, ADMIN_CONFIG)  # a consumer has all its keys
    with ExitStack() as stack:
        admin = stack.enter_context(AdminClient(settings))
        reader = stack.enter_context(Consumer(settings, max_poll_records=1))
        while True:
            started = time.monotonic()
            status = _show_once(options, admin, reader, groups_of(admin, options.group))
            if options.watch is None:
                return status
            sys.stdout.flush()
            time.sleep(max(0.0, started + options.watch - time.monotonic()))


def _show_once(
    options: argparse.Namespace,
    admin: AdminClient,
    reader: "Consumer[Any, Any]",
    groups: Collection[str],
) -> int:
    found, status = committed_offsets(admin, groups)
    members = _assigned(admin, groups)
    rows = []
    for group, committed in found.items():
        if not committed and group not in members:
            print(f"kclient groups: group {group!r} does not exist", file=sys.stderr)
            status = 1
            continue
        wanted = sorted({*committed, *members.get(group, ())})
        lags, failed = _lags(admin, group, wanted, committed)
        rows += _with_seconds(reader, lags, timeout_seconds(options))
        status = max(status, failed)
    show_rows(options, GroupLag._fields, [row._asdict() for row in rows])
    return status


def _assigned(admin: AdminClient, groups: Collection[str]) -> dict[str, frozenset[TopicPartition]]:
    """Return the partitions of members, as far as they are known, by group that exists."""
    types = {
        each.group_id: each.group_type for each in admin.list_groups() if each.group_id in groups
    }
    classic = [group for group, kind in types.items() if kind in {None, "classic"}]
    described = admin.describe_consumer_groups(classic) if classic else {}
    partitions = {
        group: frozenset(each for member in found.members for each in member.assignment)
        for group, found in described.items()
    }
    return {group: partitions.get(group, frozenset()) for group in types}


def _lags(
    admin: AdminClient,
    group: str,
    wanted: list[TopicPartition],
    committed: Mapping[TopicPartition, int],
) -> tuple[list[GroupLag], int]:
    """Return the lags in records, and 1 if some offsets are not available."""
    bounds, status = find_log_bounds("groups", admin, wanted)
    lags = [_lag(group, each, committed.get(each), bounds[each]) for each in bounds]
    return lags, status


def _lag(group: str, partition: TopicPartition, offset: int | None, log: OffsetBounds) -> GroupLag:
    start, end = log
    if offset is None:
        return GroupLag(group, *partition, None, start, end, None, None, NOT_COMMITTED)
    age: float | str
    if offset < start:
        status, age = BELOW_START, UNKNOWN
    elif offset > end:
        status, age = ABOVE_END, 0.0
    elif offset == end:
        status, age = CAUGHT_UP, 0.0
    else:
        status, age = BEHIND, UNKNOWN
    return GroupLag(group, *partition, offset, start, end, end - offset, age, status)


def _with_seconds(
    reader: "Consumer[Any, Any]", lags: list[GroupLag], timeout_s: float
) -> list[GroupLag]:
    """Read the first record that is not committed of each partition for its age."""
    behind = {
        TopicPartition(each.topic, each.partition): each.offset
        for each in lags
        if each.status == BEHIND and each.offset is not None
    }
    times = _timestamps(reader, behind, timeout_s)
    now_ms = time.time() * 1000
    return [
        each._replace(lag_seconds=round(max(0.0, now_ms - times[partition]) / 1000, 1))
        if (partition := TopicPartition(each.topic, each.partition)) in times
        else each
        for each in lags
    ]


def _timestamps(
    reader: "Consumer[Any, Any]", offsets: Mapping[TopicPartition, int], timeout_s: float
) -> dict[TopicPartition, int]:
    """Return the timestamps of the records at offsets, or after those that were compacted."""
    times: dict[TopicPartition, int] = {}
    reader.assign(list(offsets))
    for partition, offset in offsets.items():
        reader.seek(partition, offset)
    deadline = time.monotonic() + timeout_s
    while len(times) < len(offsets) and time.monotonic() < deadline:
        for record in reader.poll(_POLL_S):
            partition = TopicPartition(record.topic, record.partition)
            times.setdefault(partition, record.timestamp_ms)
            reader.pause(partition)
    reader.assign([])
    return times
