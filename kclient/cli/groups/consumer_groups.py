"""The groups that a command is about, and their committed offsets."""

from collections.abc import Collection, Iterable

from kclient.admin.admin_client import AdminClient
from kclient.cli.output import show_errors, succeeded
from kclient.common.types import TopicPartition

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


def committed_offsets(
    admin: AdminClient, groups: Collection[str]
) -> tuple[dict[str, dict[TopicPartition, int]], int]:
    """Return the committed offsets by group, and 1 if some are not available."""
    if not groups:
        return {}, 0
    results = admin.list_offsets_of_consumer_groups(list(groups))
    status = show_errors("groups", results)
    found = {}
    for group, offsets in succeeded(results):
        status = max(status, show_errors("groups", offsets))
        found[group] = {partition: each.offset for partition, each in succeeded(offsets)}
    return found, status
