"""Duration of a broker's start: after it was killed, and after a clean shutdown.

Run by hand: ``make bench-recovery BENCH_ARGS="--mebibytes 1024"``.
The logs are written first and lie in the page cache, so that what is measured is the work.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kclient.broker.log.log_file_utils import partition_directory, segment_file
from kclient.broker.log.log_manager import LogManager
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.record import IMPLEMENTATION, RecordBatch, RecordBatchBuilder

MEBIBYTE = 1 << 20
_SEGMENT_BYTES = 1 << 30
_PRODUCERS = 4
_PIECE = 4 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Story:
    """Logs of one kind.

    Attributes:
        name: As in the table.
        values: Bytes of each record's value in a batch.
        partitions: Over how many the bytes are spread.
    """

    name: str
    values: tuple[int, ...]
    partitions: int = 1


STORIES = (
    Story("batches of 16 KiB", (1000,) * 16),
    Story("batches of one record", (50,)),
    Story("200 partitions", (1000,) * 4, 200),
)


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds of wall time and of CPU that a start took."""

    seconds: float
    cpu_seconds: float


class BatchWriter:
    """Makes the batches of one log, of producers that take turns."""

    def __init__(self, values: Sequence[int]) -> None:
        size = sum(values) + 100 * (len(values) + 1)
        self._builders = [RecordBatchBuilder(bytearray(size)) for _ in range(_PRODUCERS)]
        now_ms = int(time.time() * 1000)
        for builder in self._builders:
            for size in values:
                builder.append(now_ms, b"key", b"v" * size, None)
            builder.seal()
        self._records = len(values)
        self._batches = 0

    def next_batch(self) -> bytes:
        """Return the batch that follows the last one."""
        turn, producer = divmod(self._batches, _PRODUCERS)
        batch = self._builders[producer].restamp(1000 + producer, 0, turn * self._records)
        RecordBatch(batch).assign(self._batches * self._records, 3)
        self._batches += 1
        return bytes(batch)

    def write(self, directory: Path, size: int) -> int:
        """Write segments of about `size` bytes in all; return how many batches that were."""
        directory.mkdir(parents=True)
        while size > 0:
            base_offset = self._batches * self._records
            segment = min(size, _SEGMENT_BYTES)
            with segment_file(directory, base_offset, ".log").open("wb") as file:
                written = 0
                while written < segment:
                    written += file.write(self.next_batch())
            size -= segment
        return self._batches


def write_logs(data_dir: Path, story: Story, size: int) -> int:
    """Write a story's logs; return how many batches they hold."""
    return sum(
        BatchWriter(story.values).write(
            partition_directory(data_dir, TopicPartition("bench", number)),
            size // story.partitions,
        )
        for number in range(story.partitions)
    )


def start(data_dir: Path, *, leave_clean: bool) -> Start:
    """Load all logs as a broker does, and close them in order or as a kill would."""
    manager = LogManager(data_dir, system_runtime())
    began, began_cpu = time.perf_counter(), time.process_time()
    manager.load()
    took = Start(time.perf_counter() - began, time.process_time() - began_cpu)
    failed = manager.failed_logs()
    manager.close(clean=leave_clean)
    if failed:
        msg = f"not loaded: {failed}"
        raise RuntimeError(msg)
    return took


def measure(story: Story, size: int, rounds: int) -> str:
    """Return a story's line of the table: of each start the fastest of several."""
    with tempfile.TemporaryDirectory(prefix="kclient-recovery-") as directory:
        data_dir = Path(directory) / "data"
        batches = write_logs(data_dir, story, size)
        killed = [start(data_dir, leave_clean=False) for _ in range(rounds)]
        start(data_dir, leave_clean=True)
        clean = [start(data_dir, leave_clean=True) for _ in range(rounds)]
    after_kill = min(killed, key=lambda one: one.cpu_seconds)
    after_close = min(clean, key=lambda one: one.cpu_seconds)
    return (
        f"{story.name:<22} {size / MEBIBYTE:>7.0f} {batches:>10,}"
        f" {after_kill.seconds:>9.2f} {after_kill.cpu_seconds:>9.2f}"
        f" {after_kill.cpu_seconds / size * 2**30:>11.2f}"
        f" {after_kill.cpu_seconds / batches * 1e6:>11.2f}"
        f" {after_close.cpu_seconds * 1000:>9.1f}"
    )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.recovery",
        description="Times a broker's start on this machine.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--mebibytes", type=int, default=256, help="of each story's logs")
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    chosen = parser.parse_args(given)
    print(f"record code: {IMPLEMENTATION}; CPU in seconds of all threads")
    print(
        f"{'logs':<22} {'MiB':>7} {'batches':>10} {'killed s':>9} {'CPU s':>9}"
        f" {'CPU s/GiB':>11} {'CPU µs/bat.':>11} {'clean ms':>9}"
    )
    for story in STORIES:
        print(measure(story, chosen.mebibytes * MEBIBYTE, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
