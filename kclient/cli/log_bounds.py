"""First and last offsets of partitions, for the commands that compare offsets with the log."""

from collections.abc import Iterable
from typing import NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_types import OffsetSpec
from kclient.cli.output import show_errors, succeeded
from kclient.common.types import TopicPartition


class OffsetBounds(NamedTuple):
    """Offsets between which a partition has records.

    Attributes:
        start: Offset of the oldest record.
        end: Offset after the newest record.
    """

    start: int
    end: int


def find_log_bounds(
    command: str, admin: AdminClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, OffsetBounds], int]:
    """Return the bounds of partitions, and 1 if those of some are not available, else 0.

    The errors of the others are printed.
    """
    wanted = list(partitions)
    if not wanted:
        return {}, 0
    starts = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.earliest()))
    status = show_errors(command, starts)
    found = {partition: info.offset for partition, info in succeeded(starts)}
    if not found:
        return {}, status
    ends = admin.list_offsets(dict.fromkeys(found, OffsetSpec.latest()))
    bounds = {
        partition: OffsetBounds(found[partition], info.offset)
        for partition, info in succeeded(ends)
    }
    return bounds, max(status, show_errors(command, ends))
