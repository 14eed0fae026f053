"""``kclient groups reset``: sets committed offsets of a group (kafka-consumer-groups)."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import OffsetSpec
from kclient.cli.common_options import client_options, whole_number
from kclient.cli.examples import add_examples
from kclient.cli.log_bounds import OffsetBounds, find_log_bounds
from kclient.cli.offset_file import read_offsets
from kclient.cli.output import show_errors, show_rows
from kclient.cli.partition_scope import FORMS, partitions_of, scope
from kclient.cli.time_option import TIME_FORMS, accept_leading_minus, milliseconds
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition

_LARGEST = 2**63 - 1
_INACTIVE = {"Empty", "Dead"}

Offsets = Mapping[TopicPartition, int]


class Reset(NamedTuple):
    """New committed offset of a partition.

    Attributes:
        group_id: Group.
        topic: Topic.
        partition: Partition number.
        previous_offset: Present committed offset, None if there is none.
        offset: New committed offset.
    """

    group_id: str
    topic: str
    partition: int
    previous_offset: int | None
    offset: int


def add_reset_action(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient groups reset``."""
    parser.description = (
        "Set the committed offsets of a group without active members. Without --execute nothing "
        "is changed, and the table shows what would be."
    )
    parser.add_argument("group")
    _add_targets(parser)
    parser.add_argument(
        "--topic", action="append", default=[], type=scope, metavar="TOPIC[:P,P]",
        help=f"partitions to reset: {FORMS}; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--all-topics",
        action="store_true",
        help="reset every partition of which the group has a committed offset",
    )
    parser.add_argument("--execute", action="store_true", help="change the offsets")
    parser.add_argument(
        "--export",
        action="store_true",
        help="print the new offsets in the form of --from-file, not as a table",
    )
    accept_leading_minus(parser)
    add_examples(
        parser,
        "kclient groups reset billing --topic orders --to-earliest",
        "kclient groups reset billing --topic orders:0 --shift-by -2 --execute",
        "kclient groups reset billing --all-topics --to-time 2026-01-31T12:00:00Z --execute",
        "kclient groups reset billing --all-topics --by-duration 2h --json",
        "kclient groups reset billing --all-topics --to-current --export > offsets.csv",
        "kclient groups reset billing --from-file offsets.csv --execute",
    )
    parser.set_defaults(run=_run)


def _add_targets(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--to-earliest", action="store_true", help="to the log start offset")
    target.add_argument("--to-latest", action="store_true", help="to the log end offset")
    target.add_argument(
        "--to-current",
        action="store_true",
        help="to the present committed offset, or the log end offset if there is none",
    )
    target.add_argument(
        "--to-offset", type=whole_number(0, _LARGEST), metavar="N", help="to this offset"
    )
    target.add_argument(
        "--shift-by",
        type=whole_number(-_LARGEST, _LARGEST),
        metavar="N",
        help="by N offsets, backward if N is negative",
    )
    target.add_argument(
        "--to-time",
        type=milliseconds,
        metavar="TIME",
        help=f"to the first record of {TIME_FORMS}; to the log end offset if there is none",
    )
    target.add_argument(
        "--by-duration",
        type=_before_now,
        metavar="DURATION",
        help="to the first record of this time before now, such as 2h, 1d12h, or PT2H",
    )
    target.add_argument(
        "--from-file",
        type=Path,
        metavar="FILE",
        help="to the offsets of a file: lines topic,partition,offset as Kafka's tool exports, or "
        "the lines of --json",
    )


def _before_now(text: str) -> int:
    iso = text.upper().replace("T", "") if text.upper().startswith("P") else f"P{text.upper()}"
    try:
        return milliseconds(f"-{iso[1:].lower()}")
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"got {text!r:.80}, expected a duration such as 2h, 1d12h or PT2H"
        ) from None


