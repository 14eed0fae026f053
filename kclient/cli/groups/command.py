"""``kclient groups``: lists and describes consumer groups, and the parsers of other actions."""

import argparse
import sys
from collections.abc import Mapping
from typing import NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import ConsumerGroupDescription, GroupListing, OffsetSpec
from kclient.cli.common_options import add_connection_options, client_options
from kclient.cli.examples import add_examples
from kclient.cli.groups.consumer_groups import committed_offsets, groups_of
from kclient.cli.groups.lag import add_lag_action
from kclient.cli.groups.members import (
    add_delete_action,
    add_delete_offsets_action,
    add_remove_members_action,
)
from kclient.cli.groups.reset import add_reset_action
from kclient.cli.output import (
    add_json_option,
    show,
    show_errors,
    show_rows,
    succeeded,
    table,
)
from kclient.common.types import TopicPartition

_DEAD = "Dead"
"""State that brokers return for a group that does not exist."""


class PartitionLag(NamedTuple):
    """Progress of a group in a partition; None for what does not exist."""

    topic: str
    partition: int
    offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    host: str | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient groups``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_list(actions.add_parser("list", help="list groups with state and type"))
    describing = actions.add_parser("describe", help="show members, committed offsets and lag")
    describing.add_argument("group", nargs="*", help="groups to describe (default: all)")
    add_examples(
        describing,
        "kclient groups describe",
        "kclient groups describe billing",
        "kclient groups describe billing --json",
    )
    describing.set_defaults(run=_describe)
    add_lag_action(actions.add_parser("lag", help="show how far groups are behind"))
    add_reset_action(actions.add_parser("reset", help="set committed offsets of a group"))
    add_delete_offsets_action(
        actions.add_parser("delete-offsets", help="delete committed offsets of a group")
    )
    add_remove_members_action(
        actions.add_parser("remove-members", help="remove members from a group")
    )
    add_delete_action(actions.add_parser("delete", help="delete groups that have no members"))
    for action in actions.choices.values():
        add_json_option(action)
        add_connection_options(action)


def _add_list(parser: argparse.ArgumentParser) -> None:
    for name, what in (
        ("state", "in this state, such as Stable or Empty"),
        ("type", "of this type: classic, consumer, share or streams"),
        ("protocol-type", "of this protocol type, such as consumer"),
    ):
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar=name.upper(),
            help=f"list groups {what}; may be repeated",
        )
    add_examples(
        parser,
        "kclient groups list",
        "kclient groups list --state Empty --json",
        "kclient groups list --protocol-type consumer",
    )
    parser.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        groups = admin.list_groups(
            states=options.state, types=options.type, protocol_types=options.protocol_type
        )
    show_rows(options, GroupListing._fields, [group._asdict() for group in sorted(groups)])
    return 0


def _describe(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        wanted = groups_of(admin, options.group)
        if not wanted:
            return 0
        results = admin.describe_consumer_groups(wanted)
        status = show_errors("groups", results)
        described = dict(succeeded(results))
        found, failed = committed_offsets(admin, described)
        status = max(status, failed)
        for name, committed in found.items():
            group = described[name]
            if group.state == _DEAD and not committed:
                print(f"kclient groups: group {group.group_id!r} does not exist", file=sys.stderr)
                status = 1
                continue
            assigned = {tp for member in group.members for tp in member.assignment}
            ends, failed = _log_ends(admin, {*committed, *assigned})
            lags = _lags(group, committed, ends)
            status = max(status, failed)
            show(options, _description(group, lags), group._asdict() | {"offsets": lags})
    return status


def _log_ends(
    admin: AdminClient, partitions: set[TopicPartition]
) -> tuple[dict[TopicPartition, int], int]:
    """Return the log end offsets, and 1 if some are not available."""
    if not partitions:
        return {}, 0
    results = admin.list_offsets(dict.fromkeys(sorted(partitions), OffsetSpec.latest()))
    ends = {partition: info.offset for partition, info in succeeded(results)}
    return ends, show_errors("groups", results)


def _lags(
    group: ConsumerGroupDescription,
    offsets: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[PartitionLag]:
    owners = {tp: member for member in group.members for tp in member.assignment}
    lags = []
    for partition in sorted(owners.keys() | offsets.keys()):
        committed, end = offsets.get(partition), ends.get(partition)
        lags.append(
            PartitionLag(
                *partition,
                committed,
                end,
                end - committed if committed is not None and end is not None else None,
                owners[partition].member_id if partition in owners else None,
                owners[partition].host if partition in owners else None,
            )
        )
    return lags


def _description(group: ConsumerGroupDescription, lags: list[PartitionLag]) -> str:
    head = (
        f"group {group.group_id}  state {group.state}  assignor {group.partition_assignor or '-'}"
        f"  coordinator {group.coordinator}"
    )
    return f"{head}\n{table(PartitionLag._fields, lags)}" if lags else head
