"""Workload of one cell of the benchmark, and its values."""

import itertools
import json
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Self

PRODUCE, CONSUME, LATENCY, MEMORY = "produce", "consume", "latency", "memory"
# Enough different values that none stays in a CPU cache by itself, few enough to be made quickly.
_PACE = 0.002
_DISTINCT = {False: 10_000, True: 2_000}


@dataclass(frozen=True, slots=True)
class Workload:
    """One measurement; it travels to the process that makes it as JSON.

    Attributes:
        operation: one of the four above.
        client: the contender's name.
        records: how many; a consumer reads exactly these, which are all of the topic.
        size: bytes of a value.
        linger_ms: how long a batch may wait, where a producer has such a setting.
        batch_bytes: the largest batch, for every producer the same.
        defaults: whether the client gets no setting but those it cannot do without; the four
            settings above and all that help it in other cells are its defaults then.
        codec: compression of a producer's batches, with the same level for every client.
        tls_bootstrap: address of the listener with TLS, which the client uses; empty for plaintext.
        truststore: PEM file with the authority of that listener's certificate.
        broker_pid: process to stop while records are buffered, where memory is measured.
        transaction_ms: time after which a producer commits, in ms; 0 without transactions.
    """

    operation: str
    client: str
    bootstrap: str
    topic: str
    partitions: int
    records: int
    size: int
    acks: str
    linger_ms: int
    batch_bytes: int
    defaults: bool = False
    codec: str = "none"
    tls_bootstrap: str = ""
    truststore: str = ""
    broker_pid: int = 0
    transaction_ms: int = 0

    @property
    def servers(self) -> str:
        """The address that the client connects to."""
        return self.tls_bootstrap or self.bootstrap

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Consumed:
    """Sums over the consumed records; a loss, duplicate or wrong value changes at least one."""

    records: int
    value_bytes: int
    offset_sum: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurement of a cell, over the timed records.

    Attributes:
        claimed: records that the client says it delivered or read, warm-up included.
        cpu_seconds: of all threads of the client's process.
        peak_bytes: largest resident size of the process.
        p50: seconds from the call to the acknowledgement, where it was measured; p99 likewise.
        buffered_bytes: growth of the resident size a buffered record, where it was measured.
        broker_cpu_seconds: of the broker, in the whole cell.
    """

    timed_records: int
    claimed: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    value_bytes: int = 0
    offset_sum: int = 0
    p50: float = 0.0
    p99: float = 0.0
    buffered_bytes: float = 0.0
    broker_cpu_seconds: float = 0.0

    @property
    def records_per_second(self) -> float:
        return self.timed_records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_seconds / self.timed_records * 1e6

    @property
    def broker_share(self) -> float:
        """The part of a core that the broker used, at most."""
        return self.broker_cpu_seconds / self.seconds


def distinct_values(size: int) -> list[bytes]:
    """Returns JSON-like values of exactly `size` bytes, the same in every process."""
    dice = random.Random(7)
    words = ["order", "user", "click", "cart", "amount", "status", "region", "pending", "item"]
    values = []
    for number in range(_DISTINCT[size > 256]):
        text = f'{{"id":"{dice.getrandbits(64):016x}","ts":{1_700_000_000_000 + number}'
        while len(text) < size:
            text += f',"{dice.choice(words)}":"{dice.choice(words)}{dice.randrange(1000)}"'
        values.append((text[: size - 1] + "}").encode())
    return values


def at_fixed_times(values: Iterable[bytes]) -> Iterator[bytes]:
    """Yields a value every two milliseconds, or at once where its time is over."""
    due = time.perf_counter()
    for value in values:
        due += _PACE
        time.sleep(max(0.0, due - time.perf_counter()))
        yield value


def keys_of(count: int) -> list[bytes]:
    """Returns keys of 16 bytes, ten thousand different ones in turn."""
    distinct = [b"customer-%07d" % number for number in range(10_000)]
    return list(itertools.islice(itertools.cycle(distinct), count))


def chunks_of(values: list[bytes]) -> list[list[bytes]]:
    """Returns the values in lists of 100, between which a producer looks at the clock."""
    return [values[at : at + 100] for at in range(0, len(values), 100)]


def values_of(load: Workload) -> list[bytes]:
    """Returns the values to send, one reference each, so that the timed loop only walks a list."""
    return list(itertools.islice(itertools.cycle(distinct_values(load.size)), load.records))
