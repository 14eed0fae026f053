"""``kclient configs``: reads and changes settings of topics, brokers, groups, and quotas."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import (
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
)
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    key_values,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, show, show_errors, show_rows, succeeded
from kclient.cli.quotas import (
    add_quota_options,
    alter_quotas,
    quota_entity,
    quotas_of,
    show_quotas,
)
from kclient.common.errors import ConfigError
from kclient.common.java_properties import read_properties

_NAMED = {
    "topic": (ConfigResourceType.TOPIC, "NAME", "a topic"),
    "broker": (ConfigResourceType.BROKER, "ID", "a broker, by its id"),
    "broker-logger": (ConfigResourceType.BROKER_LOGGER, "ID", "log levels of a broker"),
    "group": (ConfigResourceType.GROUP, "NAME", "a group"),
    "client-metrics": (ConfigResourceType.CLIENT_METRICS, "NAME", "a subscription to metrics"),
}
_OF_BROKERS = {"broker", "broker-logger"}
_COLUMNS = ("resource_type", "resource_name", "name", "value", "source")
_HIDDEN = "[hidden]"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient configs``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_get(actions.add_parser("get", help="show settings that differ from the default"))
    _add_set(actions.add_parser("set", help="change settings"))
    _add_delete(actions.add_parser("delete", help="remove settings, so that defaults apply"))
    for action in actions.choices.values():
        _add_resources(action)
        add_json_option(action)
        add_connection_options(action)


def _add_resources(parser: argparse.ArgumentParser) -> None:
    for option, (_, metavar, what) in _NAMED.items():
        parser.add_argument(
            f"--{option}",
            action="append",
            default=[],
            type=whole_number(0) if option in _OF_BROKERS else str,
            metavar=metavar,
            help=f"{what}; may be repeated",
        )
    parser.add_argument(
        "--broker-defaults", action="store_true", help="the defaults of all brokers"
    )
    add_quota_options(parser)


def _add_get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "key", nargs="*", metavar="KEY", help="settings to show (default: those that are set)"
    )
    parser.add_argument("--all", action="store_true", help="show defaults, too")
    add_examples(
        parser,
        "kclient configs get --topic orders",
        "kclient configs get --topic orders retention.ms cleanup.policy --json",
        "kclient configs get --broker 1 --all",
        "kclient configs get --broker-defaults",
        "kclient configs get --user alice",
    )
    parser.set_defaults(run=_get)


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("setting", nargs="*", metavar="KEY=VALUE", help="settings to set")
    for option, what in (("append", "items to add to a list"), ("subtract", "items to remove")):
        parser.add_argument(
            f"--{option}", action="append", default=[], metavar="KEY=ITEM,…",
            help=f"{what}; may be repeated",
        )  # fmt: skip
    parser.add_argument(
        "--from-file",
        type=Path,
        metavar="FILE",
        help="settings of a properties file, as for a password, which others could see otherwise",
    )
    _add_dry_run(parser)
    add_examples(
        parser,
        "kclient configs set --topic orders retention.ms=3600000 segment.ms=600000",
        "kclient configs set --topic orders --append cleanup.policy=compact --dry-run",
        "kclient configs set --broker-defaults log.cleaner.threads=2",
        "kclient configs set --user alice producer_byte_rate=1048576",
        "kclient configs set --group billing consumer.session.timeout.ms=50000",
    )
    parser.set_defaults(run=_set)


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="+", metavar="KEY", help="settings to remove")
    _add_dry_run(parser)
    add_examples(
        parser,
        "kclient configs delete --topic orders retention.ms",
        "kclient configs delete --broker 1 log.cleaner.threads --dry-run",
    )
    parser.set_defaults(run=_delete)


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="let the cluster check the change, but not apply it"
    )


def _resources(options: argparse.Namespace) -> list[ConfigResource]:
    """Return the resources that the options name.

    Raises:
        ConfigError: They name none.
    """
    found = [
        ConfigResource(kind, str(name))
        for option, (kind, _, _) in _NAMED.items()
        for name in getattr(options, option.replace("-", "_"))
    ]
    if options.broker_defaults:
        found.append(ConfigResource(ConfigResourceType.BROKER, ""))
    if not found:
        names = ", ".join(f"--{option}" for option in _NAMED)
        raise ConfigError(
            f"expected {names}, --broker-defaults, or an entity with quotas such as --user"
        )
    return list(dict.fromkeys(found))


def _entity(options: argparse.Namespace) -> ClientQuotaEntity | None:
    """Return the entity with quotas that the options name instead of resources, or None."""
    entity = quota_entity(options)
    given = [getattr(options, option.replace("-", "_")) for option in _NAMED]
    if entity is not None and (any(given) or options.broker_defaults):
        raise ConfigError("configs: got an entity with quotas and others, expected one kind")
    return entity


def _get(options: argparse.Namespace) -> int:
    entity = _entity(options)
    if entity is not None:
        return show_quotas(options, entity, options.key)
    resources = _resources(options)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.describe_configs(resources)
    status = show_errors("configs", results)
    rows: list[dict[str, object]] = []
    for resource, entries in succeeded(results):
        missing = [key for key in options.key if key not in entries]
        for key in missing:
            print(f"kclient configs: {_name(resource)} has no setting {key!r}", file=sys.stderr)
        status = max(status, 1 if missing else 0)
        rows += (_row(options, resource, each) for each in _chosen(options, entries.values()))
    show_rows(options, _COLUMNS, rows)
    return status


def _chosen(options: argparse.Namespace, entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    if options.key:
        return sorted(each for each in entries if each.name in options.key)
    return sorted(each for each in entries if options.all or not each.is_default)


def _row(
    options: argparse.Namespace, resource: ConfigResource, entry: ConfigEntry
) -> dict[str, object]:
    row = {"resource_type": resource.type, "resource_name": resource.name, **entry._asdict()}
    if not options.json:
        row["resource_type"], row["source"] = resource.type.name, entry.source.name
        row["value"] = _HIDDEN if entry.is_sensitive else entry.value
    return row


def _set(options: argparse.Namespace) -> int:
    entity = _entity(options)
    if entity is not None:
        if not options.setting or options.append or options.subtract or options.from_file:
            raise ConfigError(
                "configs set: expected quotas as KEY=VALUE, such as request_percentage=5"
            )
        return alter_quotas(options, entity, quotas_of(options.setting))
    changes = [
        AlterConfigOp(name, str(value), kind)
        for kind, option, pairs in (
            (AlterConfigOpType.SET, "configs set", options.setting),
            (AlterConfigOpType.APPEND, "--append", options.append),
            (AlterConfigOpType.SUBTRACT, "--subtract", options.subtract),
        )
        for name, value in key_values(option, pairs).items()
    ]
    if options.from_file is not None:
        given = read_properties(options.from_file)
        changes += (AlterConfigOp(name, line.value) for name, line in given.items())
    if not changes:
        raise ConfigError("configs set: expected KEY=VALUE, --append, --subtract or --from-file")
    return _alter(options, changes)


def _delete(options: argparse.Namespace) -> int:
    entity, keys = _entity(options), dict.fromkeys(options.key)
    if entity is not None:
        return alter_quotas(options, entity, keys)
    return _alter(options, [AlterConfigOp(key, None, AlterConfigOpType.DELETE) for key in keys])


def _alter(options: argparse.Namespace, changes: Sequence[AlterConfigOp]) -> int:
    resources = _resources(options)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.incremental_alter_configs(
            dict.fromkeys(resources, changes), validate_only=options.dry_run
        )
    done = "could alter" if options.dry_run else "altered"
    names = [change.name for change in changes]
    for resource, _ in succeeded(results):
        fields = {
            "resource_type": resource.type,
            "resource_name": resource.name,
            "names": names,
            "dry_run": options.dry_run,
        }
        show(options, f"{done} {', '.join(names)} of {_name(resource)}", fields)
    return show_errors("configs", results)


def _name(resource: ConfigResource) -> str:
    kind = resource.type.name.lower().replace("_", " ")
    return f"{kind} {resource.name}" if resource.name else "the defaults of brokers"
