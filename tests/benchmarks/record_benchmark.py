"""Nanoseconds per record of the record code, both twins side by side.

Run by hand, on a quiet machine: ``python tests/benchmarks/record_benchmark.py [--size 100,1024]``.
Each figure is the median of several rounds, with the fastest behind it; the twins take turns within
a round, so that a slow moment of the machine hits both.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from kclient.record import reference
from tests.support.checks.record_columns import column, record_columns

BATCH_SIZE = 256 * 1024
BATCHES = 8
ROUNDS = 9
NOW_MS = 1_700_000_000_000


def twins() -> dict[str, ModuleType]:
    try:
        return {"compiled": import_module("kclient.record._speed"), "python": reference}
    except ImportError:
        return {"python": reference}


class Workload:
    """Batches of equal records, and the calls to time."""

    def __init__(self, module: ModuleType, size: int) -> None:
        self.module = module
        self.count = BATCH_SIZE // (size + 40)
        self.values = [b"x" * size] * self.count
        self.keys = [b"key-%012d" % index for index in range(self.count)]
        self.buffer = bytearray(BATCH_SIZE)
        self.columns_to_send = record_columns(module)(NOW_MS, None, column(self.values))
        keys = column(self.keys)
        self.keyed_columns = record_columns(module)(NOW_MS, keys, column(self.values))
        builder = module.RecordBatchBuilder(bytearray(BATCH_SIZE))
        builder.append_many(NOW_MS, None, self.values)
        self.batch = module.RecordBatch(builder.seal())

    def builder(self) -> Any:
        return self.module.RecordBatchBuilder(self.buffer)

    def append(self) -> None:
        append = self.builder().append
        for value in self.values:
            append(NOW_MS, None, value)

    def append_key(self) -> None:
        append = self.builder().append
        for key, value in zip(self.keys, self.values, strict=True):
            append(NOW_MS, key, value)

    def append_many(self) -> None:
        self.builder().append_many(NOW_MS, None, self.values)

    def append_columns(self) -> None:
        self.builder().append_columns(self.columns_to_send)

    def check_columns(self) -> None:
        self.columns_to_send.check(1 << 20)

    def group_columns(self) -> None:
        self.keyed_columns.rows_by_partition(4, None, 0, self.count, by_key=True)

    def append_many_and_seal(self) -> None:
        builder = self.builder()
        builder.append_many(NOW_MS, None, self.values)
        builder.seal(1, 0, 0)

    def take(self) -> None:
        self.module.BatchCursor(self.batch, "topic", 0).take()

    def take_500_and_touch(self) -> None:
        cursor = self.module.BatchCursor(self.batch, "topic", 0)
        total = 0
        while not cursor.exhausted:
            for record in cursor.take(500):
                total += len(record.value) + record.offset

    def columns(self) -> None:
        self.module.decode_columns([self.batch])

    def summary(self) -> None:
        self.batch.summary()

    def records(self) -> None:
        self.batch.records()

    def murmur2(self) -> None:
        murmur2 = self.module.murmur2
        for key in self.keys:
            murmur2(key)


CALLS = [
    "append",
    "append_key",
    "append_many",
    "append_columns",
    "check_columns",
    "group_columns",
    "append_many_and_seal",
    "take",
    "take_500_and_touch",
    "columns",
    "summary",
    "records",
    "murmur2",
]


def nanoseconds(call: Callable[[], None], records: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(BATCHES):
        call()
    return (time.perf_counter_ns() - start) / (records * BATCHES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="100,1024", help="value sizes in bytes")
    for size in [int(text) for text in parser.parse_args().size.split(",")]:
        workloads = {name: Workload(module, size) for name, module in twins().items()}
        print(f"{size} B: ns per record, median (fastest) of {ROUNDS}")  # noqa: T201 (a script)
        for call in CALLS:
            figures: dict[str, list[float]] = {name: [] for name in workloads}
            for _ in range(ROUNDS):
                for name, load in workloads.items():
                    figures[name].append(nanoseconds(getattr(load, call), load.count))
            shown = [
                f"{name} {statistics.median(times):7.1f} ({min(times):.1f})"
                for name, times in figures.items()
            ]
            print(f"  {call:22}", "  ".join(shown))  # noqa: T201 (a script)


if __name__ == "__main__":
    main()
