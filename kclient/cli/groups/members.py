"""``kclient groups delete``, ``delete-offsets`` and ``remove-members``."""

import argparse

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.common_options import client_options
from kclient.cli.examples import add_examples
from kclient.cli.output import show, show_errors, succeeded
from kclient.cli.partition_scope import FORMS, partitions_of, scope


def add_delete_action(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient groups delete``."""
    parser.add_argument("group", nargs="+")
    add_examples(parser, "kclient groups delete billing")
    parser.set_defaults(run=_delete)


def add_delete_offsets_action(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient groups delete-offsets``."""
    parser.add_argument("group")
    parser.add_argument(
        "--topic", action="append", required=True, type=scope, metavar="TOPIC[:P,P]",
        help=f"partitions: {FORMS}; may be repeated",
    )  # fmt: skip
    add_examples(
        parser,
        "kclient groups delete-offsets billing --topic orders:0",
        "kclient groups delete-offsets billing --topic payments --topic orders",
    )
    parser.set_defaults(run=_delete_offsets)


def add_remove_members_action(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient groups remove-members``."""
    parser.description = (
        "Remove members from a group. The partitions are assigned to the others at once; a member "
        "that still runs joins again."
    )
    parser.add_argument("group")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument(
        "--instance-id",
        action="append",
        metavar="ID",
        help="group.instance.id of a static member; may be repeated",
    )
    chosen.add_argument("--all", action="store_true", help="remove every member")
    add_examples(
        parser,
        "kclient groups remove-members billing --instance-id billing-1",
        "kclient groups remove-members billing --all",
    )
    parser.set_defaults(run=_remove_members)


def _delete(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.delete_consumer_groups(list(dict.fromkeys(options.group)))
    for group, _ in succeeded(results):
        show(options, f"deleted {group}", {"group_id": group})
    return show_errors("groups", results)


def _delete_offsets(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        wanted = partitions_of(admin, options.topic)
        results = admin.delete_consumer_group_offsets(options.group, wanted)
    for partition, _ in succeeded(results):
        text = f"deleted the offset of {options.group} in {partition}"
        show(options, text, {"group_id": options.group, **partition._asdict()})
    return show_errors("groups", results)


def _remove_members(options: argparse.Namespace) -> int:
    members = None if options.all else list(dict.fromkeys(options.instance_id))
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.remove_members_from_consumer_group(options.group, members)
    for member, _ in succeeded(results):
        text = f"removed {member} from {options.group}"
        show(options, text, {"group_id": options.group, "member": member})
    return show_errors("groups", results)
