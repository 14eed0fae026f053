"""``kclient demo``: produces, consumes in a group, kills a member and compares all totals."""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from kclient import AdminClient, NewTopic, Producer, TopicPartition
from kclient.cli.demo.demo_security import prepare_security, write_private
from kclient.cli.demo.flights import (
    ROW_COUNT,
    airline_names,
    data_directory,
    read_flights,
)
from kclient.cli.demo.report import Progress, Summary, summarize, table
from kclient.cli.examples import add_examples
from kclient.cli.processes import Process, start_broker
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.network.endpoint import SecurityProtocol

TOPIC = "flights"
GROUP = "flight-statistics"
PARTITIONS = 6
KILL_AT = 0.4  # of all records
DEADLINE_S = 90.0

Options = Mapping[str, str]
Position = tuple[int, int]
Seen = tuple[str, int | None]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient demo``."""
    parser.description = __doc__
    parser.add_argument(
        "--data-dir",
        type=Path,
        help="data directory of the broker; by default a new temporary directory",
    )
    parser.add_argument(
        "--security",
        type=str.lower,
        choices=[name.lower() for name in SecurityProtocol.__members__],
        default="plaintext",
        help="security protocol of all connections, ssl with client certificates; "
        "certificates and a user are made for the run "
        "(default: %(default)s)",
    )
    add_examples(parser, "kclient demo", "kclient demo --security sasl_ssl --data-dir ./demo")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demonstration; return 0 if every record arrived and every figure matches."""
    data_directory()  # raises where the package with the flights is missing
    directory = options.data_dir or Path(tempfile.mkdtemp(prefix="kclient-demo-"))
    directory.mkdir(parents=True, exist_ok=True)
    print("kclient demo: flights from New York City, 2013", flush=True)
    protocol = SecurityProtocol[options.security.upper()]
    security = prepare_security(protocol, directory)
    broker, bootstrap = start_broker(directory / "data", directory / "broker.log", *security.broker)
    clients = {"bootstrap.servers": bootstrap, **security.clients}
    with broker:
        print(f"  broker    {bootstrap}, {protocol.name}, process {broker.pid}", flush=True)
        source = produce(clients)
        seen, redelivered = consume(clients, directory)
        intact = report(clients, source, seen, redelivered)
    show_directory(directory / "data")
    return 0 if intact else 1


def produce(clients: Options) -> Summary:
    """Send every flight, keyed by carrier; return the source's own totals."""
    with AdminClient(clients) as admin:
        admin.create_topics(
            [NewTopic(TOPIC, num_partitions=PARTITIONS)]
        ).raise_for_errors().raise_for_errors()
    flights = list(read_flights())
    bar = Progress("produced", ROW_COUNT)
    failures: list[BaseException] = []
    began = time.perf_counter()
    with Producer({**clients, "linger.ms": 20, "compression.type": "lz4"}) as producer:
        for count, flight in enumerate(flights, start=1):
            producer.send(
                TOPIC,
                flight.value,
                key=flight.carrier.encode(),
                on_delivery=lambda _, error: failures.append(error) if error else None,
            )
            if count % 2_000 == 0:
                bar.update(count)
        producer.flush(timeout=60.0)
    bar.update(len(flights))
    if failures:
        raise KafkaError(f"{len(failures)} records were not delivered") from failures[0]
    elapsed = time.perf_counter() - began
    megabytes = sum(len(flight.value) for flight in flights) / 1e6
    print(
        f"            {len(flights) / elapsed:,.0f} records/s, {megabytes / elapsed:.1f} MB/s,"
        " every record acknowledged",
        flush=True,
    )
    return summarize((flight.carrier, flight.departure_delay) for flight in flights)


