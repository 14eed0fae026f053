"""``kclient trace``: sends records, reads them, and shows how long they are in each stage.

Without --bootstrap-server it starts a companion broker of its own, in another process, and the
stages in the broker are exact. Any other broker counts as one stage. A consumer in a thread of its
own commits after each poll. Ctrl-C ends the command and shows what was traced until then.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kclient.cli.common_options import (
    FILE_VARIABLE,
    add_config_file_option,
    config_file,
    key_values,
    positive_number,
    seconds,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.processes import start_broker
from kclient.common.arguments import LONGEST_S
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.journey import Journey, Report, as_svg, as_table
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer
from kclient.producer.producer_config import PRODUCER_CONFIG

_WARM_UP = 50
"""Records that are not traced: the first ones wait for connections and metadata."""

_POLL_S = 0.5
_INTERRUPTED_S = 2.0
"""Wait for records in flight after Ctrl-C."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient trace``."""
    parser.description = __doc__
    parser.add_argument(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        help="brokers to connect to; by default a companion broker is started in another process, "
        "and its stages are exact",
    )
    add_config_file_option(
        parser, f"(default with --bootstrap-server: {FILE_VARIABLE}); its brokers are the default"
    )
    _add_load_options(parser)
    _add_journey_options(parser)
    add_examples(
        parser,
        "kclient trace --records 200 --rate 1000",
        "kclient trace -b 127.0.0.1:9092 --topic orders --records 200 --json trace.json",
    )
    parser.set_defaults(run=run)


def _add_load_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", default="kclient-trace", help="topic (default: %(default)s)")
    parser.add_argument(
        "--records", type=whole_number(1), default=1000, help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--rate",
        type=positive_number(1e6, "records per second"),
        default=500.0,
        metavar="R",
        help="records per second (default: %(default)g)",
    )
    parser.add_argument(
        "--size", type=whole_number(0), default=100, help="bytes of a value (default: %(default)s)"
    )
    parser.add_argument("--acks", default="all", choices=("all", "1", "0"), help="acks")
    parser.add_argument("--linger-ms", type=whole_number(0), default=5, help="linger.ms")
    parser.add_argument(
        "--config",
        "-X",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any producer option by its dotted name; may be repeated",
    )
    parser.add_argument(
        "--consumer-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any option of the consumer, which commits after each poll as group kclient-trace; "
        "may be repeated",
    )


def _add_journey_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sample",
        type=seconds(LONGEST_S),
        metavar="SECONDS",
        help="trace one record at this mean interval; by default each record is traced",
    )
    parser.add_argument(
        "--timeout",
        type=seconds(LONGEST_S),
        default=30.0,
        metavar="SECONDS",
        help="fail if the cluster does not respond within this time (default: %(default)g)",
    )
    parser.add_argument("--json", type=_output, metavar="FILE", help="write the statistics as JSON")
    parser.add_argument("--svg", type=_output, metavar="FILE", help="write a picture")


def _output(given: str) -> Path:
    """Check before the records are sent that a file can be written after it."""
    path = Path(given)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"got {given!r}, expected a file that can be written")
    return path


def run(options: argparse.Namespace) -> int:
    """Trace records and show the result; return 0 if every traced record was acknowledged."""
    if not _has_own_broker(options):
        traced = _trace(options, _ClientOptions.of(options))
    else:
        with tempfile.TemporaryDirectory(prefix="kclient-trace-") as directory:
            traced = _trace_with_own_broker(options, Path(directory))
    report = traced.journey.report()
    has_traces = bool(traced.journey.traces())
    if has_traces:
        print(as_table(report), end="")
        _write_files(options, report)
    if traced.interrupt is not None:
        raise traced.interrupt
    if not has_traces:
        hint = "" if options.sample is None else "; a smaller --sample traces more records"
        raise KafkaError(f"no traced record was acknowledged{hint}")
    return 1 if report.sections[0].failed else 0


def _has_own_broker(options: argparse.Namespace) -> bool:
    return options.bootstrap_server is None and options.config_file is None


class _ClientOptions(NamedTuple):
    """Options of the clients that are common to all brokers of a cluster, by dotted name.

    Attributes:
        producer: Options of the producer.
        consumer: Options of the consumer.
    """

    producer: dict[str, object]
    consumer: dict[str, object]

    @classmethod
    def of(cls, options: argparse.Namespace) -> "_ClientOptions":
        """Return those of the configuration file and of the command line.

        Raises:
            ConfigError: The file is invalid.
        """
        file = config_file(options)
        given = options.bootstrap_server
        servers = {} if given is None else {"bootstrap.servers": given}
        return cls(
            *(
                {**({} if file is None else file.options_for(definition)), **servers}
                for definition in (PRODUCER_CONFIG, CONSUMER_CONFIG)
            )
        )


class _Traced(NamedTuple):
    """Ended journey, and the interrupt that ended it, if there was one."""

    journey: Journey
    interrupt: KeyboardInterrupt | None


def _trace_with_own_broker(options: argparse.Namespace, directory: Path) -> _Traced:
    requests = directory / "requests.log"
    broker, bootstrap = start_broker(
        directory / "data", directory / "broker.log", "--request-log", str(requests)
    )
    with broker:
        servers: dict[str, object] = {"bootstrap.servers": bootstrap}
        traced = _trace(options, _ClientOptions(servers, servers))
    times = traced.journey.broker_times
    with requests.open(encoding="utf-8") as lines:  # complete when the broker has ended
        times.read_log(lines)
    return traced


