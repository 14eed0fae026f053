"""Counts of the function calls for a record, a request and a rebalance, in pure Python.

``python -m tests.architecture.cross_file_calls`` prints them; ``--trace`` lists the calls in order.
"""

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

# Read when kclient.record is imported: compiled functions are not seen by a profile function.
os.environ["KCLIENT_PURE_PYTHON"] = "1"

from kclient import Consumer, Producer, TopicPartition
from kclient.testing import EmbeddedCluster

PACKAGE = str(Path(__file__).parents[2] / "kclient") + os.sep
TOPIC = "calls"
WAIT_BEGINS = "signals_take_effect.__enter__"
"""A thread that returned from this function waits for events, a notification or a timeout."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of kclient, with the file of its caller."""

    thread: int
    caller: str
    file: str
    function: str

    @property
    def crosses_files(self) -> bool:
        """Whether caller and function are in different files; those of metrics are not counted."""
        return self.caller != self.file and "metric" not in self.file


@dataclass(slots=True)
class Recorder:
    """Records the calls of all threads that start after it was installed.

    It also knows which threads wait, so that a run can begin, and a response can be held back,
    until all others have nothing to do: the same events then happen in each run.
    """

    calls: list[Call] = field(default_factory=list)
    returns: dict[str, list[int]] = field(default_factory=dict)
    is_active: bool = False
    holds_requests: bool = False
    busy: set[int] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def install(self) -> None:
        """Observe this thread and those that start later."""
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)

    @contextmanager
    def recording(self, *, holds_requests: bool = False) -> Iterator[list[Call]]:
        """Collect the calls of the block, from the time that all other threads wait.

        Args:
            holds_requests: Whether the broker handles a request only when all other threads wait,
                that of the block included, and the recording lasts until all others wait again.
        """
        self.await_others()
        self.calls, self.returns = [], {}
        self.holds_requests = holds_requests
        self.is_active = True
        try:
            yield self.calls
            if holds_requests:
                self.await_others()
        finally:
            self.is_active = False

    def await_others(self) -> None:
        """Wait until all other threads wait."""
        own = threading.get_ident()
        with self.changed:
            if not self.changed.wait_for(lambda: not self._are_busy(own), 10):
                raise RuntimeError("a thread was busy for 10 s")

    def _are_busy(self, own: int) -> bool:
        alive = {thread.ident for thread in threading.enumerate()}
        return bool((self.busy & alive) - {own})

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return
        name = frame.f_code.co_qualname
        if event == "return":
            self.returns.setdefault(name, []).append(len(self.calls))
            if name == WAIT_BEGINS:
                self._set_busy(is_busy=False)
        elif event == "call":
            self._set_busy(is_busy=True)
            if self.is_active:
                if self.holds_requests and name == "KafkaApis.handle":
                    self.await_others()
                self._record(frame, name)

    def _set_busy(self, *, is_busy: bool) -> None:
        thread = threading.get_ident()
        if is_busy is not (thread in self.busy):
            with self.changed:
                (self.busy.add if is_busy else self.busy.discard)(thread)
                self.changed.notify_all()

    def _record(self, frame: FrameType, name: str) -> None:
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        file = frame.f_code.co_filename.removeprefix(PACKAGE)
        self.calls.append(Call(threading.get_ident(), caller.removeprefix(PACKAGE), file, name))


def threads_of(calls: Sequence[Call], file: str) -> set[int]:
    """Return the threads that ran a function of the file."""
    return {call.thread for call in calls if call.file == file}


def send_and_acknowledgement(recorder: Recorder, producer: Producer) -> list[Call]:
    """Return the calls from ``send()`` to the result of an application that waits for it.

    They are those of the application's thread until ``result()`` returns, and those of the sender
    thread from its wakeup until it has handled the response, which arrives when it waits again.
    """
    with recorder.recording(holds_requests=True) as calls:
        producer.send(TOPIC, b"value", b"key").result(10)
        own_end = len(calls)
    own = threading.get_ident()
    senders = threads_of(calls, "producer/sender.py") - {own}
    handled = recorder.returns["ProduceResponseHandler.handle"][0]
    return [
        *[call for call in calls[:own_end] if call.thread == own],
        *[call for call in calls[:handled] if call.thread in senders],
    ]