def consume(clients: Options, directory: Path) -> tuple[dict[Position, Seen], int]:
    """Consume in two processes and kill one; return the records, and how many were redelivered."""
    journals = [directory / "member-1.journal", directory / "member-2.journal"]
    for journal in journals:
        journal.write_text("")
    config_file = directory / "client.properties"
    write_private(config_file, "".join(f"{name}={value}\n" for name, value in clients.items()))
    members = [start_member(config_file, journal) for journal in journals]
    bar = Progress("consumed", ROW_COUNT)
    seen: dict[Position, Seen] = {}
    lines = 0
    began = time.monotonic()
    first: float | None = None
    victim = members[0]
    readers = [follow(journal) for journal in journals]
    with members[0], members[1]:
        while len(seen) < ROW_COUNT:
            check_progress(members, victim, began, len(seen))
            fresh = [line for reader in readers for line in next(reader)]
            if not fresh:
                time.sleep(0.02)
            elif first is None:
                first = time.monotonic()
            lines += len(fresh)
            seen.update(fresh)
            bar.update(len(seen))
            if victim.is_running() and len(seen) > KILL_AT * ROW_COUNT:
                victim.kill()
                rate = len(seen) / (time.monotonic() - (first or began))
                print(f"            {rate:,.0f} records/s by two members with manual commit")
                print(f"            killed member 1 (SIGKILL) after {len(seen):,}", flush=True)
        members[1].close_input()
    return seen, lines - len(seen)


def start_member(config_file: Path, journal: Path) -> Process:
    """Start a member of the group that writes to `journal`."""
    arguments = ["--config-file", str(config_file), "--topic", TOPIC, "--group", GROUP]
    return Process(
        journal.stem,
        "kclient.cli.demo.member",
        [*arguments, "--journal", str(journal)],
        journal.with_suffix(".log"),
    )


def check_progress(members: list[Process], victim: Process, began: float, count: int) -> None:
    """Raise if a member ended that was not killed, or if the deadline passed."""
    for member in members:
        if member is not victim and not member.is_running():
            raise KafkaError(f"{member.name} ended by itself; see {member.log}")
    if time.monotonic() - began > DEADLINE_S:
        raise KafkaTimeoutError(f"consumed {count:,} of {ROW_COUNT:,} records in {DEADLINE_S:g} s")


def follow(journal: Path) -> Iterator[list[tuple[Position, Seen]]]:
    """Yield the complete lines added since the last call, without end."""
    with journal.open(encoding="ascii") as text:
        rest = ""
        while True:
            *complete, rest = (rest + text.read()).split("\n")
            yield [parse_line(line) for line in complete]


def parse_line(line: str) -> tuple[Position, Seen]:
    """Parse a line of a member's journal."""
    partition, offset, carrier, delay = line.split(" ")
    return (int(partition), int(offset)), (carrier, None if delay == "-" else int(delay))


def report(clients: Options, source: Summary, seen: dict[Position, Seen], redelivered: int) -> bool:
    """Print the result; return whether every record arrived and every total matches."""
    consumed = summarize(seen.values())
    print()
    print("\n".join(table(consumed, source, airline_names())))
    missing = ROW_COUNT - len(seen)
    print()
    print(f"  lost {missing}, read again after the kill {redelivered:,}", flush=True)
    committed = committed_offsets(clients)
    print(f"  committed by the group: {committed:,} of {ROW_COUNT:,}", flush=True)
    return missing == 0 and consumed == source and committed == ROW_COUNT


def committed_offsets(clients: Options) -> int:
    """Return the sum of the group's committed offsets."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with AdminClient(clients) as admin:
        offsets = admin.list_consumer_group_offsets(GROUP).raise_for_errors()
    return sum(offsets[partition].offset for partition in partitions if partition in offsets)


def show_directory(data: Path) -> None:
    """Print the data directory and its log files."""
    print(f"\n  data in Kafka's format: {data}")
    for log in sorted(data.glob(f"{TOPIC}-*/*.log")):
        print(f"    {log.relative_to(data)}  {log.stat().st_size / 1e6:6.2f} MB")
    print(f"  look inside: kclient dump-log {data}/{TOPIC}-0/{'0' * 20}.log")
    print(f"  remove:      rm -r {data.parent}")
