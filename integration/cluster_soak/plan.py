"""Plan of a run: the brokers, the clients and the events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from integration.cluster_soak.events import Durations
from integration.soak.crowd import Cast
from tests.support.clients.writer import Writing

TOPIC, TRANSACTIONS, RECREATED = "cluster-soak", "transactions", "recreated"
PARTITIONS, TRANSACTION_PARTITIONS, RECREATED_PARTITIONS = 6, 2, 3
REPLICAS, MIN_IN_SYNC = 3, 2
SESSION_MS = 6_000  # of members of groups
_REQUEST_MS = 4_000

BROKER_PROPERTIES = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "min.insync.replicas": str(MIN_IN_SYNC),
    "broker.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "10000",
    "group.min.session.timeout.ms": "1000",
    "num.network.threads": "2",
    "num.io.threads": "4",
}

_MEMBERS = Cast(("kclient",) * 3, max_poll_ms=120_000, work_ms=5)
_COMMITTED = Cast(("kclient",) * 2, isolation="read_committed", max_poll_ms=120_000, work_ms=5)


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a run.

    Attributes:
        minutes: Duration of the events.
        seed: Decides which events there are, where and when.
        kinds: The events of a run that ends after them, in this order; without them they are
            chosen at random until the time is over.
        between_s: Seconds between two events, shortest and longest.
        durations: How long brokers are away.
        broker_session_ms: After how long the controller considers a silent broker dead.
        rate: Records a second of each writer.
        groups: The groups that read the main topic, by name.
    """

    minutes: float = 10.0
    seed: int = 0
    kinds: Sequence[str] = ()
    between_s: tuple[float, float] = (1.0, 6.0)
    durations: Durations = field(default_factory=Durations)
    broker_session_ms: int = 6_000
    rate: int = 30
    groups: Mapping[str, Cast] = field(
        default_factory=lambda: {"uncommitted": _MEMBERS, "committed": _COMMITTED}
    )


def writings(bootstrap: str, rate: int) -> list[Writing]:
    """Returns the writers of the main topic.

    Some delivery timeouts outlast every event, others end while brokers are away.
    """
    # Records for an unavailable partition must not block the writer.
    each = Writing(bootstrap, TOPIC, "", rate, request_ms=_REQUEST_MS, ahead=120 * rate)
    plain = replace(each, idempotence=False)
    return [
        replace(each, name="idempotent-0", delivery_ms=120_000),
        replace(each, name="idempotent-1", delivery_ms=8_000),
        replace(each, name="idempotent-2", delivery_ms=20_000, in_flight=1),
        replace(plain, name="plain-all", delivery_ms=15_000),
        replace(plain, name="ordered", delivery_ms=60_000, in_flight=1),
        replace(plain, name="acks-1", delivery_ms=15_000, acks="1"),
    ]


def recreated_writing(bootstrap: str, rate: int) -> Writing:
    """Returns the writer of the topic that is deleted and created again."""
    return Writing(
        bootstrap,
        RECREATED,
        "recreated-0",
        rate,
        request_ms=_REQUEST_MS,
        delivery_ms=10_000,
        block_ms=2_000,
    )
