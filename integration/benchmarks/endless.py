"""Memory of a consumer that reads very many records in columns.

Run by hand: ``make bench-endless BENCH_ARGS="--records 100000000"``. The broker of
`integration.benchmarks.scale_nodes` sends the same batch of 8,000 records of 100 bytes for any
offset, from four partitions in turn; the consumer checks each checksum. The resident memory is
taken after each twentieth of the records: the program fails if that of any later part exceeds the
largest of the first two by more than a tenth.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from integration.benchmarks.scale import Case, nodes_of
from integration.benchmarks.scale_nodes import TOPIC
from kclient import Consumer, TopicPartition
from tests.support.checks.waiting import HarnessError
from tests.support.processes.process_stats import resident_bytes

_CASE = Case(partitions=4, nodes=1)
_RECORDS_PER_BATCH = 8_000
_PARTS, _WARM_PARTS = 20, 2
_GROWTH = 1.1
_DEADLINE_S = 60.0
_MIB = 1 << 20


def read(consumer: Consumer, records: int) -> int:
    """Read at least so many records in columns; return how many."""
    seen = 0
    while seen < records:
        rows = consumer.poll_columns(_DEADLINE_S).num_rows
        if not rows:
            msg = f"got no records in {_DEADLINE_S:.0f} s"
            raise HarnessError(msg)
        seen += rows
    return seen


def check_growth(resident: Sequence[int]) -> None:
    """Compare the resident bytes of the first two measurements with all others.

    Raises:
        HarnessError: They grew.
    """
    limit = _GROWTH * max(resident[:_WARM_PARTS])
    if max(resident) > limit:
        msg = (
            f"resident memory: got {max(resident) / _MIB:.0f} MiB, expected at most "
            f"{limit / _MIB:.0f} MiB, {_GROWTH} times that of the first parts"
        )
        raise HarnessError(msg)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.endless",
        description="Measures the memory of a consumer that reads very many records in columns.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--records", type=int, default=1_000_000_000)
    records = parser.parse_args(given).records
    resident: list[int] = []
    total = 0
    print(f"{'records':>15} {'resident MiB':>13} {'CPU µs/record':>14} {'1,000 records/s':>16}")
    with (
        nodes_of(_CASE, _RECORDS_PER_BATCH) as bootstrap,
        Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer,
    ):
        partitions = [TopicPartition(TOPIC, number) for number in range(_CASE.partitions)]
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        while total < records:
            began, cpu = time.monotonic(), time.process_time()
            seen = read(consumer, -(-records // _PARTS))
            cpu, seconds = time.process_time() - cpu, time.monotonic() - began
            total += seen
            resident.append(resident_bytes(os.getpid()))
            print(
                f"{total:>15,} {resident[-1] / _MIB:>13.1f} {cpu / seen * 1e6:>14.3f}"
                f" {seen / seconds / 1e3:>16,.0f}",
                flush=True,
            )
        positions = sum(consumer.position(partition) for partition in partitions)
        if positions != total:
            msg = f"got positions of {positions} records in all, expected {total}"
            raise HarnessError(msg)
    check_growth(resident)


if __name__ == "__main__":
    try:
        main()
    except HarnessError as error:
        sys.exit(f"\n{error}")
