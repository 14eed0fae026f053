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
    """Records the calls of all threads that start after it was installed."""

    calls: list[Call] = field(default_factory=list)
    returns: dict[str, list[int]] = field(default_factory=dict)
    is_active: bool = False

    def install(self) -> None:
        """Observe this thread and those that start later."""
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)

    @contextmanager
    def recording(self) -> Iterator[list[Call]]:
        """Collect the calls of the block."""
        self.calls, self.returns = [], {}
        self.is_active = True
        try:
            yield self.calls
        finally:
            self.is_active = False

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if not self.is_active or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "return":
            self.returns.setdefault(frame.f_code.co_qualname, []).append(len(self.calls))
        elif event == "call":
            caller = frame.f_back.f_code.co_filename if frame.f_back else ""
            file = frame.f_code.co_filename.removeprefix(PACKAGE)
            name = frame.f_code.co_qualname
            call = Call(threading.get_ident(), caller.removeprefix(PACKAGE), file, name)
            self.calls.append(call)


def threads_of(calls: Sequence[Call], file: str) -> set[int]:
    """Return the threads that ran a function of the file."""
    return {call.thread for call in calls if call.file == file}


def send_and_acknowledgement(recorder: Recorder, producer: Producer) -> list[Call]:
    """Return the calls of application and sender thread from ``send()`` to the result."""
    with recorder.recording() as calls:
        producer.send(TOPIC, b"value", b"key").result(10)
    threads = threads_of(calls, "producer/sender.py") | {threading.get_ident()}
    return [call for call in calls if call.thread in threads]


def produce_request(recorder: Recorder, producer: Producer) -> list[Call]:
    """Return the calls of the broker's network thread for a Produce request."""
    with recorder.recording() as calls:
        producer.send(TOPIC, b"value", b"key").result(10)
    threads = threads_of(calls, "broker/network/processor.py")
    return from_first_read([call for call in calls if call.thread in threads])


def from_first_read(calls: list[Call]) -> list[Call]:
    """Return the calls since a socket was found readable."""
    for number, call in enumerate(calls):
        if call.function == "NetworkReceive.read_from":
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


def paths(rounds: int) -> Iterator[tuple[str, list[Call]]]:
    """Run each path so many times and return its shortest run."""
    recorder = Recorder()
    recorder.install()
    try:
        with EmbeddedCluster() as cluster:
            servers = cluster.bootstrap_servers
            with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
                producer.send(TOPIC, b"first").result(10)
                yield (
                    "send to acknowledgement",
                    shortest([send_and_acknowledgement(recorder, producer) for _ in range(rounds)]),
                )
                yield (
                    "Produce request to response",
                    shortest([produce_request(recorder, producer) for _ in range(rounds)]),
                )
                with Consumer(bootstrap_servers=servers) as consumer:
                    partition = TopicPartition(TOPIC, 0)
                    consumer.assign([partition])
                    consumer.seek_to_end(partition)
                    consumer.position(partition)
                    consumer.poll(0.1)
                    yield (
                        "readable socket to records",
                        shortest(
                            [fetched_records(recorder, producer, consumer) for _ in range(rounds)]
                        ),
                    )
            yield "rebalance", rebalance(recorder, cluster)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def shortest(runs: list[list[Call]]) -> list[Call]:
    """Return the run with the fewest calls: the others have extra turns of a thread's loop."""
    return min(runs, key=crossing)


def crossing(calls: list[Call]) -> int:
    """Count the calls between files."""
    return sum(call.crosses_files for call in calls)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", action="store_true", help="list the calls in order")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    print(f"{'path':>30}{'calls':>12}{'functions':>12}{'files':>12}{'cross-file':>12}")
    for name, calls in paths(options.rounds):
        functions, files = (
            {(call.file, call.function) for call in calls},
            {call.file for call in calls},
        )
        print(f"{name:>30}{len(calls):12}{len(functions):12}{len(files):12}{crossing(calls):12}")
        if options.trace:
            for call in calls:
                print(f"    {'>' if call.crosses_files else ' '} {call.file}: {call.function}")


if __name__ == "__main__":
    main(sys.argv[1:])
