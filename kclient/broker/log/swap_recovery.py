"""Finishes or undoes what a crash interrupted: deletion, cleaning, swapping in (Kafka: LogLoader).

A cleaned or split segment is first written as ``.cleaned``, renamed to ``.swap`` when complete, and
then replaces the segments it was made from. So a ``.swap`` is finished, and a ``.cleaned`` is not.
"""

from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.local_log import LocalLog
from kclient.common.files import Files

_UNFINISHED = (
    log_file_utils.DELETED_FILE_SUFFIX,
    log_file_utils.CLEANED_FILE_SUFFIX,
    ".tmp",
)
_SWAPPED_LOG = log_file_utils.LOG_FILE_SUFFIX + log_file_utils.SWAP_FILE_SUFFIX
_CLEANED_LOG = log_file_utils.LOG_FILE_SUFFIX + log_file_utils.CLEANED_FILE_SUFFIX


def settle_directory(files: Files, local: LocalLog) -> None:
    """Leave nothing in a log's directory but segments that count."""
    names = files.list_directory(local.directory)
    first_cleaned = min(_offsets(names, _CLEANED_LOG), default=2**63)
    for name in names:
        offset = log_file_utils.base_offset_of(name)
        swapped = name.endswith(log_file_utils.SWAP_FILE_SUFFIX)
        # A split writes several segments; while one of them is not complete, none counts.
        if name.endswith(_UNFINISHED) or (
            swapped and offset is not None and offset >= first_cleaned
        ):
            files.remove(local.directory / name)
    for offset in _offsets(files.list_directory(local.directory), _SWAPPED_LOG):
        _swap_in(files, local, offset)


def _swap_in(files: Files, local: LocalLog, base_offset: int) -> None:
    swapped = log_file_utils.segment_file(local.directory, base_offset, _SWAPPED_LOG)
    target = swapped.with_name(swapped.name.removesuffix(log_file_utils.SWAP_FILE_SUFFIX))
    files.rename(swapped, target)
    segment = local.open_segment(base_offset)
    end_offset = base_offset
    for header in segment.records.headers():
        end_offset = header.last_offset + 1
    for name in files.list_directory(local.directory):
        offset = log_file_utils.base_offset_of(name)
        replaced = offset is not None and base_offset <= offset < end_offset
        if replaced and _is_replaced(name, local.directory / name, target):
            files.remove(local.directory / name)
    # The indexes that came with it may or may not have been renamed; these are right in any case.
    segment.indexes.rebuild()
    segment.release()


def _is_replaced(name: str, path: Path, target: Path) -> bool:
    if name.endswith(log_file_utils.SWAP_FILE_SUFFIX):
        return path.name.startswith(target.name.partition(".")[0])
    transactions_kept = path == target.with_suffix(log_file_utils.TXN_INDEX_FILE_SUFFIX)
    return (
        path != target and name.endswith(log_file_utils.SEGMENT_SUFFIXES) and not transactions_kept
    )


def _offsets(names: list[str], suffix: str) -> list[int]:
    return [
        offset
        for name in names
        if name.endswith(suffix) and (offset := log_file_utils.base_offset_of(name)) is not None
    ]
