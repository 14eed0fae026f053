"""The measurements as a table for people and as JSON for programs."""

import dataclasses
import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from integration.benchmarks.spark.plan import Plan
from integration.benchmarks.spark.runner import Outcome, Row, Run
from integration.benchmarks.spark.session import SLOTS
from integration.benchmarks.spread import Spread
from kclient.common.extras import DISTRIBUTION

_HEAD = (
    "| case | client | 1,000 rows a CPU second | × | 1,000 rows a second | ×"
    " | broker's CPU s | first run | {small:,} rows |"
)
_PACKAGES = (DISTRIBUTION, "confluent-kafka", "pyarrow")


def head(spark: str, connector: Sequence[str], kafka: str, plan: Plan, outcome: Outcome) -> str:
    """Returns the description of the measurement.

    Args:
        spark: Spark, Java and interpreter.
        connector: names of the jars.
        kafka: version of Apache Kafka.
    """
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    least, most = outcome.load
    return f"""\
{spark}; local[{SLOTS}].
{packages}, Python {platform.python_version()}; {", ".join(connector) or "no connector"}.
Apache Kafka {kafka}, one node on the same machine ({machine}).
{plan.partitions} partitions, values of {plan.size} bytes, no key, no compression, acks=all, \
idempotent.
{plan.rows:,} rows read or copied, {plan.rows // 2:,} written. Warm-up: {plan.warm} full rounds \
through all cases and one more
of each case; then {plan.rounds} rounds of it: median (min..max). Contenders take turns, every \
other round in reverse order.
Load of the machine in the counted rounds: {least:.1f} to {most:.1f}.
CPU seconds are those of driver, JVM and Python processes; the broker's are separate.
×: median (min..max) of the ratios, one a round, to the best of the others in the same case by rows
a CPU second. First run: the first one of full size."""


def table(rows: Sequence[Row]) -> str:
    """Returns a table in Markdown."""
    small = rows[0].small[0].rows if rows[0].small else 0
    header = _HEAD.format(small=small)
    lines = [header, "|---" * header.count(" | ") + "|---|"]
    lines += [f"| {' | '.join(_cells(row, opponent(row, rows)))} |" for row in rows]
    return "\n".join(lines)


def opponent(row: Row, rows: Sequence[Row]) -> Row | None:
    """Returns the row to compare a kclient row with: the best other client of its case."""
    others = [
        one
        for one in rows
        if one.contender.operation == row.contender.operation and not one.contender.ours
    ]
    if not row.contender.ours or not others:
        return None
    return max(others, key=lambda one: statistics.median(run.per_cpu_second for run in one.runs))


def ratios(row: Row, against: Row) -> tuple[Spread, Spread]:
    """Returns rows a CPU second and rows a second, relative to `against`, round by round."""
    pairs = list(zip(row.runs, against.runs, strict=True))
    return (
        Spread.of(mine.per_cpu_second / other.per_cpu_second for mine, other in pairs),
        Spread.of(mine.per_second / other.per_second for mine, other in pairs),
    )


def _text(values: Iterable[float], form: str) -> str:
    spread = Spread.of(values)
    return f"{spread.median:{form}} ({spread.range_text(form)})"


def _cells(row: Row, against: Row | None) -> list[str]:
    cpu, clock = "", ""
    if against is not None:
        by_cpu, by_clock = ratios(row, against)
        cpu = f"{by_cpu.median:.2f} ({by_cpu.range_text('.2f')})"
        clock = f"{by_clock.median:.2f} ({by_clock.range_text('.2f')})"
    return [
        row.contender.operation.name,
        row.contender.name,
        _text((run.per_cpu_second / 1e3 for run in row.runs), ",.0f"),
        cpu,
        _text((run.per_second / 1e3 for run in row.runs), ",.0f"),
        clock,
        f"{statistics.median(run.broker_cpu_seconds for run in row.runs):.1f}",
        f"{row.first.seconds:.1f} s, {row.first.cpu_seconds:.1f} CPU s",
        _short(row.small),
    ]


def _short(runs: Sequence[Run]) -> str:
    if not runs:
        return ""  # a single round is a trial
    seconds = statistics.median(run.seconds for run in runs)
    cpu = statistics.median(run.cpu_seconds for run in runs)
    return f"{seconds:.2f} s, {cpu:.2f} CPU s"


def as_json(spark: str, connector: Sequence[str], kafka: str, plan: Plan, outcome: Outcome) -> str:
    return json.dumps(
        {
            "spark": spark,
            "connector": list(connector),
            "kafka": kafka,
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
            "cores": os.cpu_count(),
            "load": outcome.load,
            "plan": dataclasses.asdict(plan),
            "rows": [
                {
                    "operation": row.contender.operation.name,
                    "contender": row.contender.name,
                    "ours": row.contender.ours,
                    "warm": [dataclasses.asdict(run) for run in row.warm],
                    "runs": [dataclasses.asdict(run) for run in row.runs],
                    "small": [dataclasses.asdict(run) for run in row.small],
                }
                for row in outcome.rows
            ],
        },
        indent=1,
    )
