"""The groups that a command is about."""

from collections.abc import Iterable

from kclient.admin.admin_client import AdminClient

_TYPES = frozenset({"classic", "consumer", None})  # None of brokers before Kafka 3.8
_PROTOCOLS = frozenset({"consumer", ""})  # "" if a group only has committed offsets


def groups_of(admin: AdminClient, names: Iterable[str]) -> list[str]:
    """Return the given groups, each once; without any, every consumer group."""
    given = list(dict.fromkeys(names))
    return given or sorted(
        group.group_id
        for group in admin.list_groups()
        if group.group_type in _TYPES and group.protocol_type in _PROTOCOLS
    )
