"""``kclient acls``: lists, adds and removes access rules."""

import argparse
import sys
from collections.abc import Iterable

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.acl_options import (
    ALL_PATTERNS,
    DEFINITE_PATTERNS,
    add_resource_options,
    add_rule_options,
    bindings,
    filters,
    principal,
    resources,
)
from kclient.cli.common_options import add_connection_options, client_options
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, show, show_errors, succeeded, table
from kclient.common.acls import (
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    PatternType,
    ResourcePatternFilter,
)
from kclient.common.errors import ConfigError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient acls``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list rules, all of them or those of resources")
    listing.add_argument(
        "--principal",
        action="append",
        default=[],
        type=principal,
        help="list the rules of this principal only; may be repeated",
    )
    add_resource_options(listing, ALL_PATTERNS, PatternType.ANY)
    add_examples(
        listing,
        "kclient acls list",
        "kclient acls list --topic orders --principal User:alice --json",
    )
    listing.set_defaults(run=_list)
    adding = actions.add_parser("add", help="add rules")
    add_resource_options(adding, DEFINITE_PATTERNS, PatternType.LITERAL)
    add_examples(
        adding,
        "kclient acls add --topic orders --allow-principal User:alice --producer",
        "kclient acls add --topic orders --group billing --allow-principal User:bob --consumer",
        "kclient acls add --topic billing- --resource-pattern-type prefixed "
        "--deny-principal User:carol --operation Write",
    )
    adding.set_defaults(run=_add)
    removing = actions.add_parser("remove", help="remove rules, after a question")
    add_resource_options(removing, ALL_PATTERNS, PatternType.LITERAL)
    removing.add_argument("--force", action="store_true", help="remove them without a question")
    add_examples(
        removing,
        "kclient acls remove --topic orders --allow-principal User:alice --operation Read --force",
    )
    removing.set_defaults(run=_remove)
    for action in (adding, removing):
        add_rule_options(action)
    for action in (listing, adding, removing):
        add_json_option(action)
        add_connection_options(action)


def _list(options: argparse.Namespace) -> int:
    wanted = [
        AclBindingFilter(resource, AccessControlEntryFilter(name))
        for resource in resources(options) or [ResourcePatternFilter()]
        for name in options.principal or [None]
    ]
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        _show(options, (rule for each in wanted for rule in admin.describe_acls(each)))
    return 0


def _add(options: argparse.Namespace) -> int:
    rules = bindings(options)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.create_acls(rules)
    _show(options, (rule for rule, _ in succeeded(results)))
    return show_errors("acls", results)


def _remove(options: argparse.Namespace) -> int:
    wanted = filters(options)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        if not options.force:
            found = {rule: None for each in wanted for rule in admin.describe_acls(each)}
            if found and not _confirm(list(found)):
                print("nothing was removed")
                return 1
            # No others, even if some have been added since.
            wanted = [rule.to_filter() for rule in found]
        results = admin.delete_acls(wanted) if wanted else None
    removed = [] if results is None else [rule for _, each in succeeded(results) for rule in each]
    status = 0 if results is None else show_errors("acls", results)
    if not removed and not status:
        print("kclient acls: no rule matches", file=sys.stderr)
        return 1
    _show(options, removed)
    return status


def _confirm(rules: list[AclBinding]) -> bool:
    """Return whether the user agrees to remove rules."""
    if not sys.stdin.isatty():
        raise ConfigError("acls remove: there is no terminal to ask; use --force")
    print(_table(rules))
    return input("Remove these rules? (y/n) ").strip().lower() in {"y", "yes"}


def _show(options: argparse.Namespace, rules: Iterable[AclBinding]) -> None:
    found = sorted(set(rules))
    if options.json:
        for rule in found:
            show(options, "", rule)
    elif found:
        print(_table(found))


def _table(rules: Iterable[AclBinding]) -> str:
    columns = ("permission", "operation", "principal", "host", "resource", "pattern", "name")
    rows = [
        (
            entry.permission_type.name,
            entry.operation.name,
            entry.principal,
            entry.host,
            pattern.resource_type.name,
            pattern.pattern_type.name,
            pattern.name,
        )
        for pattern, entry in sorted(set(rules))
    ]
    return table(columns, rows)
