"""The command line of the benchmark with Spark."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from integration.benchmarks.spark.connector_jars import connector_jars
from integration.benchmarks.spark.contenders import CONNECTOR, CONTENDERS, OPERATIONS, Contender
from integration.benchmarks.spark.cpu_ledger import CpuLedger
from integration.benchmarks.spark.plan import Plan
from integration.benchmarks.spark.report import as_json, head, table
from integration.benchmarks.spark.runner import Runner
from integration.benchmarks.spark.session import spark_session
from integration.benchmarks.spark.workbench import Workbench
from integration.benchmarks.targets import target
from integration.harness.discovery import NEWEST
from kclient.spark.common.installed_spark import spark_version
from tests.support.checks.waiting import HarnessError


def arguments(given: Sequence[str]) -> argparse.Namespace:
    usual, names = Plan(), [one.name for one in OPERATIONS]
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks.spark",
        description="Compares kclient with Spark's own Kafka connector and with confluent-kafka.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--rows", type=_even, default=usual.rows, help="read or copied; half are written"
    )
    parser.add_argument("--size", type=int, default=usual.size, metavar="BYTES", help="of a value")
    parser.add_argument("--partitions", type=int, default=usual.partitions)
    parser.add_argument("--warm", type=int, default=usual.warm, help="full rounds not counted")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="full rounds counted")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument(
        "--no-connector", action="store_true", help="without Spark's connector and its jars"
    )
    parser.add_argument("--version", default=NEWEST, help="of Apache Kafka")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements there")
    return parser.parse_args(given)


def _even(text: str) -> int:
    rows = int(text)
    if rows < 2 or rows % 2:
        msg = f"got {text}, expected an even number of rows"
        raise argparse.ArgumentTypeError(msg)
    return rows


def chosen_contenders(chosen: argparse.Namespace) -> list[Contender]:
    """Returns the contenders of the chosen operations, without the connector if requested."""
    return [
        one
        for one in CONTENDERS
        if one.operation.name in chosen.only and not (chosen.no_connector and one.side == CONNECTOR)
    ]


def main(given: Sequence[str]) -> None:
    chosen = arguments(given)
    plan = Plan(chosen.rows, chosen.size, chosen.partitions, chosen.warm, chosen.rounds)
    contenders, started = chosen_contenders(chosen), time.monotonic()
    jars = []
    if any(one.side == CONNECTOR for one in contenders):
        jars = connector_jars(str(spark_version()))
    with tempfile.TemporaryDirectory(prefix="kclient-bench-spark-") as directory:
        home = Path(directory)
        with (
            target(chosen.version) as kafka,
            spark_session(jars, home) as (session, description),
            CpuLedger() as ledger,
        ):
            bench = Workbench(session, kafka, plan, home)
            outcome = Runner(bench, ledger, _progress).run(contenders)
    facts = (description, [jar.stem for jar in jars], kafka.version, plan, outcome)
    print(f"{head(*facts)}\n\n{table(outcome.rows)}\n")
    print(f"{time.monotonic() - started:.0f} s in total")
    if chosen.json:
        chosen.json.write_text(as_json(*facts))


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HarnessError as error:
        sys.exit(f"\n{error}")
