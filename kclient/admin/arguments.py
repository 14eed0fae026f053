"""Checks of the arguments of the admin client's methods, made before any request.

Each raises `InvalidTypeError` or `InvalidArgumentError` with the expected form.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from kclient.admin.admin_types import OffsetSpec
from kclient.admin.new_topic import NewTopic
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.offsets import check_offsets
from kclient.common.types import OffsetAndMetadata, TopicPartition, check_topic_name
from kclient.common.uuids import text_to_uuid

T = TypeVar("T")

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


def check_list(what: str, items: T | Iterable[T], kind: type[T] | tuple[type[T], ...]) -> list[T]:
    """Return a non-empty list; a single item becomes a list of one.

    Args:
        what: The argument's name.
        items: The argument.
        kind: Class of the items, which are not checked, or classes.
    """
    if isinstance(items, kind):
        return [items]
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise InvalidTypeError(f"{what}: got {describe(items)}, expected a list")
    listed = list(items)
    if not listed:
        raise InvalidArgumentError(f"{what}: got {describe(items)}, expected at least one")
    return listed


def check_group_id(group_id: object) -> str:
    """Return a valid group id."""
    if not isinstance(group_id, str):
        raise InvalidTypeError(f"group_id: got {describe(group_id)}, expected a str")
    if not group_id:
        raise InvalidArgumentError("group_id: got '', expected a non-empty str")
    return group_id


def check_group_ids(group_ids: str | Iterable[str]) -> list[str]:
    """Return a non-empty list of valid group ids; a single one becomes a list of one."""
    return [check_group_id(group_id) for group_id in check_list("group_ids", group_ids, str)]


def check_new_topic(topic: object) -> None:
    """Reject a topic that no broker would create."""
    if not isinstance(topic, NewTopic):
        raise InvalidTypeError(f"topics: got {describe(topic)}, expected a NewTopic")
    check_topic_name(topic.name)
    for name in ("num_partitions", "replication_factor"):
        count = getattr(topic, name)
        if count != -1:
            check_int(f"{name} of topic {topic.name!r}", count, 1, ", or -1 for the default")
    if topic.configs is not None:
        check_str_values(f"configs of topic {topic.name!r}", topic.configs)


def check_topic_names(names: str | Iterable[str]) -> list[str]:
    """Return a non-empty list of valid names of topics; a single one becomes a list of one."""
    return [check_topic_name(name) for name in check_list("names", names, str)]


def check_topic_ids(
    names: str | Iterable[str] | None, topic_ids: str | Iterable[str] | None
) -> dict[str, bytes]:
    """Return a non-empty dict of topic ids by their text; there must not be names."""
    if names is not None or topic_ids is None:
        given = "nothing" if names is None else "it with names"
        raise InvalidArgumentError(f"topic_ids: got {given}, expected names or topic_ids")
    checked = {}
    for text in check_list("topic_ids", topic_ids, str):
        if not isinstance(text, str):
            raise InvalidTypeError(f"topic_ids: got {describe(text)}, expected a str")
        try:
            checked[text] = text_to_uuid(text)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"topic_ids: {error}") from None
    return checked


def check_str_values(what: str, configs: object) -> None:
    """Reject anything but a mapping of str to str."""
    if not isinstance(configs, Mapping):
        raise InvalidTypeError(f"{what}: got {describe(configs)}, expected a dict of str")
    for name, value in configs.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidTypeError(
                f"{what}: got {name!r:.80}: {describe(value)}, expected a str for each name; write "
                "numbers and booleans as in Kafka's documentation"
            )


def check_total_counts(total_counts: object) -> None:
    """Reject anything but a non-empty mapping of topic to partition count."""
    if not isinstance(total_counts, Mapping):
        raise InvalidTypeError(
            f"total_counts: got {describe(total_counts)}, expected a dict of topic to total"
        )
    if not total_counts:
        raise InvalidArgumentError("total_counts: got {}, expected at least one topic")
    for name, total in total_counts.items():
        check_topic_name(name)
        check_int(f"total_counts[{name!r}]", total, 1)


def check_int(what: str, number: object, low: int, more: str = "", *, high: int = _MAX_INT) -> None:
    """Reject anything but an int from `low` to `high`, by default the maximum of an int32."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidTypeError(f"{what}: got {describe(number)}, expected an int >= {low}{more}")
    if not low <= number <= high:
        raise InvalidArgumentError(
            f"{what}: got {describe(number)}, expected {low} to {high}{more}"
        )


