"""Transactions of confluent-kafka, so that read_committed readers meet open and aborted ones."""

from collections.abc import Callable
from random import Random

from confluent_kafka import KafkaException, Producer

from tests.support.clients.background_thread import BackgroundThread

_EVERY_S = 0.3
_CALL_S = 5.0
_RECORDS = 6
_ABORTED = 0.25
_EMERGENCIES = 0  # as syslog counts; what fails while brokers are away is expected

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


class TransactionalWriter(BackgroundThread):
    """Commits and aborts small transactions, and records which.

    Attributes:
        outcomes: Outcome of each transaction; its records' values begin with its index.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int) -> None:
        super().__init__("transactions", "a call of the transactional producer")
        self.outcomes: list[str] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._random = Random(seed)
        self._producer: Producer | None = None

    def finish(self) -> None:
        """Ends after the transaction that is open; fails if the thread has failed."""
        self.stop()
        self.check()

    def outcome_of(self, value: bytes) -> str:
        """Returns what became of the transaction to which a record with this value belongs."""
        return self.outcomes[int(value.partition(b":")[0])]

    def run(self) -> None:
        while not self.stopping.wait(_EVERY_S):
            self._transaction()

    def _transaction(self) -> None:
        commit = self._random.random() >= _ABORTED
        number = len(self.outcomes)
        ending = False
        try:
            producer = self._ready()
            producer.begin_transaction()
            for index in range(_RECORDS):
                value = b"%d:%d" % (number, index)
                producer.produce(self._topic, value, partition=index % self._partitions)
            ending = commit
            self._repeat(producer.commit_transaction if commit else producer.abort_transaction)
            self.outcomes.append(COMMITTED if commit else ABORTED)
        except KafkaException as error:
            self.outcomes.append(self._recover(error, ending=ending))

    def _ready(self) -> Producer:
        if self._producer is None:
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": self._topic,
                    "transaction.timeout.ms": 15_000,
                    "log_level": _EMERGENCIES,
                }
            )
            self._repeat(producer.init_transactions)
            self._producer = producer
        return self._producer

    def _recover(self, error: KafkaException, *, ending: bool) -> str:
        """Aborts the transaction that failed where that is possible; returns its outcome."""
        producer = self._producer
        if producer is not None and error.args[0].txn_requires_abort():
            try:
                self._repeat(producer.abort_transaction)
            except KafkaException:
                self._producer = None
            return ABORTED
        # A new producer with the same transactional.id ends what this one left.
        self._producer = None
        return UNKNOWN if ending else ABORTED

    def _repeat(self, call: Callable[[float], object]) -> None:
        """Calls until it succeeds or fails with an error that is not retriable."""
        while True:
            try:
                call(_CALL_S)
            except KafkaException as error:
                if not error.args[0].retriable() or self.stopping.is_set():
                    raise
            else:
                return
