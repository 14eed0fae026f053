"""Table of the parts of the campaign: what each covers, and the make target that runs it."""

from dataclasses import dataclass

BOTH_KAFKAS = "4.3.1, 3.9.2"
NEWEST_KAFKA = "4.3.1"
COMPANION = "companion broker"
NO_BROKER = "–"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the campaign.

    Attributes:
        name: Name on the command line and in the report.
        covers: Contents, as the report states them.
        kafka: Versions of Apache Kafka that it runs against.
        target: Arguments of make.
        limit_s: Seconds after which the part is killed and counts as failed.
        environment: Variables that it runs with.
    """

    name: str
    covers: str
    kafka: str
    target: tuple[str, ...]
    limit_s: float = 3_600
    environment: tuple[tuple[str, str], ...] = ()


_EVERYTHING = "PYTEST_ARGS=-m 'not kerberos'"

PARTS = (
    Part(
        "tests",
        "long tests of `tests/` (marked `campaign`)",
        COMPANION,
        ("test", "PYTEST_ARGS=-m campaign"),
    ),
    Part(
        "matrix",
        "all of `integration/`, with Spark standalone",
        BOTH_KAFKAS,
        ("integration", _EVERYTHING),
        limit_s=7_200,
        environment=(("KCLIENT_KAFKA_VERSIONS", "all"),),
    ),
    Part("simulation", "1,000 seeds of the simulation", COMPANION, ("simulate", "SEEDS=1000")),
    Part(
        "simulation-asyncio",
        "200 seeds of the simulation, with the clients for asyncio",
        COMPANION,
        ("simulate", "SEEDS=200", "CLIENTS=asyncio"),
    ),
    Part(
        "cluster-simulation",
        "500 seeds of the simulation of three nodes",
        COMPANION,
        ("simulate-cluster", "SEEDS=500"),
    ),
    Part(
        "planted-bugs",
        "each planted bug is found by a seed of the simulation",
        COMPANION,
        ("simulate-mutations", "SEEDS=200"),
        limit_s=7_200,
    ),
    Part(
        "interleaving", "200 seeds of task switches between statements", NO_BROKER, ("interleave",)
    ),
    Part("fuzz", "every fuzz target for 60 seconds", NO_BROKER, ("fuzz", "SECONDS=60")),
    Part("crash", "50 kills of a broker under load", COMPANION, ("crash", "KILLS=50")),
    Part(
        "cluster-crash",
        "50 kills of nodes of a cluster of three under load",
        COMPANION,
        ("crash", "KILLS=50", "BROKERS=3"),
    ),
    Part(
        "soak",
        "20 minutes of restarts and kills under clients of all kinds",
        NEWEST_KAFKA,
        ("soak", "MINUTES=20"),
    ),
    Part(
        "cluster-soak",
        "10 minutes of leader moves, stops, kills and suspensions of three brokers",
        NEWEST_KAFKA,
        ("cluster-soak", "MINUTES=10"),
    ),
    Part(
        "spark-kills",
        "Spark drivers and executors killed at every point of their jobs",
        NEWEST_KAFKA,
        ("spark-kills",),
        limit_s=7_200,
    ),
    Part(
        "spark-versions",
        "the notebook example and the Spark tests on Spark 4.0 to 4.3",
        COMPANION,
        ("spark-versions",),
        limit_s=7_200,
    ),
    Part(
        "foreign-suites",
        "the integration tests of kafka-python and franz-go, against the companion broker",
        COMPANION,
        ("foreign-suites",),
    ),
)


def chosen(names: list[str]) -> tuple[Part, ...]:
    """Return the named parts in the order of the table; all if none is named.

    Raises:
        ValueError: If there is no part of a name.
    """
    known = [part.name for part in PARTS]
    for name in names:
        if name not in known:
            msg = f"PARTS: got {name!r}, expected some of {', '.join(known)}"
            raise ValueError(msg)
    return tuple(part for part in PARTS if not names or part.name in names)
