"""Completion of operations that a crash interrupted: deletion, cleaning, swap (Kafka: LogLoader).

A cleaned or split segment is written as ``.cleaned``, renamed to ``.swap`` when complete, and then
replaces its source segments. A ``.swap`` is therefore completed, and a ``.cleaned`` deleted.
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


def complete_interrupted_operations(files: Files, local: LocalLog) -> None:
    """Complete or undo interrupted operations in a log's directory."""
    names = files.list_directory(local.directory)
    if not any(name.endswith((*_UNFINISHED, log_file_utils.SWAP_FILE_SUFFIX)) for name in names):
        return
    first_cleaned = min(_offsets(names, _CLEANED_LOG), default=2**63)
    for name in names:
        offset = log_file_utils.base_offset_of(name)
        swapped = name.endswith(log_file_utils.SWAP_FILE_SUFFIX)
        # A split writes several segments, which are valid only if all are complete.
        if name.endswith(_UNFINISHED) or (
            swapped and offset is not None and offset >= first_cleaned
        ):
            files.remove(local.directory / name)
    for offset in _offsets(files.list_directory(local.directory), _SWAPPED_LOG):
        _swap_in(files, local, offset)
    for name in files.list_directory(local.directory):
        # The log file was renamed already.
        if name.endswith(log_file_utils.SWAP_FILE_SUFFIX):
            _remove_swap_suffix(files, local.directory / name)


def _swap_in(files: Files, local: LocalLog, base_offset: int) -> None:
    """Remove the replaced segments, then rename the replacement.

    While the log file has the suffix ``.swap``, the next start repeats this.
    """
    swapped = log_file_utils.segment_file(local.directory, base_offset, _SWAPPED_LOG)
    end_offset = _end_offset(files, swapped, base_offset)
    for name in files.list_directory(local.directory):
        offset = log_file_utils.base_offset_of(name)
        replaced = offset is not None and base_offset <= offset < max(end_offset, base_offset + 1)
        if replaced and name.endswith(log_file_utils.SEGMENT_SUFFIXES):
            # The transaction index may be that of the replacement, renamed already.
            kept = offset == base_offset and name.endswith(log_file_utils.TXN_INDEX_FILE_SUFFIX)
            if not kept:
                files.remove(local.directory / name)
    for suffix in _INDEXES:
        path = log_file_utils.segment_file(
            local.directory, base_offset, suffix + log_file_utils.SWAP_FILE_SUFFIX
        )
        if files.exists(path):
            _remove_swap_suffix(files, path)
    _remove_swap_suffix(files, swapped)
    # Some indexes of the replacement may not have been renamed.
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


def _remove_swap_suffix(files: Files, path: Path) -> None:
    files.rename(path, path.with_name(path.name.removesuffix(log_file_utils.SWAP_FILE_SUFFIX)))


def _offsets(names: list[str], suffix: str) -> list[int]:
    return [
        offset
        for name in names
        if name.endswith(suffix) and (offset := log_file_utils.base_offset_of(name)) is not None
    ]
