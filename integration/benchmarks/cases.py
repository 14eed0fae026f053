"""The comparisons of the benchmark, each with its goals."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from integration.benchmarks.contenders import CONFLUENT, JAVA, KCLIENT, Contender, contender
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
    tls: bool = False
    transaction_ms: int = 0

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
        most_rounds: a limit of the rounds, where a cell takes several seconds.
    """

    title: str
    cases: tuple[Case, ...]
    needs_sink: bool = False
    most_rounds: int | None = None

    @property
    def needs_own_kafka(self) -> bool:
        """Whether only an Apache Kafka that the benchmark starts has what the cells use.

        That is a listener with TLS; or transactions, and Java for one of the clients.
        """
        return self.cases[0].cell.tls or self.cases[0].cell.transaction_ms > 0

    @property
    def operation(self) -> str:
        return self.cases[0].cell.operation

    @property
    def cells(self) -> list[Cell]:
        """Each cell once."""
        both = [cell for case in self.cases for cell in (case.cell, case.against)]
        return list(dict.fromkeys(both))


def _goals(
    cpu: float, rate: float, aim: float | None = None, *, cpu_aim: float | None = None
) -> tuple[Goal, ...]:
    """Returns the goals of a comparison of rates: both are ratios."""
    return Goal("cpu", cpu, cpu_aim), Goal("rate", rate, aim)


_Pair = tuple[str, str]


def _case(
    name: str,
    operation: str,
    pair: _Pair,
    goals: tuple[Goal, ...] = (),
    *,
    size: int = 100,
    partitions: int = 4,
    codec: str = "none",
    defaults: bool = False,
    tls: bool = False,
) -> Case:
    ours = Cell(operation, pair[0], size, partitions, codec, defaults, tls)
    return Case(name, ours, replace(ours, contender=pair[1]), goals)


_BLIND = f"{CONFLUENT} no callback"
_KEPT = (KCLIENT, CONFLUENT)
_SEND, _MANY, _ARROW = (
    (f"{KCLIENT} {way}", _BLIND) for way in ("no future kept", "send_many", "send_arrow")
)
_POLL, _COLUMNS = _KEPT, (f"{KCLIENT} columns", CONFLUENT)
_TURNS, _PACED, _NEXT = (
    (f"{KCLIENT} {way}", f"{CONFLUENT} {way}")
    for way in ("partitions in turn", "paced", "back to back")
)
_PURE = (f"{KCLIENT} pure Python", "kafka-python")
_1K = 1024


def _partitions(count: int) -> tuple[Case, ...]:
    """Returns the comparisons with the other client, and with one partition."""
    one, many = (
        _case(f"{each:,} partitions", PRODUCE, _TURNS, partitions=each, defaults=True)
        for each in (1, count)
    )
    return many, Case(f"{many.name}, to one partition", many.cell, one.cell, (Goal("cpu", 1.2),))


def _codec(codec: str, rate: float) -> tuple[Block, Block]:
    goals = _goals(0.8, rate, 1.5)
    produce = _case("send() 1 KiB", PRODUCE, _SEND, goals, size=_1K, codec=codec)
    consume = _case("poll() 1 KiB", CONSUME, _POLL, goals, size=_1K, codec=codec)
    return Block(f"{codec} produce", (produce,)), Block(f"{codec} consume", (consume,))


def _on(loop: str, way: str = "", *, peer: str = "aiokafka", peers: str | None = None) -> _Pair:
    """Returns kclient.aio and another client on one event loop, with their ways of use."""
    ours, theirs = f"{KCLIENT} {loop} {way}", f"{peer} {loop} {way if peers is None else peers}"
    return ours.strip(), theirs.strip()


# The goals of the asyncio clients: records per CPU second, and time of one record.
_TENTH, _FOURTH, _LESS = ((Goal("cpu", limit),) for limit in (0.1, 0.25, round(1 / 1.5, 2)))
_AT_MOST_EQUAL = (Goal("p50", 1.0),)
_ALONE, _TASKS = "back to back", "64 tasks"
_ON_LOOPS = (
    Block(
        "asyncio, produce 100 B",
        (
            _case("await send()", PRODUCE, _on("asyncio"), _TENTH),
            _case("await send(), uvloop", PRODUCE, _on("uvloop"), _TENTH),
            _case(
                "await send(), to confluent-kafka",
                PRODUCE,
                _on("asyncio", peer=CONFLUENT),
                _LESS,
            ),
        ),
    ),
    Block(
        "asyncio, consume 100 B",
        (
            _case("await poll()", CONSUME, _on("asyncio"), _FOURTH),
            _case("await poll(), uvloop", CONSUME, _on("uvloop"), _FOURTH),
            _case("async for", CONSUME, _on("asyncio", "iteration"), _FOURTH),
            _case("async for, uvloop", CONSUME, _on("uvloop", "iteration"), _FOURTH),
            _case("await poll_columns()", CONSUME, _on("asyncio", "columns", peers=""), _FOURTH),
            _case(
                "await poll(), to confluent-kafka", CONSUME, _on("asyncio", peer=CONFLUENT), _LESS
            ),
        ),
    ),
    Block(
        "asyncio, latency",
        (
            _case("send_and_wait()", LATENCY, _on("asyncio", _ALONE), _AT_MOST_EQUAL),
            _case("send_and_wait(), uvloop", LATENCY, _on("uvloop", _ALONE), _AT_MOST_EQUAL),
            _case(
                "send_and_wait(), to confluent-kafka",
                LATENCY,
                _on("asyncio", _ALONE, peer=CONFLUENT),
                _AT_MOST_EQUAL,
            ),
            _case("send_and_wait(), 64 tasks", LATENCY, _on("asyncio", _TASKS), _AT_MOST_EQUAL),
            _case(
                "send_and_wait(), 64 tasks, uvloop", LATENCY, _on("uvloop", _TASKS), _AT_MOST_EQUAL
            ),
        ),
    ),
)
_INTERVALS_MS = (10, 100, 1_000)


