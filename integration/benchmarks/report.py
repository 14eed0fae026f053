"""The measurements as a table for people and as JSON for programs."""

import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version

from integration.benchmarks.runner import Row, Settings
from integration.benchmarks.spread import Spread

_COLUMNS = (
    ("client", "<30"),
    ("records/s", ">10"),
    ("min..max", ">21"),
    ("CPU s/M", ">8"),
    ("min..max", ">13"),
    ("rate ×", ">7"),
    ("min..max", ">13"),
    ("CPU ×", ">6"),
    ("peak MB", ">8"),
    ("broker", ">7"),
)


def head(versions: Sequence[str], kafka_version: str, settings: Settings) -> str:
    """Returns the setup, as the head of the report."""
    clients = ", ".join(f"{name} {version(name)}" for name in versions)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"
    return f"""\
Apache Kafka {kafka_version}, one node, on the same machine as the clients ({machine}).
{clients}.
Producers: acks={settings.acks}, linger {settings.linger_ms} ms, batches of at most \
{settings.batch_bytes} bytes, no compression, no idempotence, no key
unless the name says so (then 16 bytes, of the partitioner that each client has as its default).
Consumers: assigned, CRC checked, value and offset of each record read.
All: {settings.partitions} partitions; queues and fetch sizes of each client as large as helps it.
Each cell is a process of its own; {settings.rounds} rounds, every other one in reverse order.
Delivery is checked in each cell: the broker's end offsets equal the client's claim, and what a
consumer counts in records, bytes and offsets is what the topic holds. Nothing is left out.
CPU s/M: CPU seconds of the client's whole process per million records.
×: median of the ratios, one a round, to the contender in brackets, which does the same work.
broker: CPU seconds of Kafka per million records."""


def table(rows: Sequence[Row]) -> str:
    """Returns the table of one operation and one size."""
    first = rows[0]
    lines = [f"{first.contender.operation}, {first.size} B"]
    lines.append("  ".join(f"{title:{form}}" for title, form in _COLUMNS))
    by_name = {row.contender.name: row for row in rows}
    lines += ["  ".join(_cells(row, by_name.get(row.contender.against))) for row in rows]
    lines += _against_the_nearest_kin(by_name)
    return "\n".join(line.rstrip() for line in lines)


def _against_the_nearest_kin(rows: dict[str, Row]) -> list[str]:
    """Returns a line that compares with the other client written in Python, where both ran."""
    ours, theirs = rows.get("kclient"), rows.get("kafka-python")
    if ours is None or theirs is None:
        return []
    rates, cpus = ratios(ours, theirs)
    return [
        (
            f"kclient to kafka-python: {rates.median:.1f} × the rate ({rates.range_text('.1f')}),"
            f" {cpus.median:.2f} × the CPU"
        )
    ]


def _cells(row: Row, against: Row | None) -> list[str]:
    rate = Spread.of(one.records_per_second for one in row.measurements)
    cpu = Spread.of(one.cpu_per_million for one in row.measurements)
    peak = max(one.peak_bytes for one in row.measurements) / 1e6
    broker = Spread.of(
        used / one.claimed * 1e6
        for used, one in zip(row.broker_cpu_seconds, row.measurements, strict=True)
    )
    texts = [row.contender.name, f"{rate.median:,.0f}", rate.range_text(",.0f")]
    texts += [f"{cpu.median:.2f}", cpu.range_text(".2f")]
    if against is None or against is row:
        texts += ["", "", ""]
    else:
        rates, cpus = ratios(row, against)
        texts += [f"{rates.median:.2f}", rates.range_text(".2f"), f"{cpus.median:.2f}"]
    texts += [f"{peak:.0f}", f"{broker.median:.2f}"]
    cells = [f"{text:{form}}" for text, (_, form) in zip(texts, _COLUMNS, strict=True)]
    if against is not None and against is not row:
        cells.append(f"[{against.contender.name}]")
    return cells


def ratios(row: Row, against: Row) -> tuple[Spread, Spread]:
    """Returns rate and CPU of `row` relative to `against`, round by round."""
    pairs = list(zip(row.measurements, against.measurements, strict=True))
    return (
        Spread.of(mine.records_per_second / other.records_per_second for mine, other in pairs),
        Spread.of(mine.cpu_per_million / other.cpu_per_million for mine, other in pairs),
    )


def as_json(rows: Sequence[Row], kafka_version: str, settings: Settings) -> str:
    return json.dumps(
        {
            "kafka": kafka_version,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "settings": dataclasses.asdict(settings),
            "rows": [
                {
                    "operation": row.contender.operation,
                    "size": row.size,
                    "contender": row.contender.name,
                    "against": row.contender.against,
                    "version": version(row.contender.package),
                    "broker_cpu_seconds": row.broker_cpu_seconds,
                    "rounds": [dataclasses.asdict(one) for one in row.measurements],
                }
                for row in rows
            ],
        },
        indent=1,
    )
