"""Choice of the partition of a record, or of each row of a batch call."""

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError
from kclient.common.files import WireBytes
from kclient.producer.errors import UnknownPartitionError
from kclient.producer.partitioner import Partitioner, partition_of_key, partitions_of_keys
from kclient.producer.rows import ColumnRows, Rows
from kclient.producer.topic_info import PartitionQueue, TopicInfo

if TYPE_CHECKING:
    from kclient.producer.arrow_records import ArrowPart

_ROWS_AT_ONCE = 1 << 15


class PartitionChooser:
    """Chooses the named partition, else the configured partitioner's, else the key's.

    Records for which none of these decides go to the sticky partition (Kafka: KafkaProducer).

    Attributes:
        is_default: Whether no partitioner is configured and keys are not ignored.
    """

    def __init__(self, partitioner: Partitioner | None, *, ignore_keys: bool) -> None:
        self.is_default = partitioner is None and not ignore_keys
        self._partitioner = partitioner
        self._ignore_keys = ignore_keys

    def queue(
        self, info: TopicInfo, partition: int | None, key: bytes | None
    ) -> PartitionQueue | None:
        """Return the queue of a record, or None for the sticky one.

        Raises:
            InvalidArgumentError: The configured partitioner did not return a partition.
            UnknownPartitionError: It returned one that the topic does not have.
        """
        if partition is None:
            if self._partitioner is not None:
                partition = self._ask(self._partitioner, info, key)
            elif key is not None and not self._ignore_keys:
                partition = partition_of_key(key, info.partition_count)
        return None if partition is None else info.queues[partition]

    def _ask(self, partitioner: Partitioner, info: TopicInfo, key: bytes | None) -> int | None:
        chosen: object = partitioner(info.topic, key, info.partition_count)
        if isinstance(chosen, bool) or not isinstance(chosen, int):
            raise InvalidArgumentError(
                f"partitioner_class: it returned {describe(chosen)}, expected a partition or -1"
            )
        if chosen >= info.partition_count:
            raise UnknownPartitionError(info.topic, chosen, info.partition_count)
        return chosen if chosen >= 0 else None

    def rows_by_queue(
        self, info: TopicInfo, partition: int | None, rows: Rows
    ) -> list[tuple[PartitionQueue | None, Rows]]:
        """Group rows by queue, keeping their order within each.

        Raises:
            KafkaError: As `queue`.
        """
        keys = rows.keys
        if partition is not None or (
            self._partitioner is None and (keys is None or self._ignore_keys)
        ):
            return [(self.queue(info, partition, None), rows)]
        members: dict[PartitionQueue | None, list[int]] = {}
        if keys is None or not self.is_default:
            for row in range(len(rows)):
                key = None if keys is None else keys[row]
                members.setdefault(self.queue(info, None, key), []).append(row)
        else:
            queues = info.queues
            for row, number in enumerate(partitions_of_keys(keys, info.partition_count)):
                members.setdefault(None if number < 0 else queues[number], []).append(row)
        return [(queue, rows.select(chosen)) for queue, chosen in members.items()]

    def choose_each(self, info: TopicInfo, part: "ArrowPart") -> WireBytes | None:
        """Return the partition of each row that names one or for which the partitioner chooses one.

        Returns:
            Memory of one 32-bit integer per row, -1 for neither; or None if no row has one.

        Raises:
            KafkaError: As `queue`.
        """
        partitioner = self._partitioner
        if partitioner is None:
            return part.partitions
        count = part.columns.length
        named = part.partitions
        chosen = array("i", b"\xff" * (4 * count) if named is None else bytes(named))
        for row in range(count):
            if chosen[row] < 0:
                key = None if part.keys is None else part.keys.row(row)
                partition = self._ask(partitioner, info, key)
                chosen[row] = -1 if partition is None else partition
        return memoryview(chosen).cast("B")

    def columns_by_queue(
        self, info: TopicInfo, part: "ArrowPart", chosen: WireBytes | None
    ) -> Iterator[tuple[PartitionQueue | None, ColumnRows]]:
        """Yield rows grouped by queue, keeping their order within each.

        Rows are grouped some ten thousand at a time, so that all partitions receive records early.

        Args:
            info: The topic.
            part: The rows.
            chosen: Result of `choose_each`.
        """
        if chosen is None and (part.keys is None or not self.is_default):
            yield None, ColumnRows(part.columns)
            return
        queues, count = info.queues, info.partition_count
        if count == 1:
            yield queues[0], ColumnRows(part.columns)
            return
        for start in range(0, part.columns.length, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, part.columns.length)
            for partition, rows in part.columns.rows_by_partition(
                count, chosen, start, stop, by_key=self.is_default
            ):
                yield queues[partition] if partition >= 0 else None, ColumnRows(part.columns, rows)