def produce_request(recorder: Recorder, producer: Producer) -> list[Call]:
    """Return the calls of the broker's network thread from a request to its response.

    They are those from the first read of the request's frame to the first write of the response.
    """
    with recorder.recording(holds_requests=True) as calls:
        producer.send(TOPIC, b"value", b"key").result(10)
    threads = threads_of(calls, "broker/network/processor.py")
    of_broker = from_first_read([call for call in calls if call.thread in threads])
    names = [call.function for call in of_broker]
    return of_broker[: names.index("PlaintextTransportLayer.write") + 1]


def from_first_read(calls: list[Call]) -> list[Call]:
    """Return the calls since a socket was found readable."""
    for number, call in enumerate(calls):
        if call.function == "KafkaChannel.read":
            return calls[number:]
    return []


def fetched_records(recorder: Recorder, producer: Producer, consumer: Consumer) -> list[Call]:
    """Return the calls from a readable socket to the fetch buffer, and on to the records."""
    with recorder.recording() as calls:
        producer.send(TOPIC, b"value", b"key")
        records = consumer.poll(10)
    assert len(records) == 1, "the record of another round"
    thread = threading.get_ident()
    received = calls[: recorder.returns["FetchBuffer.add"][0]]
    end = recorder.returns["FetchCollector.collect"][-1]
    names = [call.function for call in calls[:end]]
    collected = calls[end - 1 - names[::-1].index("FetchCollector.collect") : end]
    return [
        *from_first_read([call for call in received if call.thread == thread]),
        *[call for call in collected if call.thread == thread],
    ]


def rebalance(recorder: Recorder, cluster: EmbeddedCluster) -> list[Call]:
    """Return the calls of a member, and of the group coordinator, until partitions are assigned."""
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="calls") as member:
        member.subscribe([TOPIC])
        with recorder.recording() as calls:
            while not member.assignment():
                member.poll(0.1)
    return [call for call in calls if call.file.startswith(("consumer/", "broker/coordinator/"))]


def paths(rounds: int) -> Iterator[tuple[str, list[list[Call]]]]:
    """Run each path so many times and return its runs, the one with the fewest calls first.

    A run may have additional turns of a thread's loop, by which it renews what becomes outdated.
    """
    recorder = Recorder()
    recorder.install()
    try:
        with EmbeddedCluster() as cluster:
            servers = cluster.bootstrap_servers
            with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
                producer.send(TOPIC, b"first").result(10)
                acknowledged = [send_and_acknowledgement(recorder, producer) for _ in range(rounds)]
                yield "send to acknowledgement", sorted(acknowledged, key=crossing)
                produced = [produce_request(recorder, producer) for _ in range(rounds)]
                yield "Produce request to response", sorted(produced, key=crossing)
                with Consumer(bootstrap_servers=servers) as consumer:
                    partition = TopicPartition(TOPIC, 0)
                    consumer.assign([partition])
                    consumer.seek_to_end(partition)
                    consumer.position(partition)
                    consumer.poll(0.1)
                    fetched = [fetched_records(recorder, producer, consumer) for _ in range(rounds)]
                    yield "readable socket to records", sorted(fetched, key=crossing)
            yield "rebalance", [rebalance(recorder, cluster)]
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def crossing(calls: list[Call]) -> int:
    """Count the calls between files."""
    return sum(call.crosses_files for call in calls)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", action="store_true", help="list the calls in order")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    columns = ("calls", "functions", "files", "cross-file", "equal runs")
    print(f"{'path':>30}" + "".join(f"{column:>12}" for column in columns))
    for name, runs in paths(options.rounds):
        calls = runs[0]
        functions = {(call.file, call.function) for call in calls}
        files = {call.file for call in calls}
        equal = f"{sum(crossing(run) == crossing(calls) for run in runs)}/{len(runs)}"
        numbers = [len(calls), len(functions), len(files), crossing(calls), equal]
        print(f"{name:>30}" + "".join(f"{number:>12}" for number in numbers))
        if options.trace:
            for call in calls:
                print(f"    {'>' if call.crosses_files else ' '} {call.file}: {call.function}")


if __name__ == "__main__":
    main(sys.argv[1:])
