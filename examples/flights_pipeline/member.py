"""A member of the group that collects the statistics, as a process of its own.

It ends when its input is closed, so also when the pipeline ends in any way.
"""

import argparse
import os
import sys
from pathlib import Path

from examples.flights_pipeline.consumer import collect
from examples.flights_pipeline.kafka_access import parse_access
from examples.flights_pipeline.result_table import ResultTable


def main(arguments: list[str] | None = None) -> int:
    """Collect until the input is closed."""
    parser = argparse.ArgumentParser(prog="flights-pipeline-member")
    parser.add_argument("--kafka", action="append", required=True)
    for name in ("topic", "group", "name"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--table", required=True, type=Path)
    options = parser.parse_args(arguments)
    os.set_blocking(sys.stdin.fileno(), False)
    with ResultTable(options.table) as table:
        collect(
            parse_access(options.kafka),
            options.topic,
            options.group,
            table,
            is_done=lambda: sys.stdin.buffer.read(1) == b"",
            name=options.name,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
