"""A broker that is killed under load and restarted has all acknowledged records."""

import signal
import threading
from pathlib import Path

import pytest

from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.support.clients.wire import Wire, batch, records_of
from tests.support.processes.broker_process import BrokerProcess

WRITERS = 3
BATCH = 20
KILL_AFTER = 60  # batches acknowledged to the fastest writer


class Writer:
    """Idempotent producer with one batch in flight that writes until the broker exits."""

    def __init__(self, bootstrap: str, partition: int, crash: threading.Event) -> None:
        self.partition = partition
        self.acknowledged: list[bytes] = []
        self.unanswered = b""
        self._wire = Wire(bootstrap)
        self._crash = crash
        self.producer_id = self._wire.ask(
            InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse
        ).producer_id

    def values(self, number: int) -> list[bytes]:
        return [b"%d-%d-%d" % (self.partition, number, index) for index in range(BATCH)]

    def records(self, number: int) -> bytes:
        return batch(
            self.values(number),
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=number * BATCH,
        )

    def run(self) -> None:
        number = 0
        try:
            while True:
                response = self._wire.produce("t", self.records(number), partition=self.partition)
                assert response.error_code == 0
                assert response.base_offset == number * BATCH
                self.acknowledged += self.values(number)
                number += 1
                if number == KILL_AFTER:
                    self._crash.set()
        except (OSError, EOFError):
            self.unanswered = self.records(number)
        finally:
            self._wire.socket.close()


def read_all(wire: Wire, partition: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while True:
        found = wire.fetch("t", len(values), partition=partition)
        assert found.error_code == 0
        if len(values) == found.high_watermark:
            return values
        values += [
            record.value for record in records_of(found.records) if record.offset >= len(values)
        ]


@pytest.mark.fault("B1")
def test_killed_under_load(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as first:
        with Wire(first.bootstrap) as wire:
            wire.create_topic("t", partitions=WRITERS, segment_bytes="1048576")
        crash = threading.Event()
        writers = [Writer(first.bootstrap, partition, crash) for partition in range(WRITERS)]
        threads = [threading.Thread(target=writer.run) for writer in writers]
        for thread in threads:
            thread.start()
        assert crash.wait(30)
        first.kill()
        for thread in threads:
            thread.join(30)
    with BrokerProcess(tmp_path) as second, Wire(second.bootstrap) as wire:
        for writer in writers:
            # The batch in flight may be appended; after a retry it is in the log exactly once.
            assert wire.produce("t", writer.unanswered, partition=writer.partition).error_code == 0
            number = len(writer.acknowledged) // BATCH
            expected = writer.acknowledged + writer.values(number)
            assert read_all(wire, writer.partition) == expected
        fresh = wire.ask(
            InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse
        ).producer_id
        assert fresh not in {writer.producer_id for writer in writers}
        assert second.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_broker(tmp_path: Path, how: signal.Signals) -> None:
    with BrokerProcess(tmp_path) as process, Wire(process.bootstrap) as wire:
        wire.create_topic("t")
        wire.produce("t", batch([b"a"]))
        assert process.stop(how) == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()