def _trace(options: argparse.Namespace, clients: _ClientOptions) -> _Traced:
    interrupt = None
    with (
        Producer(_producer_options(options, clients.producer)) as producer,
        Consumer(_consumer_options(options, clients.consumer)) as consumer,
    ):
        value = bytes(options.size)
        producer.send(options.topic, value).result(options.timeout)  # creates the topic
        with closing(_Reader(consumer, producer, options)) as reader:
            for _ in range(_WARM_UP):
                producer.send(options.topic, value).result(options.timeout)
            journey = Journey(producer, consumer, interval=options.sample or 0)
            print(
                f"tracing {options.records:,} records, {options.rate:g} per second", file=sys.stderr
            )
            with journey:
                try:
                    _send(producer, options, value)
                    _await_end(journey, producer, reader, options.timeout)
                except KeyboardInterrupt as error:
                    interrupt = error
                    _end_early(options, journey, producer, consumer, reader)
    return _Traced(journey, interrupt)


def _end_early(
    options: argparse.Namespace,
    journey: Journey,
    producer: Producer[Any, Any],
    consumer: Consumer[Any, Any],
    reader: "_Reader",
) -> None:
    """End the journey after Ctrl-C, with the records in flight if there is still a broker."""
    if not _has_own_broker(options):  # a terminal has interrupted the own broker, too
        with suppress(KafkaError):
            _await_end(journey, producer, reader, _INTERRUPTED_S)
    reader.close()
    producer.close(0)
    consumer.close(0)
    journey.close(_INTERRUPTED_S)


def _await_end(
    journey: Journey, producer: Producer[Any, Any], reader: "_Reader", timeout: float
) -> None:
    """Wait until all records have their outcome, and those that are traced were committed."""
    producer.flush(timeout)
    ends: dict[TopicPartition, int] = {}
    for trace in journey.traces():
        partition = TopicPartition(trace.topic, trace.partition)
        ends[partition] = max(ends.get(partition, 0), trace.offset + 1)
    reader.await_commit(ends, timeout)


class _Reader:
    """Thread that reads the records that arrive until `close`, and commits them."""

    def __init__(
        self,
        consumer: Consumer[Any, Any],
        producer: Producer[Any, Any],
        options: argparse.Namespace,
    ) -> None:
        self._consumer = consumer
        self._timeout = options.timeout
        tasks = system_runtime().tasks
        self._changed = tasks.condition()  # guards: _committed, _error
        self._committed: dict[TopicPartition, int] = {}
        self._error: KafkaError | None = None
        self._ended = False
        partitions = [
            TopicPartition(options.topic, info.partition)
            for info in producer.partitions_for(options.topic)
        ]
        consumer.assign(partitions)
        consumer.seek_to_end()
        for partition in partitions:
            consumer.position(partition, options.timeout)
        self._task = tasks.spawn("kclient-trace-reader", self._read)

    def close(self) -> None:
        """End the thread. Idempotent."""
        if not self._ended:
            self._ended = True
            self._consumer.wakeup()
            self._task.join(self._timeout)

    def await_commit(self, offsets: Mapping[TopicPartition, int], timeout: float) -> None:
        """Wait until the offsets are committed.

        Raises:
            KafkaTimeoutError: They were not committed in time.
            KafkaError: The consumer failed.
        """

        def is_over() -> bool:
            reached = (self._committed.get(each, 0) >= end for each, end in offsets.items())
            return self._error is not None or all(reached)

        with self._changed:
            in_time = self._changed.wait_for(is_over, timeout)
            if self._error is not None:
                raise self._error
        if not in_time:
            raise KafkaTimeoutError(f"the consumer did not read all records within {timeout:g} s")

    def _read(self) -> bool:
        """Poll and commit; return whether to continue."""
        try:
            records = self._consumer.poll(_POLL_S)
            if records:
                self._consumer.commit(timeout=self._timeout)
        except KafkaError as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
            return False
        with self._changed:
            for partition in records.partitions():
                self._committed[partition] = records.records(partition)[-1].offset + 1
            self._changed.notify_all()
        return not self._ended


def _producer_options(options: argparse.Namespace, common: dict[str, object]) -> dict[str, object]:
    return {
        **common,
        "client.id": f"kclient-trace-{os.getpid()}",
        "acks": options.acks,
        "linger.ms": options.linger_ms,
        "max.block.ms": round(options.timeout * 1000),
        **({} if options.acks == "all" else {"enable.idempotence": False}),
        **key_values("--config", options.config),
    }


def _consumer_options(options: argparse.Namespace, common: dict[str, object]) -> dict[str, object]:
    return {
        **common,
        "client.id": f"kclient-trace-{os.getpid()}",
        "group.id": "kclient-trace",
        "enable.auto.commit": False,
        "default.api.timeout.ms": round(options.timeout * 1000),
        **key_values("--consumer-config", options.consumer_config),
    }


def _send(producer: Producer[Any, Any], options: argparse.Namespace, value: bytes) -> None:
    """Send the records at the rate; one that is late is sent at once."""
    due = time.monotonic()
    for _ in range(options.records):
        wait = due - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        producer.send(options.topic, value)
        due += 1.0 / options.rate


def _write_files(options: argparse.Namespace, report: Report) -> None:
    if options.json is not None:
        names = ("topic", "records", "rate", "size", "acks", "linger_ms")
        fields = {name: getattr(options, name) for name in names} | report.as_fields()
        options.json.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    if options.svg is not None:
        options.svg.write_text(as_svg(report), encoding="utf-8")
