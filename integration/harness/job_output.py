"""Parsers of the output of kclient's commands and of Kafka's tools, to the same values."""

import re
from collections.abc import Callable

from integration.harness.job_site import Output

Parse = Callable[[Output], object]

_THEIR_PARTITION = re.compile(
    r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S*)"
)
_OUR_PARTITION = re.compile(r"(\d+) +(\S+) +(\S+) +(\S+)")
_THEIR_SETTING = re.compile(r"^  (\S+?)=(.*) sensitive=", re.MULTILINE)
_RUN = re.compile("console-consumer-")


def nothing(output: Output) -> object:
    """Ignore the output: the state of the broker is the outcome."""
    del output
    return None


def text(output: Output) -> str:
    return output.stdout.decode()


def lines(output: Output) -> list[bytes]:
    """Return the lines that are not empty, sorted: the order of partitions is undefined."""
    return sorted(filter(None, output.stdout.splitlines()))


def table(output: Output) -> list[dict[str, str]]:
    """Return the rows of a table of kclient, by the position of the columns' names."""
    head, *rows = text(output).splitlines()
    starts = [found.start() for found in re.finditer(r"(?:^|(?<=  ))\S", head)]
    ends = [*starts[1:], None]
    spans = [slice(*span) for span in zip(starts, ends, strict=True)]
    names = [head[span].strip() for span in spans]
    return [
        dict(zip(names, (row[span].strip() for span in spans), strict=True)) for row in rows if row
    ]


def java_table(output: Output, *names: str) -> list[tuple[str, ...]]:
    """Return some columns of a table of Kafka's tool, whose cells have no spaces."""
    columns: list[str] = []
    found = []
    for line in text(output).splitlines():
        cells = line.split()
        if names[0] in cells:
            columns = cells
        elif len(cells) == len(columns) and cells:
            row = dict(zip(columns, cells, strict=True))
            found.append(tuple(row[name] for name in names))
    return sorted(found)


def columns(*names: str) -> Parse:
    """Return a parser of some columns of a table of kclient."""
    return lambda output: sorted(tuple(row[name] for name in names) for row in table(output))


def java_columns(*names: str) -> Parse:
    return lambda output: java_table(output, *names)


def their_partitions(output: Output) -> list[tuple[str, ...]]:
    """Return topic, partition, leader, replicas and in-sync replicas."""
    found = _THEIR_PARTITION.findall(text(output))
    return sorted((topic, n, _dash(leader), *map(_dash, ids)) for topic, n, leader, *ids in found)


def our_partitions(output: Output) -> list[tuple[str, ...]]:
    found = []
    topic = ""
    for line in text(output).splitlines():
        if line.startswith("topic "):
            topic = line.split()[1]
        elif match := _OUR_PARTITION.fullmatch(line):
            found.append((topic, *match.groups()))
    return sorted(found)


def _dash(cell: str) -> str:
    return "-" if cell in {"", "none"} else cell


def their_offsets(output: Output) -> list[tuple[str, ...]]:
    """Return topic, partition and offset."""
    return sorted(tuple(line.split(":")) for line in text(output).split())


our_offsets = columns("TOPIC", "PARTITION", "OFFSET")


def their_settings(output: Output) -> dict[str, str]:
    found = dict(_THEIR_SETTING.findall(text(output)))
    return {name: "-" if value == "null" else value for name, value in found.items()}


def our_settings(source: str = "") -> Parse:
    """Return a parser of settings, those of a source."""
    return lambda output: {
        row["NAME"]: row["VALUE"] for row in table(output) if source in {"", row["SOURCE"]}
    }


def their_quotas(output: Output) -> dict[str, float]:
    found = re.findall(r"(\w+)=([\d.]+)", text(output))
    return {name: float(value) for name, value in found}


def our_quotas(output: Output) -> dict[str, float]:
    return {row["NAME"]: float(row["VALUE"]) for row in table(output)}


def their_groups(*positions: int) -> Parse:
    """Return a parser of words of a list of groups, without the groups of single runs."""

    def parse(output: Output) -> object:
        found = [line.split() for line in text(output).splitlines()]
        return sorted(
            tuple(words[at] for at in positions)
            for words in found
            if words and words[0] != "GROUP" and not _RUN.match(words[0])
        )

    return parse


def our_groups(*names: str) -> Parse:
    def parse(output: Output) -> object:
        rows = [row for row in table(output) if not _RUN.match(row["GROUP ID"])]
        return sorted(tuple(row[name] for name in names) for row in rows)

    return parse
