"""Resolution of start and end positions to offsets."""

from collections.abc import Iterable, Mapping

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import EARLIEST, LATEST
from kclient.spark.options.position_spec import PositionSpec
from kclient.spark.options.subscription import Subscription
from kclient.spark.source.cluster_offsets import ClusterOffsets

Offsets = dict[TopicPartition, int]


class OffsetResolver:
    """Resolves positions by the current state of the cluster.

    Args:
        cluster: Lookup of offsets.
        unmatched_is_latest: Whether a starting time after the last record resolves to the end.
    """

    def __init__(self, cluster: ClusterOffsets, *, unmatched_is_latest: bool) -> None:
        self._cluster = cluster
        self._unmatched_is_latest = unmatched_is_latest

    def start(self, spec: PositionSpec, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the start offset of each partition.

        Raises:
            ConfigError: The given partitions or offsets do not fit the existing ones, or no record
                is as late as the given time.
        """
        known = dict.fromkeys(partitions, 0)
        _check_named(spec, known)
        if spec.by_time:
            return self._start_by_time(spec, known)
        return self._resolved(spec, known)

    def end(self, spec: PositionSpec, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the end offset of each partition; raises as `start`."""
        known = dict.fromkeys(partitions, 0)
        _check_named(spec, known)
        if not spec.by_time:
            return self._resolved(spec, known)
        found = self._cluster.for_times(spec.times(known))
        ends = self._cluster.ends(one for one, offset in found.items() if offset is None)
        return {one: ends[one] if at is None else at for one, at in found.items()}

    def _start_by_time(self, spec: PositionSpec, known: Offsets) -> Offsets:
        times = spec.times(known)
        found = self._cluster.for_times(times)
        late = [one for one, offset in found.items() if offset is None]
        if late and not self._unmatched_is_latest:
            raise ConfigError(
                f"{spec.option}: got {times[late[0]]} for {late[0]}, expected a time before the "
                "last record; startingOffsetsByTimestampStrategy=latest starts at the end instead"
            )
        ends = self._cluster.ends(late)
        return {one: ends[one] if at is None else at for one, at in found.items()}

    def _resolved(self, spec: PositionSpec, known: Offsets) -> Offsets:
        if spec.everywhere == EARLIEST:
            return self._cluster.starts(known)
        ends = self._cluster.ends(known)
        if spec.everywhere == LATEST:
            return ends
        named = {one: spec.offsets[one] for one in known}
        starts = self._cluster.starts(one for one, at in named.items() if at == EARLIEST)
        special = {EARLIEST: starts, LATEST: ends}
        for one, at in named.items():
            if at > ends[one]:
                raise ConfigError(
                    f"{spec.option}: got {at} for {one}, expected at most {ends[one]}, its end"
                )
        return {one: special[at][one] if at in special else at for one, at in named.items()}


def check_topics(subscription: Subscription, partitions: Mapping[TopicPartition, object]) -> None:
    """Raise unless each topic and partition of the subscription exists.

    Raises:
        UnknownTopicOrPartitionError: A given topic or partition does not exist.
    """
    known = {partition.topic for partition in partitions}
    missing = sorted(subscription.names - known)
    missing += [str(one) for one in subscription.partitions if one not in partitions]
    if missing:
        raise UnknownTopicOrPartitionError(f"{subscription}: {', '.join(missing)} does not exist")


def _check_named(spec: PositionSpec, known: Offsets) -> None:
    if not spec.named:
        return
    for text, ones in (
        ("without", known.keys() - spec.named),
        ("with unknown", spec.named - known.keys()),
    ):
        if ones:
            raise ConfigError(
                f"{spec.option}: got offsets {text} {', '.join(map(str, sorted(ones)))}, expected "
                "every partition that is subscribed to and no other; -1 is the end, -2 the start"
            )
