"""The comparisons of the benchmark, each with its goals."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from integration.benchmarks.contenders import Contender, contender
from integration.benchmarks.workload import CONSUME, LATENCY, MEMORY, PRODUCE, Measurement


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a cell.

    Attributes:
        title: as in the table, with the unit.
        of: the figure of one measurement.
        form: how it is written.
        less_is_better: whether a goal is an upper limit.
        relative: whether a goal is for the ratio to the other contender.
    """

    title: str
    of: Callable[[Measurement], float]
    form: str
    less_is_better: bool = True
    relative: bool = True


FIGURES = {
    "cpu": Figure("CPU s/M", lambda one: one.cpu_per_million, ".2f"),
    "rate": Figure("1,000 records/s", lambda one: one.records_per_second / 1e3, ",.0f", False),
    "p50": Figure("p50 µs", lambda one: one.p50 * 1e6, ",.0f"),
    "p99": Figure("p99 µs", lambda one: one.p99 * 1e6, ",.0f"),
    "memory": Figure("bytes a record", lambda one: one.buffered_bytes, ".0f", relative=False),
}
FIGURES_OF = {
    PRODUCE: ("cpu", "rate"),
    CONSUME: ("cpu", "rate"),
    LATENCY: ("p50", "p99", "cpu"),
    MEMORY: ("memory",),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit for the median of a figure, and what is aimed at beyond it."""

    figure: str
    limit: float
    aim: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A contender and what it has to do."""

    operation: str
    contender: str
    size: int = 100
    partitions: int = 4
    codec: str = "none"
    defaults: bool = False

    @property
    def way(self) -> Contender:
        return contender(self.operation, self.contender)


@dataclass(frozen=True, slots=True)
class Case:
    """A comparison of two cells."""

    name: str
    cell: Cell
    against: Cell
    goals: tuple[Goal, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Cases whose cells take turns.

    Attributes:
        needs_sink: whether Apache Kafka cannot take part: it is to be stopped, or to have ten
            thousand partitions for each cell.
    """

    title: str
    cases: tuple[Case, ...]
    needs_sink: bool = False

    @property
    def operation(self) -> str:
        return self.cases[0].cell.operation

    @property
    def cells(self) -> list[Cell]:
        """Each cell once."""
        both = [cell for case in self.cases for cell in (case.cell, case.against)]
        return list(dict.fromkeys(both))


def _to(ours: Cell, theirs: str, name: str, **bounds: tuple[float, float | None]) -> Case:
    """Returns a case against another contender that does the same."""
    goals = tuple(Goal(figure, *bound) for figure, bound in bounds.items())
    return Case(name, ours, replace(ours, contender=theirs), goals)


_NO_OUTCOME, _CONFLUENT, _CONFLUENT_BLIND = (
    "kclient no future kept",
    "confluent-kafka",
    "confluent-kafka no callback",
)


def _turns(partitions: int) -> Cell:
    return Cell(PRODUCE, "kclient partitions in turn", partitions=partitions, defaults=True)


def _per_partition(partitions: int) -> tuple[Case, ...]:
    """Returns the comparisons with the other client, and with one partition."""
    ours, name = _turns(partitions), f"{partitions:,} partitions"
    to_one = Case(f"{name}, to one partition", ours, _turns(1), (Goal("cpu", 1.2),))
    return _to(ours, "confluent-kafka partitions in turn", name), to_one


def _codec(codec: str, rate: float) -> tuple[Block, Block]:
    produce = Cell(PRODUCE, _NO_OUTCOME, 1024, codec=codec)
    consume = Cell(CONSUME, "kclient", 1024, codec=codec)
    bounds = {"cpu": (0.8, None), "rate": (rate, 1.5)}
    return (
        Block(f"{codec} produce", (_to(produce, _CONFLUENT_BLIND, "send() 1 KiB", **bounds),)),
        Block(f"{codec} consume", (_to(consume, _CONFLUENT, "poll() 1 KiB", **bounds),)),
    )


BLOCKS = (
    Block(
        "default configuration, produce",
        (
            _to(
                Cell(PRODUCE, _NO_OUTCOME, 100, defaults=True),
                _CONFLUENT_BLIND,
                "send() 100 B",
                cpu=(0.6, None),
                rate=(1.5, 2.5),
            ),
            _to(
                Cell(PRODUCE, _NO_OUTCOME, 1024, defaults=True),
                _CONFLUENT_BLIND,
                "send() 1 KiB",
                cpu=(0.7, None),
                rate=(1.0, 1.3),
            ),
        ),
    ),
    Block(
        "default configuration, consume",
        (
            _to(
                Cell(CONSUME, "kclient", 100, defaults=True),
                _CONFLUENT,
                "poll() 100 B",
                cpu=(0.5, None),
                rate=(1.5, 2.5),
            ),
            _to(
                Cell(CONSUME, "kclient", 1024, defaults=True),
                _CONFLUENT,
                "poll() 1 KiB",
                cpu=(0.7, None),
                rate=(1.0, 1.3),
            ),
        ),
    ),
    Block(
        "produce 100 B",
        (
            _to(
                Cell(PRODUCE, _NO_OUTCOME),
                _CONFLUENT_BLIND,
                "send()",
                cpu=(0.4, None),
                rate=(2.0, 3.0),
            ),
            _to(
                Cell(PRODUCE, "kclient"),
                _CONFLUENT,
                "send(), outcomes kept",
                cpu=(0.3, 0.25),
                rate=(3.0, 4.5),
            ),
            _to(
                Cell(PRODUCE, "kclient send_many"),
                _CONFLUENT_BLIND,
                "send_many()",
                cpu=(0.15, None),
                rate=(5.0, 8.0),
            ),
            _to(
                Cell(PRODUCE, "kclient send_arrow"),
                _CONFLUENT_BLIND,
                "send_arrow()",
                cpu=(0.15, None),
                rate=(5.0, 8.0),
            ),
            _to(Cell(PRODUCE, "kclient"), "kafka-python", "send(), outcomes kept, to kafka-python"),
            _to(Cell(PRODUCE, "kclient"), "aiokafka", "send(), outcomes kept, to aiokafka"),
        ),
    ),
    Block(
        "produce 1 KiB",
        (
            _to(
                Cell(PRODUCE, _NO_OUTCOME, 1024),
                _CONFLUENT_BLIND,
                "send()",
                cpu=(0.45, None),
                rate=(1.1, 1.4),
            ),
            _to(
                Cell(PRODUCE, "kclient", 1024),
                _CONFLUENT,
                "send(), outcomes kept",
                cpu=(0.4, None),
                rate=(1.5, None),
            ),
            _to(
                Cell(PRODUCE, "kclient send_many", 1024),
                _CONFLUENT_BLIND,
                "send_many()",
                cpu=(0.4, None),
                rate=(1.3, 1.6),
            ),
            _to(
                Cell(PRODUCE, "kclient send_arrow", 1024),
                _CONFLUENT_BLIND,
                "send_arrow()",
                cpu=(0.4, None),
                rate=(1.3, 1.6),
            ),
        ),
    ),
    Block(
        "consume 100 B",
        (
            _to(Cell(CONSUME, "kclient"), _CONFLUENT, "poll()", cpu=(0.3, None), rate=(2.5, 3.5)),
            _to(
                Cell(CONSUME, "kclient columns"),
                _CONFLUENT,
                "poll_columns()",
                cpu=(0.12, None),
                rate=(8.0, 12.0),
            ),
            _to(Cell(CONSUME, "kclient"), "kafka-python", "poll(), to kafka-python"),
            _to(Cell(CONSUME, "kclient"), "aiokafka", "poll(), to aiokafka"),
        ),
    ),
    Block(
        "consume 1 KiB",
        (
            _to(
                Cell(CONSUME, "kclient", 1024),
                _CONFLUENT,
                "poll()",
                cpu=(0.6, None),
                rate=(1.1, 1.5),
            ),
            _to(
                Cell(CONSUME, "kclient columns", 1024),
                _CONFLUENT,
                "poll_columns()",
                cpu=(0.5, None),
                rate=(1.2, 1.5),
            ),
        ),
    ),
    *_codec("lz4", 1.2),
    *_codec("zstd", 1.3),
    Block(
        "latency",
        (
            _to(
                Cell(LATENCY, "kclient paced"),
                "confluent-kafka paced",
                "send().result(), 500 a second",
                p50=(0.8, 0.5),
            ),
            _to(
                Cell(LATENCY, "kclient back to back"),
                "confluent-kafka back to back",
                "send().result(), back to back",
                p50=(0.8, 0.5),
            ),
        ),
    ),
    Block(
        "memory",
        (_to(Cell(MEMORY, "kclient"), _CONFLUENT, "send(), outcomes kept", memory=(80, 60)),),
        needs_sink=True,
    ),
    Block(
        "pure Python, produce",
        (_to(Cell(PRODUCE, "kclient pure Python"), "kafka-python", "send()", rate=(5.0, 8.0)),),
    ),
    Block(
        "pure Python, consume",
        (_to(Cell(CONSUME, "kclient pure Python"), "kafka-python", "poll()", rate=(3.0, 8.0)),),
    ),
    Block(
        "partitions",
        (
            _to(_turns(1), "confluent-kafka partitions in turn", "1 partition"),
            *_per_partition(100),
            *_per_partition(1_000),
            *_per_partition(10_000),
        ),
        needs_sink=True,
    ),
)
