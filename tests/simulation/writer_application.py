"""Application that writes the values of a transaction to several partitions."""

from kclient.common.errors import FatalError, KafkaError, KafkaTimeoutError
from kclient.common.waiting import Steps
from tests.simulation.application import CLOSE_S, SERVERS, Application, Stage, is_fenced
from tests.simulation.clients import AsyncProducer, BlockingProducer
from tests.simulation.history import (
    Began,
    CommitWanted,
    Crashed,
    Ended,
    Fenced,
    ProducerStarted,
    Wrote,
)
from tests.simulation.scenario import INPUT_TOPIC, MAX_BLOCK_MS

AnyProducer = BlockingProducer | AsyncProducer

_ABORT_CHANCE = 0.2
_OVERLONG_CHANCE = 0.03
_MOST_RECORDS = 6
_PAUSE_S = 0.3
_SHORT_S = 0.3
"""Time limit after which a call without an outcome is often repeated."""


class WriterApplication(Application):
    """Writer with the transactional id of its machine; the values are ``<transaction>:<number>``.

    After each error it does what the page about transactions says.
    """

    def __init__(self, stage: Stage, machine: str, name: str) -> None:
        self._count = 0
        self._began_ms = 0.0
        super().__init__(stage, machine, name)

    def run(self) -> Steps[None]:
        """Write until `stopping` is set, or another process has the transactional id."""
        may_continue = True
        while may_continue and not self.stopping:
            may_continue = yield from self._use_producer()

    def _use_producer(self) -> Steps[bool]:
        """Write with one producer; return whether another one may follow."""
        self.note(ProducerStarted, self.machine)
        producer = self.stage.clients.producer(
            self.driver.runtime,
            bootstrap_servers=SERVERS,
            transactional_id=self.machine,
            **self.stage.scenario.writer,
        )
        try:
            yield from self._init(producer)
            while not self.stopping:
                yield from self._run_transaction(producer)
                yield from self.driver.sleep(self.lot.uniform(0.0, _PAUSE_S))
        except FatalError as error:
            return self._failed(error)
        finally:
            yield from self.timed("close", CLOSE_S, producer.close(CLOSE_S))
        return True

    def _failed(self, error: FatalError) -> bool:
        """Note a fatal error; return whether another producer may follow."""
        open_ms = self._now_ms() - self._began_ms
        has_expired = open_ms >= float(str(self.stage.scenario.writer["transaction_timeout_ms"]))
        if has_expired or is_fenced(error):
            self.note(Fenced, self.machine, f"{error!r} {error.__cause__!r}", has_expired)
        else:
            self.note(Crashed, f"{type(error).__name__}: {error}")
        return has_expired

    def _init(self, producer: AnyProducer) -> Steps[None]:
        self._began_ms = self._now_ms()
        while True:
            limit_s = MAX_BLOCK_MS / 1000.0
            try:
                yield from self.timed("init", limit_s, producer.init_transactions(limit_s))
            except KafkaTimeoutError:
                continue
            return

    def _run_transaction(self, producer: AnyProducer) -> Steps[None]:
        self._count += 1
        transaction = f"{self.name}/{self._count}"
        self._began_ms = self._now_ms()
        yield from producer.begin_transaction()
        self.note(Began, transaction)
        try:
            yield from self._write(producer, transaction)
            if self.lot.random() < _ABORT_CHANCE:
                yield from self._abort(producer, transaction)
            else:
                yield from self._commit(producer, transaction)
        except FatalError:
            raise
        except KafkaError:
            yield from self._abort(producer, transaction)

    def _write(self, producer: AnyProducer, transaction: str) -> Steps[None]:
        for number in range(self.lot.randint(1, _MOST_RECORDS)):
            value = f"{transaction}:{number}"
            partition = self.lot.randrange(self.stage.scenario.transactional_partitions)
            self.note(Wrote, transaction, INPUT_TOPIC, partition, value)
            sending = producer.send(INPUT_TOPIC, value.encode(), partition=partition)
            yield from self.timed("send", MAX_BLOCK_MS / 1000.0, sending)
            if self.lot.random() < 0.2:
                yield from self.driver.sleep(self.lot.uniform(0.0, 0.1))
        if self.lot.random() < _OVERLONG_CHANCE:
            timeout_s = float(str(self.stage.scenario.writer["transaction_timeout_ms"])) / 1000.0
            yield from self.driver.sleep(self.lot.uniform(0.8, 1.6) * timeout_s)

    def _commit(self, producer: AnyProducer, transaction: str) -> Steps[None]:
        self.note(CommitWanted, transaction)
        while True:
            limit_s = self.lot.choice((_SHORT_S, MAX_BLOCK_MS / 1000.0))
            try:
                yield from self.timed("commit", limit_s, producer.commit_transaction(limit_s))
            except KafkaTimeoutError:
                continue  # the outcome is unknown
            self.note(Ended, transaction, True)
            return

    def _abort(self, producer: AnyProducer, transaction: str) -> Steps[None]:
        while True:
            limit_s = self.lot.choice((_SHORT_S, MAX_BLOCK_MS / 1000.0))
            try:
                yield from self.timed("abort", limit_s, producer.abort_transaction(limit_s))
            except KafkaTimeoutError:
                continue
            self.note(Ended, transaction, False)
            return