def _transactions(partitions: int) -> Block:
    """Returns the comparisons at each commit interval: with other clients, and without commits."""
    named = {"confluent-kafka": CONFLUENT, "the Java client": JAVA}
    cases: list[Case] = []
    for interval in _INTERVALS_MS:
        ours = Cell(
            PRODUCE, f"{KCLIENT} transactions", partitions=partitions, transaction_ms=interval
        )
        cases += [
            Case(
                f"every {interval:,} ms, to {name}",
                ours,
                replace(ours, contender=f"{client} transactions"),
            )
            for name, client in named.items()
        ]
        base = replace(ours, contender=f"{KCLIENT} no transactions", transaction_ms=0)
        cases.append(Case(f"every {interval:,} ms, to no transactions", ours, base))
    title = f"transactions, {partitions} partition{'s' * (partitions > 1)}"
    return Block(title, tuple(cases), most_rounds=5)


_LATENCY = (Goal("p50", 0.8, 0.5),)
BLOCKS = (
    Block(
        "default configuration, produce",
        (
            _case("send() 100 B", PRODUCE, _SEND, _goals(0.6, 1.5, 2.5), defaults=True),
            _case("send() 1 KiB", PRODUCE, _SEND, _goals(0.7, 1.0, 1.3), size=_1K, defaults=True),
        ),
    ),
    Block(
        "default configuration, consume",
        (
            _case("poll() 100 B", CONSUME, _POLL, _goals(0.5, 1.5, 2.5), defaults=True),
            _case("poll() 1 KiB", CONSUME, _POLL, _goals(0.7, 1.0, 1.3), size=_1K, defaults=True),
        ),
    ),
    Block(
        "produce 100 B",
        (
            _case("send()", PRODUCE, _SEND, _goals(0.4, 2.0, 3.0)),
            _case("send(), outcomes kept", PRODUCE, _KEPT, _goals(0.3, 3.0, 4.5, cpu_aim=0.25)),
            _case("send_many()", PRODUCE, _MANY, _goals(0.15, 5.0, 8.0)),
            _case("send_arrow()", PRODUCE, _ARROW, _goals(0.15, 5.0, 8.0)),
            _case("send(), outcomes kept, to kafka-python", PRODUCE, (KCLIENT, "kafka-python")),
            _case("send(), outcomes kept, to aiokafka", PRODUCE, (KCLIENT, "aiokafka")),
        ),
    ),
    Block(
        "produce 1 KiB",
        (
            _case("send()", PRODUCE, _SEND, _goals(0.45, 1.1, 1.4), size=_1K),
            _case("send(), outcomes kept", PRODUCE, _KEPT, _goals(0.4, 1.5), size=_1K),
            _case("send_many()", PRODUCE, _MANY, _goals(0.4, 1.3, 1.6), size=_1K),
            _case("send_arrow()", PRODUCE, _ARROW, _goals(0.4, 1.3, 1.6), size=_1K),
        ),
    ),
    Block(
        "consume 100 B",
        (
            _case("poll()", CONSUME, _POLL, _goals(0.3, 2.5, 3.5)),
            _case("poll_columns()", CONSUME, _COLUMNS, _goals(0.12, 8.0, 12.0)),
            _case("poll(), to kafka-python", CONSUME, (KCLIENT, "kafka-python")),
            _case("poll(), to aiokafka", CONSUME, (KCLIENT, "aiokafka")),
        ),
    ),
    Block(
        "consume 1 KiB",
        (
            _case("poll()", CONSUME, _POLL, _goals(0.6, 1.1, 1.5), size=_1K),
            _case("poll_columns()", CONSUME, _COLUMNS, _goals(0.5, 1.2, 1.5), size=_1K),
        ),
    ),
    *_codec("lz4", 1.2),
    *_codec("zstd", 1.3),
    Block(
        "TLS, produce",
        (
            _case("send() 100 B", PRODUCE, _SEND, (Goal("cpu", 0.5),), tls=True),
            _case("send() 1 KiB", PRODUCE, _SEND, (Goal("cpu", 0.9),), size=_1K, tls=True),
        ),
    ),
    Block(
        "TLS, consume",
        (
            _case("poll() 100 B", CONSUME, _POLL, (Goal("cpu", 0.5),), tls=True),
            _case("poll() 1 KiB", CONSUME, _POLL, (Goal("cpu", 0.9),), size=_1K, tls=True),
        ),
    ),
    Block(
        "latency",
        (
            _case("send().result(), 500 a second", LATENCY, _PACED, _LATENCY),
            _case("send().result(), back to back", LATENCY, _NEXT, _LATENCY),
        ),
    ),
    *_ON_LOOPS,
    _transactions(1),
    _transactions(6),
    Block(
        "memory",
        (_case("send(), outcomes kept", MEMORY, _KEPT, (Goal("memory", 80, 60),)),),
        needs_sink=True,
    ),
    Block("pure Python, produce", (_case("send()", PRODUCE, _PURE, (Goal("rate", 5, 8),)),)),
    Block("pure Python, consume", (_case("poll()", CONSUME, _PURE, (Goal("rate", 3, 8),)),)),
    Block(
        "partitions",
        (
            _case("1 partition", PRODUCE, _TURNS, partitions=1, defaults=True),
            *_partitions(100),
            *_partitions(1_000),
            *_partitions(10_000),
        ),
        needs_sink=True,
    ),
)
