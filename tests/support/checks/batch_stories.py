"""Results of all operations of a batch reader, so that readers can be compared."""

from types import ModuleType
from typing import Any

from kclient.common.errors import KafkaError

MAX_RECORD_BYTES = 100_000


def read_all(module: ModuleType, data: bytes, start: int, step: int) -> list[Any]:
    """Do everything a reader can do, and write down what came of it."""
    story: list[Any] = []
    try:
        for batch in module.read_batches(data, max_batch_size=1 << 20):
            story.append((batch.base_offset, batch.next_offset, batch.is_valid(), batch.count))
            story.append(outcome(lambda b=batch: [tuple(r) for r in b.records(MAX_RECORD_BYTES)]))
            story.append(outcome(lambda b=batch: b.summary()))
            story.append(outcome(lambda b=batch: slices(module, b, start, step)))
            story.append(outcome(lambda b=batch: columns(module, b, start)))
    except KafkaError as error:
        story.append(type(error))
    return story


def outcome(read: Any) -> Any:
    try:
        return read()
    except KafkaError as error:
        return type(error)


def slices(module: ModuleType, batch: Any, start: int, step: int) -> list[str]:
    cursor = module.BatchCursor(batch, "t", 1, start, max_record_bytes=MAX_RECORD_BYTES)
    story = []
    while not cursor.exhausted:
        try:
            story.append(repr(cursor.take(step)))
        except KafkaError as error:
            story.append(type(error).__name__)
            break
        story.append(str(cursor.position))
    return story


def columns(module: ModuleType, batch: Any, start: int) -> Any:
    return module.decode_columns([batch], start, max_record_bytes=MAX_RECORD_BYTES)