def _run(options: argparse.Namespace) -> int:
    given = None if options.from_file is None else read_offsets(options.from_file)
    if given is None and not options.topic and not options.all_topics:
        raise ConfigError("reset: expected --topic, --all-topics or --from-file")
    if options.topic and options.all_topics:
        raise ConfigError("reset: got --topic and --all-topics, expected one of them")
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        _check_inactive(admin, options.group)
        committed = {
            partition: each.offset
            for partition, each in admin.list_consumer_group_offsets(options.group)
            .raise_for_errors()
            .items()
        }
        wanted = _wanted(admin, options, committed, given)
        resets, status = _plan(admin, options, wanted, committed, given)
        _show(options, resets)
        if not options.execute:
            print("nothing was changed: --execute changes the offsets", file=sys.stderr)
            return status
        if not resets:
            return status
        new = {TopicPartition(each.topic, each.partition): each.offset for each in resets}
        results = admin.alter_consumer_group_offsets(options.group, new)
        return max(status, show_errors("groups", results))


def _check_inactive(admin: AdminClient, group_id: str) -> None:
    """Raise if a group has members, which would commit their own offsets."""
    for group in admin.list_groups():
        if group.group_id == group_id and group.state not in {None, *_INACTIVE}:
            raise KafkaError(
                f"group {group_id!r}: its state is {group.state}, expected Empty; stop its members "
                "first, and wait for the end of their sessions if they did not leave"
            )


def _wanted(
    admin: AdminClient,
    options: argparse.Namespace,
    committed: Offsets,
    given: Offsets | None,
) -> list[TopicPartition]:
    if given is not None:
        named = set(partitions_of(admin, options.topic)) if options.topic else given
        return [each for each in given if each in named]
    return sorted(committed) if options.all_topics else partitions_of(admin, options.topic)


def _plan(
    admin: AdminClient,
    options: argparse.Namespace,
    wanted: list[TopicPartition],
    committed: Offsets,
    given: Offsets | None,
) -> tuple[list[Reset], int]:
    """Return the new offsets, and 1 if some partitions have none."""
    if not wanted:
        raise KafkaError(f"group {options.group!r}: it has no committed offsets to reset")
    bounds, status = find_log_bounds("groups", admin, wanted)
    target = _target(admin, options, bounds, committed, given)
    resets = []
    for partition, log in bounds.items():
        offset = target(partition)
        if offset is None:
            print(
                f"kclient groups: {partition}: there is no committed offset to shift",
                file=sys.stderr,
            )
            status = 1
            continue
        offset = _clamped(partition, offset, log)
        resets.append(Reset(options.group, *partition, committed.get(partition), offset))
    return resets, status


def _target(
    admin: AdminClient,
    options: argparse.Namespace,
    bounds: Mapping[TopicPartition, OffsetBounds],
    committed: Offsets,
    given: Offsets | None,
) -> Callable[[TopicPartition], int | None]:
    """Return a function from a partition to its new offset, before it is limited to the log."""
    fixed, shift = options.to_offset, options.shift_by
    time_ms = options.to_time if options.to_time is not None else options.by_duration
    if given is not None:
        return given.get
    if fixed is not None:
        return lambda _: fixed
    if shift is not None:
        return lambda each: committed[each] + shift if each in committed else None
    if time_ms is not None:
        return _offsets_at(admin, time_ms, bounds).get
    if options.to_current:
        return lambda each: committed.get(each, bounds[each].end)
    return lambda each: bounds[each].start if options.to_earliest else bounds[each].end


def _offsets_at(
    admin: AdminClient, time_ms: int, bounds: Mapping[TopicPartition, OffsetBounds]
) -> Offsets:
    """Return the offsets of the first records of a time, or the ends."""
    if not bounds:
        return {}
    found = admin.list_offsets(dict.fromkeys(bounds, OffsetSpec.for_timestamp(time_ms)))
    return {
        partition: info.offset if info.offset >= 0 else bounds[partition].end
        for partition, info in found.raise_for_errors().items()
    }


def _clamped(partition: TopicPartition, offset: int, log: OffsetBounds) -> int:
    """Return the nearest offset of the log, with a warning if it is another one."""
    nearest = min(max(offset, log.start), log.end)
    if nearest != offset:
        print(
            f"kclient groups: {partition}: offset {offset} is outside of the log, {log.start} to "
            f"{log.end}; {nearest} is used",
            file=sys.stderr,
        )
    return nearest


def _show(options: argparse.Namespace, resets: Iterable[Reset]) -> None:
    if options.export and not options.json:
        for each in resets:
            print(f"{each.topic},{each.partition},{each.offset}")
        return
    show_rows(options, Reset._fields, [each._asdict() for each in resets])
