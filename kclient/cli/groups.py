"""``kclient groups``: lists, describes and deletes consumer groups."""

import argparse
import sys
from collections.abc import Mapping

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import ConsumerGroupDescription
from kclient.cli.common_options import add_connection_options, client_options
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer import Consumer

_DEAD = "Dead"
"""State that brokers return for a group that does not exist."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient groups`` to the command line."""
    parser = commands.add_parser("groups", help="list, describe and delete consumer groups")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list every group with its state")
    listing.set_defaults(run=_list)
    describing = actions.add_parser("describe", help="show members, committed offsets and lag")
    describing.add_argument("group", nargs="+")
    describing.set_defaults(run=_describe)
    deleting = actions.add_parser("delete", help="delete groups that have no members")
    deleting.add_argument("group", nargs="+")
    deleting.set_defaults(run=_delete)
    for action in (listing, describing, deleting):
        add_connection_options(action)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        groups = admin.list_groups()
    for group in sorted(groups):
        print(f"{group.group_id}  {group.state or '-'}  {group.protocol_type or '-'}")
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
                _show(group, offsets, reader.end_offsets({*offsets, *assigned}))
    return 1 if missing else 0


def _show(
    group: ConsumerGroupDescription,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ends: dict[TopicPartition, int],
) -> None:
    print(
        f"group {group.group_id}  state {group.state}  assignor {group.partition_assignor or '-'}"
        f"  coordinator {group.coordinator}"
    )
    owners = {tp: member for member in group.members for tp in member.assignment}
    for partition in sorted(owners.keys() | offsets.keys()):
        committed = offsets.get(partition)
        lag = ends[partition] - committed.offset if committed is not None else "-"
        owner = owners.get(partition)
        who = f"{owner.member_id} at {owner.host}" if owner is not None else "-"
        print(
            f"  {partition}  committed {committed.offset if committed else '-'}"
            f"  end {ends.get(partition, '-')}  lag {lag}  member {who}"
        )


def _delete(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        admin.delete_consumer_groups(options.group).raise_for_errors()
    print(f"deleted {', '.join(options.group)}")
    return 0
