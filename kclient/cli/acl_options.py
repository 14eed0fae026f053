"""Options of ``kclient acls``: resources, principals and operations of rules."""

import argparse
import ipaddress
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TypeVar

from kclient.common.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kclient.common.errors import ConfigError

E = TypeVar("E", bound=IntEnum)

_ALLOW, _DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
DEFINITE_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
ALL_PATTERNS = (PatternType.ANY, PatternType.MATCH, *DEFINITE_PATTERNS)

_OPERATIONS = tuple(each for each in AclOperation if each > AclOperation.ANY)
_NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
_READ, _WRITE, _DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
_PRODUCER = {
    ResourceType.TOPIC: (_WRITE, _DESCRIBE, AclOperation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (_WRITE, _DESCRIBE),
}
_CONSUMER = {ResourceType.TOPIC: (_READ, _DESCRIBE), ResourceType.GROUP: (_READ,)}

Rights = dict[ResourceType, list[AclOperation]]


def add_resource_options(
    parser: argparse.ArgumentParser, patterns: Sequence[PatternType], default: PatternType
) -> None:
    """Add the options that name resources."""
    for name in _NAMED:
        parser.add_argument(
            f"--{name.replace('_', '-')}", action="append", default=[], metavar="NAME",
            help=f"{name.replace('_', ' ')}; * for all, quoted; may be repeated",
        )  # fmt: skip
    parser.add_argument("--cluster", action="store_true", help="the cluster")
    parser.add_argument(
        "--resource-pattern-type",
        type=_member(patterns),
        default=default,
        metavar="TYPE",
        help=f"meaning of the names: {_names(patterns)} (default: {_shown(default)})",
    )


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say who may do what."""
    for permission in ("allow", "deny"):
        parser.add_argument(
            f"--{permission}-principal", action="append", default=[], type=principal,
            metavar="PRINCIPAL",
            help=f"principal to {permission}, such as User:alice; may be repeated",
        )  # fmt: skip
        parser.add_argument(
            f"--{permission}-host", action="append", default=[], type=_host, metavar="ADDRESS",
            help=f"address to {permission} (default: any); may be repeated",
        )  # fmt: skip
    parser.add_argument(
        "--operation",
        action="append",
        default=[],
        type=_member(_OPERATIONS),
        metavar="OPERATION",
        help=f"{_names(_OPERATIONS)} (default: All); may be repeated",
    )
    parser.add_argument(
        "--producer", action="store_true", help="what a producer needs of topic, transactional id"
    )
    parser.add_argument(
        "--consumer", action="store_true", help="what a consumer needs of topic and group"
    )
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="with --producer: what an idempotent producer needs of the cluster",
    )


def _host(text: str) -> str:
    """Return an address in the form in which brokers compare it, that of Java; other text as it is.

    An IPv6 address has no abbreviation there: ``::1`` is ``0:0:0:0:0:0:0:1``.
    """
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    shown = ":".join(f"{int(address) >> shift & 0xFFFF:x}" for shift in range(112, -1, -16))
    return f"{shown}%{address.scope_id}" if address.scope_id else shown


def principal(text: str) -> str:
    """Return a principal, for `argparse`."""
    kind, _, name = text.partition(":")
    if not (kind and name):
        raise argparse.ArgumentTypeError(f"got {text!r:.80}, expected TYPE:NAME, as User:alice")
    return text


def resources(options: argparse.Namespace) -> list[ResourcePatternFilter]:
    """Return the named resources."""
    pattern_type = options.resource_pattern_type
    found = [
        ResourcePatternFilter(kind, name, pattern_type)
        for option, kind in _NAMED.items()
        for name in dict.fromkeys(getattr(options, option))
    ]
    if options.cluster:
        found.append(ResourcePatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    if any(not each.name for each in found):
        raise ConfigError("resource: got an empty name, expected at least one character")
    return found


def bindings(options: argparse.Namespace) -> list[AclBinding]:
    """Return the rules to add.

    Raises:
        ConfigError: Resources or principals are missing, or an operation does not exist.
    """
    wanted = _binding_parts(options)
    if not any(entries for _, entries in wanted):
        raise ConfigError("acls: got no principal, expected --allow-principal or --deny-principal")
    _warn_of_hosts([*options.allow_host, *options.deny_host])
    return [
        AclBinding(ResourcePattern(kind, name or "", pattern_type), entry)
        for (kind, name, pattern_type), entries in wanted
        for entry in entries
    ]


def filters(options: argparse.Namespace) -> list[AclBindingFilter]:
    """Return conditions on the rules to remove: all of the resources without a principal.

    Raises:
        ConfigError: Resources are missing, or an operation does not exist.
    """
    found = []
    for resource, entries in _binding_parts(options):
        conditions = [AccessControlEntryFilter(*entry) for entry in entries]
        if not conditions:
            if _is_about_principals(options):
                raise ConfigError(
                    "acls: got no principal, expected --allow-principal or --deny-principal with "
                    "--operation, --producer, --consumer and hosts"
                )
            conditions = [AccessControlEntryFilter()]
        found += [AclBindingFilter(resource, condition) for condition in conditions]
    return found


def _is_about_principals(options: argparse.Namespace) -> bool:
    return bool(
        options.operation
        or options.allow_host
        or options.deny_host
        or options.producer
        or options.consumer
    )


def _binding_parts(
    options: argparse.Namespace,
) -> list[tuple[ResourcePatternFilter, list[AccessControlEntry]]]:
    named = resources(options)
    if options.producer or options.consumer:
        _check_convenience(options)
        rights = _rights(options)
        if options.idempotent:
            cluster = ResourcePatternFilter(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
            named = [*named, cluster]
        return [(each, _entries(options, rights.get(each.resource_type, []))) for each in named]
    if options.idempotent:
        raise ConfigError("--idempotent: expected --producer, too")
    if not named:
        raise ConfigError("acls: got no resource, expected one, such as --topic NAME")
    operations = options.operation or [AclOperation.ALL]
    _check_operations(named, operations)
    return [(each, _entries(options, operations)) for each in named]


def _check_convenience(options: argparse.Namespace) -> None:
    what = "--consumer" if options.consumer else "--producer"
    if options.operation or options.deny_principal or options.deny_host:
        raise ConfigError(f"{what}: expected neither --operation nor --deny-… with it")
    if not options.topic:
        raise ConfigError(f"{what}: got no topic, expected --topic NAME")
    if options.consumer and not options.group:
        raise ConfigError("--consumer: got no group, expected --group NAME")
    for option, is_used in (
        ("group", options.consumer),
        ("transactional_id", options.producer),
        ("cluster", False),
        ("delegation_token", False),
        ("user_principal", False),
    ):
        if getattr(options, option) and not is_used:
            raise ConfigError(f"{what}: got --{option.replace('_', '-')}, which it does not need")
    if options.idempotent and not options.producer:
        raise ConfigError("--idempotent: expected --producer, too")


def _rights(options: argparse.Namespace) -> Rights:
    """Return what a producer and a consumer need, by kind of resource."""
    rights: Rights = {}
    for is_wanted, needs in ((options.producer, _PRODUCER), (options.consumer, _CONSUMER)):
        for kind, operations in needs.items() if is_wanted else ():
            known = rights.setdefault(kind, [])
            known += [each for each in operations if each not in known]
    if options.idempotent:
        rights[ResourceType.CLUSTER] = [AclOperation.IDEMPOTENT_WRITE]
    return rights


def _entries(
    options: argparse.Namespace, operations: Iterable[AclOperation]
) -> list[AccessControlEntry]:
    return [
        AccessControlEntry(principal_name, host, operation, permission)
        for permission, principals, hosts in (
            (_ALLOW, options.allow_principal, options.allow_host),
            (_DENY, options.deny_principal, options.deny_host),
        )
        for principal_name in dict.fromkeys(principals)
        for host in dict.fromkeys(hosts or [WILDCARD])
        for operation in dict.fromkeys(operations)
    ]


def _check_operations(
    named: Iterable[ResourcePatternFilter], operations: Iterable[AclOperation]
) -> None:
    for resource in named:
        supported = SUPPORTED_OPERATIONS[resource.resource_type]
        for operation in operations:
            if operation is not AclOperation.ALL and operation not in supported:
                raise ConfigError(
                    f"--operation: got {_shown(operation)}, but a {_shown(resource.resource_type)} "
                    f"has {_names(sorted(supported))}"
                )


def _warn_of_hosts(hosts: Iterable[str]) -> None:
    """Warn of hosts that no connection has: brokers compare the text of the address."""
    for host in hosts:
        try:
            if host != WILDCARD:
                ipaddress.ip_address(host)
        except ValueError:
            print(
                f"host {host!r:.80} never matches: a broker compares the text of IP addresses, "
                "without names and networks",
                file=sys.stderr,
            )


def _member(members: Sequence[E]) -> Callable[[str], E]:
    """Return a parser of members: Describe-Configs, DescribeConfigs and describe_configs."""
    by_name = {member.name.replace("_", ""): member for member in members}

    def parse(text: str) -> E:
        found = by_name.get(text.upper().replace("_", "").replace("-", ""))
        if found is None:
            raise argparse.ArgumentTypeError(f"got {text!r:.80}, expected {_names(members)}")
        return found

    return parse


def _names(members: Iterable[IntEnum]) -> str:
    return ", ".join(_shown(member) for member in members)


def _shown(member: IntEnum) -> str:
    """Return a name as Kafka's tools print it, such as DescribeConfigs."""
    return member.name.title().replace("_", "")