def check_partition(partition: object) -> None:
    """Reject anything but a TopicPartition, or an equal tuple."""
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise InvalidTypeError(f"partitions: got {describe(partition)}, expected a TopicPartition")
    topic, number = partition
    check_topic_name(topic)
    check_int(f"partition of {topic!r}", number, 0)


def check_partitions(
    partitions: TopicPartition | Iterable[TopicPartition],
) -> list[TopicPartition]:
    """Return a non-empty list of partitions; a single one becomes a list of one."""
    wanted = check_list("partitions", partitions, TopicPartition)
    for partition in wanted:
        check_partition(partition)
    return [TopicPartition(*partition) for partition in wanted]


def check_names(what: str, given: object) -> list[str]:
    """Return a list of names, which may be empty."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidTypeError(f"{what}: got {describe(given)}, expected a list of names")
    names = list(given)
    for name in names:
        if not isinstance(name, str):
            raise InvalidTypeError(f"{what}: got {describe(name)} in the list, expected a str")
    return names


def check_members(members: object) -> list[str] | None:
    """Return group instance ids; None for all members."""
    if members is None:
        return None
    if isinstance(members, str):
        members = [members]
    instances = check_names("members", members)
    if not instances or "" in instances:
        raise InvalidArgumentError(
            f"members: got {describe(members)}, expected group instance ids; None removes every "
            "member"
        )
    return instances


def check_offset_specs(specs: object) -> dict[TopicPartition, OffsetSpec]:
    """Return what to look up by partition, at least one."""
    checked = {}
    for partition, spec in _by_partition("topic_partition_offsets", specs, "OffsetSpec"):
        if not isinstance(spec, OffsetSpec):
            raise InvalidTypeError(
                f"topic_partition_offsets[{partition}]: got {describe(spec)}, expected an "
                "OffsetSpec, such as OffsetSpec.earliest() or OffsetSpec.for_timestamp(ms)"
            )
        check_int(f"timestamp_ms of {partition}", spec.timestamp_ms, -5, high=_MAX_LONG)
        checked[partition] = spec
    return checked


def check_records_to_delete(offsets: object) -> dict[TopicPartition, int]:
    """Return the first offset to keep by partition, at least one; -1 is the high watermark."""
    checked = {}
    for partition, offset in _by_partition("records_to_delete", offsets, "int"):
        what, more = f"records_to_delete[{partition}]", "; -1 is the high watermark"
        check_int(what, offset, -1, more, high=_MAX_LONG)
        assert isinstance(offset, int)  # noqa: S101 (narrows for the type checker)
        checked[partition] = offset
    return checked


def check_start_offsets(offsets: object) -> dict[TopicPartition, int]:
    """Return first offsets to read by partition, at least one."""
    checked = {}
    for partition, offset in _by_partition("offsets", offsets, "int"):
        check_int(f"offsets[{partition}]", offset, 0, high=_MAX_LONG)
        assert isinstance(offset, int)  # noqa: S101 (narrows for the type checker)
        checked[partition] = offset
    return checked


def check_new_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit by partition, at least one."""
    return check_offsets(dict(_by_partition("offsets", offsets, "OffsetAndMetadata, or int")))


def _by_partition(what: str, given: object, of: str) -> list[tuple[TopicPartition, object]]:
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            f"{what}: got {describe(given)}, expected a dict of TopicPartition to {of}"
        )
    if not given:
        raise InvalidArgumentError(f"{what}: got {{}}, expected at least one partition")
    for partition in given:
        check_partition(partition)
    return [(TopicPartition(*partition), value) for partition, value in given.items()]
