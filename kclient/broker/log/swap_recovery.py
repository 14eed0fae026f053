"""Finishes or undoes what a crash interrupted: deletion, cleaning, swapping in (Kafka: LogLoader).

A cleaned or split segment is first written as ``.cleaned``, renamed to ``.swap`` when complete, and
then replaces the segments it was made from. So a ``.swap`` is finished, and a ``.cleaned`` is not.
"""

from pathlib import Path

from kclient.broker.log import log_file_utils
from kclient.broker.log.file_records import FileRecords
from kclient.broker.log.local_log import LocalLog
from kclient.common.files import Files

_UNFINISHED = (
    log_file_utils.DELETED_FILE_SUFFIX,
    log_file_utils.CLEANED_FILE_SUFFIX,
    ".tmp",
)
_INDEXES = (
    log_file_utils.INDEX_FILE_SUFFIX,
    log_file_utils.TIME_INDEX_FILE_SUFFIX,
    log_file_utils.TXN_INDEX_FILE_SUFFIX,
)
_SWAPPED_LOG = log_file_utils.LOG_FILE_SUFFIX + log_file_utils.SWAP_FILE_SUFFIX
_CLEANED_LOG = log_file_utils.LOG_FILE_SUFFIX + log_file_utils.CLEANED_FILE_SUFFIX


def settle_directory(files: Files, local: LocalLog) -> None:
    """Leave nothing in a log's directory but segments that count."""
    names = files.list_directory(local.directory)
    if not any(name.endswith((*_UNFINISHED, log_file_utils.SWAP_FILE_SUFFIX)) for name in names):
        return
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
    for name in files.list_directory(local.directory):
        # The batches have their name already.
        if name.endswith(log_file_utils.SWAP_FILE_SUFFIX):
            _name(files, local.directory / name)


def _swap_in(files: Files, local: LocalLog, base_offset: int) -> None:
    """Remove what was replaced, and only then let the replacement count.

    As long as the batches are called ``.swap``, the next start begins here again.
    """
    swapped = log_file_utils.segment_file(local.directory, base_offset, _SWAPPED_LOG)
    end_offset = _end_offset(files, swapped, base_offset)
    for name in files.list_directory(local.directory):
        offset = log_file_utils.base_offset_of(name)
        replaced = offset is not None and base_offset <= offset < max(end_offset, base_offset + 1)
        if replaced and name.endswith(log_file_utils.SEGMENT_SUFFIXES):
            # The transactions may have come with the replacement; it has none that are not there.
            kept = offset == base_offset and name.endswith(log_file_utils.TXN_INDEX_FILE_SUFFIX)
            if not kept:
                files.remove(local.directory / name)
    for suffix in _INDEXES:
        path = log_file_utils.segment_file(
            local.directory, base_offset, suffix + log_file_utils.SWAP_FILE_SUFFIX
        )
        if files.exists(path):
            _name(files, path)
    _name(files, swapped)
    # The indexes that came with it may or may not have been renamed; these are right in any case.
    segment = local.open_segment(base_offset)
    segment.indexes.rebuild()
    segment.release()


def _end_offset(files: Files, path: Path, base_offset: int) -> int:
    end_offset = base_offset
    records = FileRecords(files.open(path), files.size(path))
    try:
        for header in records.headers():
            end_offset = header.last_offset + 1
    finally:
        records.close()
    return end_offset


def _name(files: Files, path: Path) -> None:
    files.rename(path, path.with_name(path.name.removesuffix(log_file_utils.SWAP_FILE_SUFFIX)))


def _offsets(names: list[str], suffix: str) -> list[int]:
    return [
        offset
        for name in names
        if name.endswith(suffix) and (offset := log_file_utils.base_offset_of(name)) is not None
    ]
