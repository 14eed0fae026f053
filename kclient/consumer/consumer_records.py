"""Records returned by one poll (Kafka: ConsumerRecords), and whether they were received."""

import weakref
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Generic, overload

from kclient.common.config_def import describe
from kclient.common.errors import InvalidTypeError
from kclient.common.foreign_names import WithForeignNames
from kclient.common.types import K_co, TopicPartition, V_co
from kclient.consumer.foreign_names import RECORDS_NAMES
from kclient.record import ConsumerRecord


class Receipt(weakref.ref["ConsumerRecords[object, object]"]):
    """Whether the application has received the records of a poll; refers to its result weakly.

    A poll in a thread may be abandoned: the task that awaited it was cancelled, and its result is
    released without being used. The application has received records once it has used the result
    in any way but ``repr()``.

    Attributes:
        is_read: Whether the records were used.
    """

    __slots__ = ("is_read",)

    is_read: bool

    def is_lost(self) -> bool:
        """Return whether the records were released without being used."""
        return not self.is_read and self() is None


class ConsumerRecords(Generic[K_co, V_co], metaclass=WithForeignNames, foreign_names=RECORDS_NAMES):
    """Records of one poll, by partition and in the order of their offsets.

    ``ConsumerRecords[K, V]`` names the types of the records' keys and values.

    Iteration yields all records; ``len()`` counts them; false if there are none.

    Attributes:
        receipt: Set by the consumer.
    """

    __slots__ = ("__weakref__", "_by_partition", "receipt")

    def __init__(
        self, by_partition: Mapping[TopicPartition, list[ConsumerRecord[K_co, V_co]]]
    ) -> None:
        self._by_partition = by_partition
        self.receipt = _NOT_POLLED

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have records."""
        self.receipt.is_read = True
        return list(self._by_partition)

    def records(self, partition: TopicPartition) -> list[ConsumerRecord[K_co, V_co]]:
        """Return the records of a partition, an empty list if there are none."""
        self.receipt.is_read = True
        return self._by_partition.get(partition, [])

    @overload
    def __getitem__(self, index: int) -> ConsumerRecord[K_co, V_co]: ...

    @overload
    def __getitem__(self, index: slice) -> list[ConsumerRecord[K_co, V_co]]: ...

    def __getitem__(
        self, index: int | slice
    ) -> ConsumerRecord[K_co, V_co] | list[ConsumerRecord[K_co, V_co]]:
        """Return a record, or a list for a slice, in the order of the iteration.

        Raises:
            IndexError: There is no such record.
            InvalidTypeError: The index is a partition, or no integer.
        """
        self.receipt.is_read = True
        if isinstance(index, slice):
            return list(self)[index]
        if not isinstance(index, int):
            raise InvalidTypeError(
                f"index: got {describe(index)}, expected an int or a slice; "
                "records(partition) returns the records of a partition"
            )
        position = index
        if position < 0:
            position += len(self)
        for records in self._by_partition.values():
            if 0 <= position < len(records):
                return records[position]
            position -= len(records)
        raise IndexError(f"index: got {index}, expected one of {len(self)} records")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecords):
            return NotImplemented
        self.receipt.is_read = other.receipt.is_read = True
        return self._by_partition == other._by_partition

    __hash__ = None  # type: ignore[assignment]  # lists of records, as for a list

    def __iter__(self) -> Iterator[ConsumerRecord[K_co, V_co]]:
        self.receipt.is_read = True
        return chain.from_iterable(self._by_partition.values())

    def __len__(self) -> int:
        self.receipt.is_read = True
        return sum(map(len, self._by_partition.values()))

    def __bool__(self) -> bool:
        self.receipt.is_read = True
        return any(self._by_partition.values())

    def __reduce__(self) -> tuple[object, ...]:
        self.receipt.is_read = True
        return ConsumerRecords, (self._by_partition,)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}: {len(value)}" for key, value in self._by_partition.items())
        return f"<ConsumerRecords {shown or 'none'}>"


_NOT_POLLED = Receipt(ConsumerRecords.__new__(ConsumerRecords))
"""Receipt of results that no poll has returned, such as those of an interceptor."""
