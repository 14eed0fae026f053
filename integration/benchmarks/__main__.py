"""The command line of the benchmark."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from integration.benchmarks.contenders import CONTENDERS, Contender
from integration.benchmarks.report import as_json, head, table
from integration.benchmarks.runner import Row, Runner, Settings
from integration.benchmarks.targets import target
from integration.benchmarks.workload import CONSUME, PRODUCE
from integration.harness.discovery import NEWEST
from tests.support.checks.waiting import HarnessError


def arguments(given: Sequence[str]) -> argparse.Namespace:
    clients = sorted({one.client for one in CONTENDERS})
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks",
        description="Compares Python clients against Apache Kafka on this machine.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--operations", nargs="+", default=[PRODUCE, CONSUME], metavar="NAME")
    parser.add_argument("--clients", nargs="+", default=clients, choices=clients, metavar="NAME")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these contenders alone")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1024], metavar="BYTES")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual records")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--acks", default="all", choices=["all", "1"])
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=256 << 10)
    parser.add_argument("--version", default=NEWEST, help="of Apache Kafka")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements there")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> None:
    chosen = arguments(given)
    settings = Settings(
        sizes=chosen.sizes,
        rounds=chosen.rounds,
        scale=chosen.scale,
        partitions=chosen.partitions,
        acks=chosen.acks,
        linger_ms=chosen.linger_ms,
        batch_bytes=chosen.batch_bytes,
    )
    contenders = [one for one in CONTENDERS if _takes_part(one, chosen)]
    started = time.monotonic()
    with target(chosen.version) as kafka:
        print(head(sorted({one.package for one in contenders}), kafka.version, settings))
        runner = Runner(kafka, settings, _progress)
        runner.check(contenders)
        rows: list[Row] = []
        for operation in chosen.operations:
            for size in settings.sizes:
                found = runner.measure(operation, size, contenders)
                rows += found
                _progress("")
                print(f"\n{table(found)}", flush=True)
    print(f"\n{time.monotonic() - started:.0f} s in all")
    if chosen.json:
        chosen.json.write_text(as_json(rows, kafka.version, settings))


def _takes_part(contender: Contender, chosen: argparse.Namespace) -> bool:
    named = not chosen.only or contender.name in chosen.only
    return named and contender.client in chosen.clients and contender.operation in chosen.operations


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HarnessError as error:
        sys.exit(f"\n{error}")
