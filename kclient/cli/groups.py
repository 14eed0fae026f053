"""``kclient groups``: lists, describes and deletes consumer groups."""

import argparse
import sys
from collections.abc import Mapping
from typing import NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import ConsumerGroupDescription
from kclient.cli.common_options import add_connection_options, client_options
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, number, show
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer import Consumer

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


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient groups`` to the command line."""
    parser = commands.add_parser("groups", help="list, describe and delete consumer groups")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list every group with its state")
    add_examples(listing, "kclient groups list", "kclient groups list --json")
    listing.set_defaults(run=_list)
    describing = actions.add_parser("describe", help="show members, committed offsets and lag")
    describing.add_argument("group", nargs="+")
    add_examples(
        describing, "kclient groups describe billing", "kclient groups describe billing --json"
    )
    describing.set_defaults(run=_describe)
    deleting = actions.add_parser("delete", help="delete groups that have no members")
    deleting.add_argument("group", nargs="+")
    add_examples(deleting, "kclient groups delete billing")
    deleting.set_defaults(run=_delete)
    add_json_option(listing)
    add_json_option(describing)
    for action in (listing, describing, deleting):
        add_connection_options(action)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        groups = admin.list_groups()
    for group in sorted(groups):
        text = f"{group.group_id}  {group.state or '-'}  {group.protocol_type or '-'}"
        show(options, text, group)
    return 0


def _describe(options: argparse.Namespace) -> int:
    missing = 0
    settings = client_options(options, ADMIN_CONFIG)  # a consumer has all its keys
    with AdminClient(settings) as admin, Consumer(settings) as reader:
        for group in admin.describe_consumer_groups(options.group).raise_for_errors().values():
            offsets = admin.list_consumer_group_offsets(group.group_id).raise_for_errors()
            if group.state == _DEAD and not offsets:
                print(f"kclient groups: group {group.group_id!r} does not exist", file=sys.stderr)
                missing += 1
            else:
                assigned = [tp for member in group.members for tp in member.assignment]
                lags = _lags(group, offsets, reader.end_offsets({*offsets, *assigned}))
                show(options, _description(group, lags), group._asdict() | {"offsets": lags})
    return 1 if missing else 0


def _lags(
    group: ConsumerGroupDescription,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ends: dict[TopicPartition, int],
) -> list[PartitionLag]:
    owners = {tp: member for member in group.members for tp in member.assignment}
    lags = []
    for partition in sorted(owners.keys() | offsets.keys()):
        committed, end = offsets.get(partition), ends.get(partition)
        lags.append(
            PartitionLag(
                *partition,
                committed.offset if committed is not None else None,
                end,
                end - committed.offset if committed is not None and end is not None else None,
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
    lines = [head]
    for each in lags:
        who = f"{each.member_id} at {each.host}" if each.member_id is not None else "-"
        lines.append(
            f"  {each.topic}-{each.partition}  committed {number(each.offset)}"
            f"  end {number(each.log_end_offset)}  lag {number(each.lag)}  member {who}"
        )
    return "\n".join(lines)


def _delete(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        admin.delete_consumer_groups(options.group).raise_for_errors()
    print(f"deleted {', '.join(options.group)}")
    return 0
