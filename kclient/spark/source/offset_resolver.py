"""From what the user said of start and end to offsets."""

from collections.abc import Iterable, Mapping

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.offsets.offset_json import EARLIEST, LATEST
from kclient.spark.offsets.position_spec import PositionSpec
from kclient.spark.options.subscription import Subscription
from kclient.spark.source.cluster_offsets import ClusterOffsets

Offsets = dict[TopicPartition, int]


class OffsetResolver:
    """Resolves starts and ends, as the cluster stands when it is asked.

    Args:
        cluster: Where offsets are looked up.
        unmatched_is_latest: Whether a starting time after the last record means the end.
    """

    def __init__(self, cluster: ClusterOffsets, *, unmatched_is_latest: bool) -> None:
        self._cluster = cluster
        self._unmatched_is_latest = unmatched_is_latest

    def start(self, spec: PositionSpec, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where to start in each partition.

        Raises:
            ConfigError: Partitions or offsets that were named do not fit those that there are, or
                no record is so late.
        """
        known = dict.fromkeys(partitions, 0)
        _check_named(spec, known)
        if spec.by_time:
            return self._start_by_time(spec, known)
        return self._resolved(spec, known)

    def end(self, spec: PositionSpec, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where to end in each partition; raises as `start`."""
        known = dict.fromkeys(partitions, 0)
        _check_named(spec, known)
        if not spec.by_time:
            return self._resolved(spec, known)
        found = self._cluster.at_times(spec.times(known))
        ends = self._cluster.ends(one for one, offset in found.items() if offset is None)
        return {one: ends[one] if at is None else at for one, at in found.items()}

    # --- inside

    def _start_by_time(self, spec: PositionSpec, known: Offsets) -> Offsets:
        times = spec.times(known)
        found = self._cluster.at_times(times)
        late = [one for one, offset in found.items() if offset is None]
        if late and not self._unmatched_is_latest:
            raise ConfigError(
                f"{spec.what}: got {times[late[0]]} for {late[0]}, expected a time that a record "
                "follows; startingOffsetsByTimestampStrategy=latest starts at the end there"
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
                    f"{spec.what}: got {at} for {one}, expected at most {ends[one]}, its end"
                )
        return {one: special[at][one] if at in special else at for one, at in named.items()}


def check_topics(subscription: Subscription, partitions: Mapping[TopicPartition, object]) -> None:
    """Refuse to begin without all that was named.

    Raises:
        UnknownTopicOrPartitionError: A topic or partition that was named does not exist.
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
        ("with the unknown", spec.named - known.keys()),
    ):
        if ones:
            raise ConfigError(
                f"{spec.what}: got offsets {text} {', '.join(map(str, sorted(ones)))}, expected "
                "every partition that is subscribed to and no other; -1 is the end, -2 the start"
            )
