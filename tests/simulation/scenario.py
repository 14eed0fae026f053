"""Scenario of a run, drawn from its seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.simulation.promises import Promises

TOPIC = "t"
SIDE_TOPIC = "side"
MISSING_TOPIC = "missing"
INPUT_TOPIC = "in"
"""Topic that writers write in transactions."""
OUTPUT_TOPIC = "out"
"""Topic that copiers copy the input to."""
COPIERS_GROUP = "copiers"
COPY = ">"
"""Separates, in a copied value, the original from the transaction of the copier."""
PADDING = b"|"
"""Separator between a value and its padding; values do not contain it."""
BROKER = "broker"
PORT = 9092

WORK_MS = 15_000.0
"""Time in which producers send and faults occur; then all faults are removed."""

REQUEST_TIMEOUT_MS = 1_500
LONGEST_DELIVERY_MS = 12_000
MAX_BLOCK_MS = 5_000
API_TIMEOUT_MS = 6_000

_LARGE_BUFFER = 33_554_432
_COMMON_WITH_LOAD = 3
TRANSACTIONS = "transactions"
TRANSACTIONS_SHARE = 0.2
"""Share of all seeds that have the load with transactions."""
TRANSACTION_SCAN_MS = 1_000
"""Time between two searches of the coordinator for transactions that have timed out."""
COPIER_SESSION_MS = 2_000
"""Session timeout of copiers, shorter than most timeouts of their transactions."""
_END_MS = 3_000.0
"""Time within which a transaction that is found has its markers."""
_LOAD_STARTS_MS = 4_500.0
_YEAR_MS = 365 * 86_400_000

NETWORK_FAULTS = (
    *("rechunk", "slow", "cut", "lost responses", "half-open", "partition", "refuse"),
    *("damage", "late letters"),
)
PROCESS_FAULTS = ("kill broker", "stop broker", "power cut", "pause broker")
DISK_FAULTS = ("disk error", "disk full", "no descriptors")
CLIENT_FAULTS = (
    *("kill producer", "kill consumer", "leave consumer", "join consumer", "pause client"),
    "clock jump",
)
COMMON_FAULTS = (*NETWORK_FAULTS, *PROCESS_FAULTS, *DISK_FAULTS, *CLIENT_FAULTS)
"""Faults that any scenario may have."""
LOAD_FAULTS = (
    *(
        "lost acknowledgements",
        "damaged batches",
        "torn batch",
        "overloaded producer",
        "late commits",
        "kill transaction",
        "zombie",
        "late requests",
        "kill decision",
    ),
)
"""Faults of the loads."""
ALL_FAULTS = (*COMMON_FAULTS, *LOAD_FAULTS)
_TRANSACTION_FAULTS = (
    *("kill transaction", "kill transaction", "zombie", "zombie", "late requests"),
    *("late requests", "pause client", "lost responses", "cut", "kill broker", "kill broker"),
    *("stop broker", "pause broker", "kill decision", "kill decision"),
)


@dataclass(frozen=True)
class PlannedFault:
    """A fault to inject.

    Attributes:
        at_ms: Time after the start.
        kind: One of `ALL_FAULTS`.
        lasts_ms: Duration, for faults that have one.
        lot: Random number that decides details, such as the target.
    """

    at_ms: float
    kind: str
    lasts_ms: float
    lot: int


@dataclass(frozen=True)
class Scenario:
    """Parameters of a run.

    Attributes:
        seed: Seed of all random numbers.
        broker: Broker settings.
        topic: Topic settings.
        producer: Producer settings.
        consumer: Consumer settings.
        producers: Number of producers.
        consumers: Number of members of each group.
        groups: Number of groups.
        partitions: Number of partitions.
        records: Number of records of each producer.
        commit: sync, async or auto.
        slowness: Probability that a consumer processes a record slowly.
        in_flight: Limit of the producers.
        promises: Guarantees of the configuration.
        load: Name of the load in `LOADS`, which has faults and settings of its own; "" for none.
        faults: Faults to inject.
        dead_joiner: Whether a client of the first group is killed between its JoinGroup requests.
        latency_ms: Smallest and largest latency of each link.
        has_large_values: Whether batches take several sectors of the disk, so that a power cut can
            tear them; it comes with more power cuts.
        names_missing: Whether producers and consumers name a topic that does not exist.
        has_side_topic: Whether there is a topic that is deleted and created again.
        writers: Number of applications that write in transactions.
        copiers: Number of applications that copy what they have written.
        transactional_partitions: Number of partitions of the topics of both.
        writer: Producer settings of the writers.
        copier: Producer settings of the copiers.
        copier_consumer: Consumer settings of the copiers.
    """

    seed: int
    broker: dict[str, object]
    topic: dict[str, str]
    producer: dict[str, object]
    consumer: dict[str, object]
    producers: int
    consumers: int
    groups: int
    partitions: int
    records: int
    commit: str
    slowness: float
    in_flight: int
    promises: Promises
    latency_ms: tuple[float, float]
    dead_joiner: bool
    has_large_values: bool
    names_missing: bool
    has_side_topic: bool
    faults: tuple[PlannedFault, ...] = field(repr=False)
    load: str = ""
    writers: int = 0
    copiers: int = 0
    transactional_partitions: int = 0
    writer: dict[str, object] = field(default_factory=dict)
    copier: dict[str, object] = field(default_factory=dict)
    copier_consumer: dict[str, object] = field(default_factory=dict)

    @property
    def delivery_ms(self) -> float:
        """Limit of the time from `send` to the outcome."""
        return float(str(self.producer["delivery_timeout_ms"]))


def draw(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    lot = random.Random(f"transactions {seed}")
    if lot.random() < TRANSACTIONS_SHARE:
        return replace(_transactions(_draw_common(seed), lot), load=TRANSACTIONS)
    lot = random.Random(f"load {seed}")
    name = lot.choices(list(LOADS), [load.share for load in LOADS.values()])[0]
    return replace(LOADS[name].apply(_draw_common(seed), lot), load=name)


def _draw_common(seed: int) -> Scenario:
    lot = random.Random(f"scenario {seed}")
    topics = random.Random(f"topics {seed}")
    tearing = random.Random(f"tearing {seed}")
    acks = lot.choice(("all", "all", "all", "1", "0"))
    idempotent = acks == "all" and lot.random() < 0.75
    in_flight = lot.randint(1, 5)
    flush = lot.random() < 0.4
    has_large_values = flush and tearing.random() < 0.5
    groups = lot.randint(1, 2)
    commit = lot.choice(("sync", "async", "auto"))
    return Scenario(
        seed=seed,
        broker=_broker(lot, flush=flush),
        topic=_topic(lot),
        producer=_producer(lot, acks, in_flight, idempotent=idempotent),
        consumer=_consumer(lot, commit),
        producers=lot.randint(1, 3),
        consumers=lot.randint(2, 4) // groups,
        groups=groups,
        partitions=lot.randint(1, 4),
        records=lot.randint(20, 120),
        commit=commit,
        slowness=lot.choice((0.0, 0.0, 0.02, 0.1)),
        in_flight=in_flight,
        promises=Promises(
            idempotent=idempotent,
            ordered=acks != "0" and in_flight == 1,
            acknowledged=acks != "0",
        ),
        latency_ms=lot.choice(((0.1, 1.0), (0.1, 5.0), (0.1, 60.0))),
        dead_joiner=random.Random(f"dead joiner {seed}").random() < 0.5,
        has_large_values=has_large_values,
        names_missing=topics.random() < 0.3,
        has_side_topic=topics.random() < 0.4,
        faults=_sorted(
            [
                *_faults(lot, flush=flush),
                *(_planned("power cut", tearing) for _ in range(3 * has_large_values)),
            ]
        ),
    )


def _broker(lot: random.Random, *, flush: bool) -> dict[str, object]:
    settings: dict[str, object] = {
        "log.dir": "/data",
        "listeners": f"PLAINTEXT://{BROKER}:{PORT}",
        "allow.unauthenticated.listeners": True,
        "auto.create.topics.enable": False,
        "num.io.threads": lot.choice((0, 2)),
        "num.network.threads": lot.choice((1, 2)),
        "group.initial.rebalance.delay.ms": lot.choice((0, 200)),
        "group.min.session.timeout.ms": 1_000,
        "offsets.topic.num.partitions": 2,
        "log.index.size.max.bytes": 240,
        "log.index.interval.bytes": lot.choice((100, 1000)),
        "replica.high.watermark.checkpoint.interval.ms": 700,
        "log.flush.offset.checkpoint.interval.ms": 900,
        "log.flush.start.offset.checkpoint.interval.ms": 1100,
        "log.retention.check.interval.ms": 2_000,
        "offsets.retention.check.interval.ms": 2_000,
        # Wall clocks jump by more than a year.
        "log.retention.ms": -1,
        "log.message.timestamp.after.max.ms": 10 * _YEAR_MS,
        "offsets.retention.minutes": 10 * _YEAR_MS // 60_000,
    }
    if flush:
        settings["log.flush.interval.messages"] = 1
    return settings


def _topic(lot: random.Random) -> dict[str, str]:
    chosen = {
        "segment.index.bytes": lot.choice(("120", "240", "4000")),
        "index.interval.bytes": lot.choice(("100", "400", "4096")),
    }
    if lot.random() < 0.3:
        chosen["segment.ms"] = "700"
    if lot.random() < 0.2:
        chosen["message.timestamp.type"] = "LogAppendTime"
    if lot.random() < 0.15:
        chosen["compression.type"] = lot.choice(("gzip", "lz4", "uncompressed"))
    return chosen


def _producer(
    lot: random.Random, acks: str, in_flight: int, *, idempotent: bool
) -> dict[str, object]:
    return {
        "acks": acks,
        "enable_idempotence": idempotent,
        "compression_type": lot.choice(("none", "none", "gzip", "snappy", "lz4", "zstd")),
        "linger_ms": lot.choice((0, 5, 50)),
        "batch_size": lot.choice((0, 200, 1000, 16_384)),
        "buffer_memory": lot.choice((20_000, _LARGE_BUFFER)),
        "max_in_flight_requests_per_connection": in_flight,
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "delivery_timeout_ms": lot.choice((REQUEST_TIMEOUT_MS + 100, 5_000, LONGEST_DELIVERY_MS)),
        "max_block_ms": MAX_BLOCK_MS,
        "metadata_max_age_ms": lot.choice((2_000, 300_000)),
        "socket_connection_setup_timeout_ms": 1_000,
        "reconnect_backoff_max_ms": 500,
    }


def _consumer(lot: random.Random, commit: str) -> dict[str, object]:
    return {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": commit == "auto",
        "auto_commit_interval_ms": lot.choice((100, 1_000)),
        "isolation_level": lot.choice(("read_committed", "read_uncommitted")),
        "partition_assignment_strategy": lot.choice((["range"], ["roundrobin"])),
        "fetch_min_bytes": lot.choice(
            (1, 1, 150)
        ),  # faults beyond the limits below would only wait
        "fetch_max_wait_ms": lot.choice((50, 500)),
        "fetch_max_bytes": lot.choice((500, 52_428_800)),
        "max_partition_fetch_bytes": lot.choice((200, 3_000, 1_048_576)),
        "max_poll_records": lot.choice((1, 7, 500)),
        "session_timeout_ms": 3_000,
        "heartbeat_interval_ms": 500,
        "max_poll_interval_ms": 8_000,
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "default_api_timeout_ms": API_TIMEOUT_MS,
        "metadata_max_age_ms": lot.choice((2_000, 300_000)),
        "socket_connection_setup_timeout_ms": 1_000,
        "reconnect_backoff_max_ms": 500,
    }


def _faults(lot: random.Random, *, flush: bool) -> list[PlannedFault]:
    kinds = [kind for kind in COMMON_FAULTS if flush or kind != "power cut"]
    disk_fails = lot.random() < 0.5  # it makes other faults ineffective
    if not disk_fails:
        kinds = [kind for kind in kinds if kind not in DISK_FAULTS]
    chosen = lot.sample(kinds, lot.randint(2, len(kinds)))
    if lot.random() < 0.5:  # repeated requests test sequences
        chosen += ["lost responses"] * (len(chosen) // 2)
    if flush and lot.random() < 0.5:
        chosen += ["power cut"] * (1 + len(chosen) // 3)
    drawn = [lot.choice(chosen) for _ in range(lot.randint(3, 14))]
    if disk_fails:  # most errors are set for an operation that does not occur
        drawn += [lot.choice((*DISK_FAULTS, "disk error")) for _ in range(lot.randint(3, 12))]
    return [_planned(kind, lot) for kind in drawn]


def _planned(kind: str, lot: random.Random) -> PlannedFault:
    return PlannedFault(
        lot.uniform(500.0, WORK_MS - 1_000.0),
        kind,
        lot.uniform(50.0, 4_000.0),
        lot.getrandbits(32),
    )


def _sorted(faults: list[PlannedFault]) -> tuple[PlannedFault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.at_ms))


def _unchanged(scenario: Scenario, _lot: random.Random) -> Scenario:
    return scenario


def _retries(scenario: Scenario, lot: random.Random) -> Scenario:
    """Idempotent producers send batches again: responses are lost, and the broker restarts.

    Meanwhile a topic with clients is deleted and recreated.
    """
    return replace(
        _idempotent(scenario, in_flight=lot.randint(2, 5)),
        records=lot.randint(60, 120),
        has_side_topic=lot.random() < 0.7,
        faults=_load_faults(scenario, lot, "lost acknowledgements"),
    )


def _damage(scenario: Scenario, lot: random.Random) -> Scenario:
    """Links of all clients damage batches that are written and read."""
    return replace(
        _idempotent(scenario, in_flight=scenario.in_flight),
        records=lot.randint(60, 120),
        faults=_load_faults(scenario, lot, "damaged batches"),
    )


def _torn_writes(scenario: Scenario, lot: random.Random) -> Scenario:
    """Power is cut while large batches are written."""
    scenario = _idempotent(scenario, in_flight=scenario.in_flight)
    return replace(
        scenario,
        broker={**scenario.broker, "log.flush.interval.messages": 1},
        producer={**scenario.producer, "linger_ms": 50, "batch_size": 16_384},
        records=120,
        has_large_values=True,
        faults=_load_faults(scenario, lot, "torn batch"),
    )


def _overload(scenario: Scenario, lot: random.Random) -> Scenario:
    """Batches expire while they are sent; members are slow and their commits arrive late."""
    producer = {
        **scenario.producer,
        "acks": "all",
        "enable_idempotence": lot.random() < 0.5,
        "max_in_flight_requests_per_connection": 1,
        "buffer_memory": _LARGE_BUFFER,
        "delivery_timeout_ms": REQUEST_TIMEOUT_MS + 100,
    }
    late = _load_faults(scenario, lot, "late commits")
    return replace(
        scenario,
        producer=producer,
        consumer={**scenario.consumer, "enable_auto_commit": True, "auto_commit_interval_ms": 100},
        commit="auto",
        consumers=max(2, scenario.consumers),
        records=120,
        slowness=0.05,
        in_flight=1,
        promises=Promises(
            idempotent=bool(producer["enable_idempotence"]), ordered=True, acknowledged=True
        ),
        faults=_sorted([*late, *_at_intervals(lot, "overloaded producer")]),
    )


def _idempotent(scenario: Scenario, in_flight: int) -> Scenario:
    """Return the scenario with idempotent producers that retry until the broker is back."""
    producer = {
        **scenario.producer,
        "acks": "all",
        "enable_idempotence": True,
        "max_in_flight_requests_per_connection": in_flight,
        "buffer_memory": _LARGE_BUFFER,
        "delivery_timeout_ms": LONGEST_DELIVERY_MS,
    }
    return replace(
        scenario,
        producer=producer,
        in_flight=in_flight,
        promises=Promises(idempotent=True, ordered=in_flight == 1, acknowledged=True),
    )


def _load_faults(scenario: Scenario, lot: random.Random, kind: str) -> tuple[PlannedFault, ...]:
    """Return faults of a load, and a few of the scenario's other faults.

    The others are few and not of the disk: a broker that does not serve provokes nothing.
    """
    common = [
        fault
        for fault in scenario.faults
        if fault.kind not in DISK_FAULTS and fault.at_ms > _LOAD_STARTS_MS
    ]
    chosen = lot.sample(common, min(len(common), _COMMON_WITH_LOAD))
    return _sorted([*chosen, *_at_intervals(lot, kind)])


def _at_intervals(lot: random.Random, kind: str) -> list[PlannedFault]:
    """Return faults at regular intervals, so that the clients recover between them.

    They start late enough that the groups have their first assignments.
    """
    count = lot.randint(5, 7)
    interval_ms = (WORK_MS - 1_000.0 - _LOAD_STARTS_MS) / count
    return [
        replace(
            _planned(kind, lot),
            at_ms=_LOAD_STARTS_MS + interval_ms * (number + lot.uniform(0.1, 0.5)),
        )
        for number in range(count)
    ]


def _transactions(scenario: Scenario, lot: random.Random) -> Scenario:
    """Writers and copiers of transactions are killed and replaced, and their requests are late."""
    scenario = _idempotent(scenario, in_flight=scenario.in_flight)
    timeouts_ms = [lot.choice((1_500, 3_000, 6_000)) for _ in range(2)]
    writer, copier = ({**scenario.producer, "transaction_timeout_ms": each} for each in timeouts_ms)
    return replace(
        scenario,
        broker={
            **scenario.broker,
            "transaction.state.log.num.partitions": 2,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": TRANSACTION_SCAN_MS,
        },
        producers=1,
        consumers=1,
        groups=1,
        records=20,
        slowness=0.0,
        dead_joiner=False,
        names_missing=False,
        has_side_topic=False,
        has_large_values=False,
        promises=replace(
            scenario.promises, open_ms=max(timeouts_ms) + TRANSACTION_SCAN_MS + _END_MS
        ),
        faults=_transaction_faults(scenario, lot),
        writers=2,
        copiers=2,
        transactional_partitions=lot.randint(2, 3),
        writer={**writer, "delivery_timeout_ms": lot.choice((REQUEST_TIMEOUT_MS + 100, 5_000))},
        copier=copier,
        copier_consumer={
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "max_poll_records": lot.choice((5, 50)),
            "session_timeout_ms": COPIER_SESSION_MS,
            "heartbeat_interval_ms": 500,
            "max_poll_interval_ms": COPIER_SESSION_MS + 500,
        },
    )


def _transaction_faults(scenario: Scenario, lot: random.Random) -> tuple[PlannedFault, ...]:
    """Return faults of writers, copiers and the broker.

    Wall clocks do not jump: they are what the timeouts of transactions depend on, as in Kafka.
    """
    common = [
        fault
        for fault in scenario.faults
        if fault.kind not in {*DISK_FAULTS, "clock jump"} and fault.at_ms > _LOAD_STARTS_MS
    ]
    kinds = [*_TRANSACTION_FAULTS, *(["power cut"] if _is_flushed(scenario) else [])]
    return _sorted(
        [
            *lot.sample(common, min(len(common), _COMMON_WITH_LOAD)),
            *(_planned(lot.choice(kinds), lot) for _ in range(lot.randint(8, 14))),
        ]
    )


def _is_flushed(scenario: Scenario) -> bool:
    return "log.flush.interval.messages" in scenario.broker


@dataclass(frozen=True)
class Load:
    """Settings and faults that provoke rare defects.

    Attributes:
        share: Share of the seeds that have it.
        apply: Returns a scenario with it.
    """

    share: float
    apply: Callable[[Scenario, random.Random], Scenario]


LOADS: dict[str, Load] = {
    "": Load(0.18, _unchanged),
    "retries": Load(0.23, _retries),
    "damage": Load(0.18, _damage),
    "torn writes": Load(0.19, _torn_writes),
    "overload": Load(0.22, _overload),
}
"""Loads by name; one in five seeds has none."""
