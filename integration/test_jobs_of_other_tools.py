"""The tables of jobs in administer.md: our command has the outcome of Kafka's tool.

Each row of the tables has a case. A row with Kafka's tool runs the tool, then kclient, each on a
broker that was prepared again, and compares what they printed and what the broker has afterwards.
A row that only kcat has is compared with kcat's documentation.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration.conftest import StartCluster, ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.job_output import (
    Parse,
    columns,
    java_columns,
    lines,
    nothing,
    our_groups,
    our_offsets,
    our_partitions,
    our_quotas,
    our_settings,
    text,
    their_groups,
    their_offsets,
    their_partitions,
    their_quotas,
    their_settings,
)
from integration.harness.job_site import START_MS, JobSite, Output
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from kclient.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    TransactionState,
)
from kclient.cli.records.record_text import unescape
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, poll_until
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.child_process import ROOT

PAGE = ROOT / "docs" / "how-to" / "administer.md"
SECTION = "## Jobs of kcat and of Kafka's tools\n"
NONE = "–"
FILES = {
    "orders.txt": b"k1:v1\nk2:v2\nk3:v3\n",
    "orders.csv": b"a;b;c",
    "tombstones.txt": b"k1:\nk2:v2\n",
    "nulls.txt": b"k1:NULL\nk2:v2\n",
    "headers.txt": b"source:shop,number:1\tv1\nsource:web\tv2\n",
    "headers.jsonl": b'{"value": "v1", "headers": [["source", "shop"], ["number", "1"]]}\n'
    b'{"value": "v2", "headers": [["source", "web"]]}\n',
    "first.bin": b"\x00first\nline\xff",
    "second.bin": b"second",
    "client.properties": b"client.id=billing\nacks=1\n",
    "settings.properties": b"retention.ms=3600000\ncleanup.policy=compact\n",
    "offsets.csv": b"orders,0,2\norders,1,0\n",
    "delete.json": b'{"version": 1, "partitions": ['
    b'{"topic": "orders", "partition": 0, "offset": 2},'
    b'{"topic": "payments", "partition": 0, "offset": -1}]}',
    "alice.secret": b"alice-secret\n",
}
SENT = [b"k1:v1", b"k2:v2", b"k3:v3"]
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "orders")
BROKERS = ConfigResource(ConfigResourceType.BROKER, "")
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
ALICE = ClientQuotaEntity.of({"user": "alice"})


class Row(NamedTuple):
    """A row of the tables; a tool that does not do the job is None."""

    job: str
    kcat: str | None
    kafka: str | None
    kclient: str | None


def rows_of_page() -> list[Row]:
    _, _, section = PAGE.read_text().partition(SECTION)
    found = []
    for line in section.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0] != "job" and not cells[0].startswith("---"):
            job, *commands = (cell.replace(r"\|", "|") for cell in cells)
            given = [None if each == NONE else each.strip("`") for each in commands]
            found.append(Row(job, *given))
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """How the outcome of a job is read.

    Attributes:
        theirs: Parser of the output of Kafka's tool.
        ours: Parser of kclient's output.
        prepare: What is needed in addition to the topics, records and the group of `JobSite`.
        meanwhile: What happens while the command runs.
        also: State that `JobSite.state` does not have.
        check: For a job without a tool of Kafka: compares with the documentation of kcat.
        is_of_companion: Whether the companion broker is compared, too.
    """

    theirs: Parse = nothing
    ours: Parse = nothing
    prepare: Callable[[JobSite], object] = lambda _: None
    meanwhile: Callable[[JobSite], AbstractContextManager[object]] = nullcontext
    also: Callable[[JobSite], object] = lambda _: None
    check: Callable[[JobSite, Output], None] | None = None
    is_of_companion: bool = False


# -- records: what kcat documents


def values_are(*expected: bytes) -> Callable[[JobSite, Output], None]:
    def check(site: JobSite, output: Output) -> None:
        assert sorted(record.value or b"" for record in site.sent()) == sorted(expected)

    return check


def check_one_key(site: JobSite, output: Output) -> None:
    values_are(*SENT)(site, output)
    assert {record.key for record in site.sent()} == {b"customer-7"}


def check_null(site: JobSite, output: Output) -> None:
    found = {(record.key, record.value) for record in site.sent()}
    assert found == {(b"k1", None), (b"k2", b"v2")}


def check_headers(site: JobSite, output: Output) -> None:
    values_are(*SENT)(site, output)
    found = {tuple(record.headers) for record in site.sent()}
    assert found == {(("source", b"shop"), ("number", b"1"))}


def check_partition(site: JobSite, output: Output) -> None:
    assert [(each.partition, each.value) for each in site.sent()] == [(1, each) for each in SENT]


def check_transaction(site: JobSite, output: Output) -> None:
    values_are(*SENT)(site, output)
    (described,) = site.clients.admin().describe_transactions("billing").values()
    assert described.state is TransactionState.COMPLETE_COMMIT


def check_copy(site: JobSite, output: Output) -> None:
    values_are(*SENT)(site, output)
    assert set(SENT) <= set(output.stderr.encode().splitlines())


def prints(*expected: str) -> Callable[[JobSite, Output], None]:
    def check(site: JobSite, output: Output) -> None:
        assert sorted(text(output).splitlines()) == sorted(expected)

    return check


def prepared(template: str) -> list[str]:
    """Return the records of orders in a format string of Python."""
    return [
        template.format(
            partition=partition, offset=offset, key=f"k{offset}", value=f"o{partition}-{offset}",
            timestamp=START_MS + 1000 * second,
        )
        for partition, seconds in enumerate(((0, 2, 1, 4, 3), (10, 11, 12)))
        for offset, second in enumerate(seconds)
    ]  # fmt: skip


def check_json(site: JobSite, output: Output) -> None:
    found = [json.loads(line) for line in text(output).splitlines()]
    shown = [
        f"{each['topic']} {each['partition']} {each['offset']} {each['timestamp']} {each['key']} "
        f"{each['value']} {dict(each['headers'])}"
        for each in found
    ]
    form = "orders {partition} {offset} {timestamp} {key} {value} "
    headers = [{"source": "shop", "number": str(n)} for n in (0, 1, 2, 3, 4, 0, 1, 2)]
    expected = [each + str(named) for each, named in zip(prepared(form), headers, strict=True)]
    assert sorted(shown) == sorted(expected)


def check_topics_as_json(site: JobSite, output: Output) -> None:
    found = {each["name"]: each for each in map(json.loads, text(output).splitlines())}
    assert {"orders", "payments"} <= found.keys()
    partitions = [
        (each["partition"], each["leader"], each["replicas"], each["isr"])
        for each in found["orders"]["partitions"]
    ]
    node = site.broker_id
    assert partitions == [(0, node, [node], [node]), (1, node, [node], [node])]


# -- records: lines of kclient and of the console consumer in one form


def java_records(output: Output) -> list[bytes]:
    """Return lines of fields without their names, with our separators."""
    shown = re.sub(rb"\b(CreateTime|Partition|Offset):", b"", output.stdout)
    shown = re.sub(rb"\b(source|number):", rb"\1=", shown).replace(b"\t", b" ")
    return sorted(shown.splitlines())


def java_nulls(output: Output) -> list[tuple[bytes | None, ...]]:
    found = [line.split(b"\t") for line in output.stdout.splitlines()]
    return [tuple(None if each == b"NULL" else each for each in fields) for fields in found]


def our_nulls(output: Output) -> list[tuple[bytes | None, ...]]:
    return [tuple(map(unescape, line.split(b"\t"))) for line in output.stdout.splitlines()]


def java_lines(output: Output) -> list[bytes]:
    """Return the lines before the message about the timeout."""
    return sorted(re.split(rb"\S+ main ERROR ", output.stdout)[0].splitlines())


def semicolons(output: Output) -> list[bytes]:
    return sorted(output.stdout.split(b";"))


def raw(output: Output) -> bytes:
    return output.stdout


@contextmanager
def sending(site: JobSite) -> Iterator[None]:
    """Send records to the end of orders until the command ends."""
    ended = threading.Event()

    def send() -> None:
        producer = site.clients.producer()
        while not ended.wait(0.1):
            producer.send("orders", b"live").result(20)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    ended.set()
    thread.join()


def add_transactions(site: JobSite) -> None:
    """Add a record of an aborted transaction, then one of a committed transaction."""
    producer = site.clients.producer(transactional_id="billing")
    producer.init_transactions()
    for value in (b"aborted", b"committed"):
        producer.begin_transaction()
        producer.send("payments", value).result(20)
        (producer.abort_transaction if value == b"aborted" else producer.commit_transaction)()
    producer.close()


def same(parse: Parse, **more: object) -> Case:
    """Return a case whose outputs have the same form."""
    return Case(parse, parse, **more)  # type: ignore[arg-type]  # fields of Case


SENDING = {
    "send lines": Case(is_of_companion=True),
    "send the lines of a file by name": Case(check=values_are(*SENT)),
    "send keys and values": Case(is_of_companion=True),
    "send one key with each record": Case(check=check_one_key),
    "send empty values as null": Case(check=check_null),
    "send a marker as null": Case(),
    "send headers with each record": Case(check=check_headers),
    "send headers of a line": Case(is_of_companion=True),
    "send files, one record each": Case(check=values_are(FILES["first.bin"], FILES["second.bin"])),
    "send to a partition": Case(check=check_partition),
    "split the input at another text": Case(check=values_are(b"a", b"b", b"c")),
    "compress": Case(also=JobSite.codecs, is_of_companion=True),
    "send in one transaction": Case(check=check_transaction, is_of_companion=True),
    "send with other producer options": Case(),
    "take producer options from a file": Case(),
    "send the first lines": Case(check=values_are(*SENT[:2])),
    "print what is sent": Case(check=check_copy),
}
READING = {
    "wait for new records, stop after some": same(lines, meanwhile=sending),
    "read everything, then stop": Case(java_lines, lines, is_of_companion=True),
    "read from the beginning, stop after some": same(lines),
    "read until no record arrives": Case(java_lines, lines),
    "read the last records": Case(check=prints("o0-3", "o0-4")),
    "read from an offset": same(lines, is_of_companion=True),
    "read one partition": same(lines),
    "read from a time": Case(check=prints("o0-3", "o0-4", "o1-0", "o1-1", "o1-2")),
    "read between two times": Case(check=prints("o0-1", "o0-2", "o0-3", "o0-4", "o1-0")),
    "read as a group": same(lines, is_of_companion=True),
    "read several topics as a group": Case(java_lines, lines),
    "read topics of a pattern": same(lines),
    "read committed transactions only": same(lines, prepare=add_transactions, is_of_companion=True),
    "print JSON": Case(check=check_json),
    "print in a format": Case(
        check=prints(*prepared("orders {partition} {offset}: {key}={value}"))
    ),
    "print keys": same(lines),
    "print partitions and offsets": Case(java_records, lines),
    "print timestamps, headers and keys": Case(java_records, lines, is_of_companion=True),
    "print lengths of keys and values": Case(check=prints("-1 2", "-1 2")),
    "print null as a text": Case(java_nulls, our_nulls),
    "print another text after each record": same(semicolons),
    "write one value to a file": same(raw),
}


# -- topics and offsets


def delete_orders(site: JobSite) -> None:
    site.clients.admin().delete_topics("orders").raise_for_errors()
    site.apply()


def change_topic(site: JobSite) -> None:
    site.configure(TOPIC, retention__ms="3600000", segment__ms="600000")
    site.apply()


def topic_names(output: Output) -> list[str]:
    return sorted(re.findall(r"^topic:? (\S+)", text(output), re.MULTILINE | re.IGNORECASE))


def success(output: Output) -> str:
    """Return a constant: a command that fails has no outcome."""
    del output
    return "exit status 0"


def cluster_id(output: Output) -> str:
    return text(output).removeprefix("Cluster ID: ").strip()


def our_brokers(output: Output) -> list[tuple[str, ...]]:
    rows = text(output).partition("BROKER")[2].partition("\n\n")[0].splitlines()[1:]
    return [tuple(row.split()[:3]) for row in rows]


DEGRADED = {
    "find partitions that are under-replicated": Case(their_partitions, our_partitions),
    "find partitions without a leader": Case(their_partitions, our_partitions),
    "find partitions below min.insync.replicas": Case(their_partitions, our_partitions),
    "find partitions at min.insync.replicas": Case(their_partitions, our_partitions),
}
"""Jobs of a cluster of two brokers, one of which has stopped."""

TOPICS = {
    "list topics": same(lines, is_of_companion=True),
    "list topics, internal ones too": same(lines),
    "describe all topics": Case(their_partitions, our_partitions),
    "describe a topic": Case(their_partitions, our_partitions, is_of_companion=True),
    "describe topics as JSON": Case(check=check_topics_as_json),
    **DEGRADED,
    "find topics with settings that are not defaults": same(topic_names, prepare=change_topic),
    "create a topic": Case(prepare=delete_orders, is_of_companion=True),
    "create a topic with the cluster's defaults": Case(prepare=delete_orders),
    "create a topic with settings": Case(prepare=delete_orders, is_of_companion=True),
    "create a topic on certain brokers": Case(prepare=delete_orders, is_of_companion=True),
    "create a topic unless it exists": same(success, is_of_companion=True),
    "add partitions": Case(is_of_companion=True),
    "delete a topic": Case(is_of_companion=True),
    "delete several topics": Case(),
    "delete a topic if it exists": same(success),
    "show end offsets": Case(their_offsets, our_offsets, is_of_companion=True),
    "show start offsets": Case(their_offsets, our_offsets),
    "show offsets at a time": Case(their_offsets, our_offsets, is_of_companion=True),
    "show offsets of the highest timestamp": Case(their_offsets, our_offsets),
    "show start offsets on the brokers' disks": Case(their_offsets, our_offsets),
    "show offsets of some partitions": Case(their_offsets, our_offsets),
    "show offsets of all topics": Case(their_offsets, our_offsets),
    "delete records by a file": Case(is_of_companion=True),
    "show brokers": Case(java_columns("ID", "HOST", "PORT"), our_brokers),
    "show the id of the cluster": same(cluster_id, is_of_companion=True),
}


# -- settings and quotas


def change_broker(site: JobSite) -> None:
    site.configure(BROKER, log__cleaner__threads="2")
    site.apply()


def change_brokers(site: JobSite) -> None:
    site.configure(BROKERS, log__cleaner__threads="2")
    site.apply()


def limit_alice(site: JobSite) -> None:
    quotas = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}
    site.clients.admin().alter_client_quotas({ALICE: quotas}).raise_for_errors()
    site.apply()


def add_alice(site: JobSite) -> None:
    site.run("kclient users add alice --mechanism SCRAM-SHA-256 --password-file alice.secret")
    site.apply()


def log_level(site: JobSite) -> object:
    resource = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
    found = site.clients.admin().describe_configs(resource)[resource]
    level = found["kafka.server.KafkaApis"].value
    reset = AlterConfigOp("kafka.server.KafkaApis", None, AlterConfigOpType.DELETE)
    site.clients.admin().incremental_alter_configs({resource: [reset]}).raise_for_errors()
    return level


SETTINGS = {
    "show the settings of a topic": Case(
        their_settings, our_settings("DYNAMIC_TOPIC_CONFIG"), change_topic, is_of_companion=True
    ),
    "show all settings of a topic": Case(their_settings, our_settings()),
    "change settings of a topic": Case(is_of_companion=True),
    "change a list of a topic": Case(),
    "change settings by a file": Case(),
    "remove settings of a topic": Case(prepare=change_topic, is_of_companion=True),
    "show the settings of a broker": Case(
        their_settings, our_settings("DYNAMIC_BROKER_CONFIG"), change_broker
    ),
    "change a setting of a broker": Case(),
    "remove a setting of a broker": Case(prepare=change_broker),
    "show the settings of all brokers": Case(
        their_settings, our_settings("DYNAMIC_DEFAULT_BROKER_CONFIG"), change_brokers
    ),
    "change a setting of all brokers": Case(),
    "remove a setting of all brokers": Case(prepare=change_brokers),
    "change a log level of a broker": Case(also=log_level),
    "change a setting of a group": Case(),
    "show quotas of a user": Case(their_quotas, our_quotas, limit_alice),
    "set quotas of a user": Case(),
    "set quotas of a client": Case(),
    "set quotas of a client of a user": Case(),
    "set quotas of all users without their own": Case(),
    "set quotas of all clients without their own": Case(),
    "set quotas of an address": Case(),
    "remove quotas": Case(prepare=limit_alice),
    "add a SCRAM user": Case(),
    "delete a SCRAM user": Case(prepare=add_alice),
}


# -- groups


@contextmanager
def member(site: JobSite) -> Iterator[None]:
    """Run a member of billing with the partitions of orders."""
    consumer = site.clients.consumer("billing", client_id="billing-1")
    consumer.subscribe("orders")
    poll_until(consumer, consumer.assignment, "partitions are assigned")
    yield
    consumer.close()


def their_members(output: Output) -> object:
    """Return the numbers of partitions of the members, and the partitions."""
    found = re.findall(
        r"^billing +billing-1-\S+ +\S+ +billing-1 +(\d+) +(.*\S)", text(output), re.MULTILINE
    )
    return [(int(count), re.findall(r"\d+", where)) for count, where in found]


def our_members(output: Output) -> object:
    found = re.findall(r"^orders +(\d+) .* billing-1-", text(output), re.MULTILINE)
    return [(len(found), found)]


def their_state(output: Output) -> object:
    return re.findall(r"^billing .*\) +(\S+) +(\S+) +\d+", text(output), re.MULTILINE)


def our_state(output: Output) -> object:
    found = re.findall(r"state (\S+)  assignor (\S+)", text(output))
    return [(assignor, state) for state, assignor in found]


LAG = Case(
    java_columns("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    columns("GROUP ID", "TOPIC", "PARTITION", "OFFSET", "LOG END OFFSET", "LAG"),
    is_of_companion=True,
)
RESET = Case(is_of_companion=True)
GROUPS = {
    "list groups": Case(their_groups(0), our_groups("GROUP ID"), is_of_companion=True),
    "list groups with their states": Case(their_groups(0, 1), our_groups("GROUP ID", "STATE")),
    "list groups in a state": Case(their_groups(0), our_groups("GROUP ID")),
    "list groups of a type": Case(their_groups(0), our_groups("GROUP ID")),
    "show offsets and lag": LAG,
    "show offsets and lag of all groups": LAG,
    "show members": Case(their_members, our_members, meanwhile=member, is_of_companion=True),
    "show the state of a group": Case(their_state, our_state, meanwhile=member),
    "show what a reset would do": Case(
        java_columns("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"),
        columns("GROUP ID", "TOPIC", "PARTITION", "OFFSET"),
    ),
    "reset to the start": RESET,
    "reset to the end": RESET,
    "reset all topics of the group": RESET,
    "reset some partitions": RESET,
    "reset to an offset": RESET,
    "reset by a number of offsets": RESET,
    "reset to a time": RESET,
    "reset by a duration": RESET,
    "commit the end where nothing is committed": RESET,
    "export offsets": same(lines),
    "reset by a file": RESET,
    "delete offsets": Case(is_of_companion=True),
    "delete a group": Case(is_of_companion=True),
}

CASES = {**SENDING, **READING, **TOPICS, **SETTINGS, **GROUPS}
ROWS = {row.job: row for row in rows_of_page()}


@pytest.fixture(scope="module")
def apache(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobSite]:
    """Apache Kafka."""
    runtime, data = runtimes(NEWEST), tmp_path_factory.mktemp("data-")
    with (
        KafkaCluster(runtime, data) as cluster,
        site_at(cluster.bootstrap(), runtime, cluster.nodes[0].data_directory, data) as site,
    ):
        yield site


@pytest.fixture(scope="module")
def companion(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobSite]:
    """A companion broker."""
    runtime, data = runtimes(NEWEST), tmp_path_factory.mktemp("data-")
    logs = data / "logs"
    with (
        BrokerProcess(logs) as broker,
        site_at(broker.bootstrap, runtime, logs, data) as site,
    ):
        yield site


@contextmanager
def site_at(
    bootstrap: str, runtime: KafkaRuntime, logs: Path, directory: Path
) -> Iterator[JobSite]:
    files, tools = directory / "files", directory / "tools"
    files.mkdir()
    tools.mkdir()
    with Clients(bootstrap) as clients, closing(KafkaTools(runtime, tools, bootstrap)) as java:
        yield JobSite(clients, java, files, FILES, logs)


def outcome(site: JobSite, case: Case, run: Callable[[], Output], parse: Parse) -> object:
    """Return what a command printed and what the broker has afterwards."""
    site.prepare()
    case.prepare(site)
    is_alone = case.meanwhile is nullcontext
    before = site.state()
    with case.meanwhile(site):
        printed = parse(run())
    after = site.state() if is_alone else before
    also = case.also(site)
    assert printed or also or after != before, "the command has neither output nor effect"
    return printed, also, after if is_alone else None


def in_turn(jobs: Iterable[str]) -> list[Any]:
    """Return each job; `make integration` takes one in six, and the campaign all of them."""
    return [
        pytest.param(job, marks=[pytest.mark.campaign] if number % 6 else [])
        for number, job in enumerate(jobs)
    ]


@pytest.mark.parametrize("job", in_turn(job for job in CASES if job not in DEGRADED))
def test_outcome_on_apache_kafka(apache: JobSite, job: str) -> None:
    compare(apache, job)


@pytest.mark.parametrize("job", in_turn(job for job in CASES if CASES[job].is_of_companion))
def test_outcome_on_the_companion_broker(companion: JobSite, job: str) -> None:
    compare(companion, job)


def compare(site: JobSite, job: str) -> None:
    """Compare the outcome of kclient with that of the other tool."""
    row, case = ROWS[job], CASES[job]
    assert row.kclient is not None
    ours = row.kclient
    if row.kafka is None:
        assert case.check is not None
        site.prepare()
        case.prepare(site)
        case.check(site, site.run(ours))
        return
    theirs = row.kafka
    expected = outcome(site, case, lambda: site.run_tool(theirs), case.theirs)
    assert outcome(site, case, lambda: site.run(ours), case.ours) == expected


def test_every_row_has_one_case() -> None:
    rows = rows_of_page()
    assert [row.job for row in rows if row.kclient is not None] == list(CASES)
    assert len(rows) == len(ROWS)
    assert all(row.kcat or row.kafka for row in rows)
    checked = {row.job for row in rows if row.kclient is not None and row.kafka is None}
    assert checked == {job for job, case in CASES.items() if case.check is not None}


def test_jobs_that_kclient_lacks_have_a_reason() -> None:
    _, _, section = PAGE.read_text().partition(SECTION)
    noted = re.findall(r"^- ([^:\n]+): ", section.partition("\n## ")[0], re.MULTILINE)
    assert noted == [row.job for row in rows_of_page() if row.kclient is None]


def test_partitions_of_a_stopped_broker_are_found(
    start_cluster: StartCluster, tools_for: ToolsFor, tmp_path: Path
) -> None:
    cluster = start_cluster(ClusterOptions(nodes=2, controllers=1))
    bootstrap = cluster.nodes[0].address()
    with Clients(bootstrap) as clients:
        site = JobSite(clients, tools_for(bootstrap), tmp_path, FILES, tmp_path)
        first, second = (node.node_id for node in cluster.nodes)
        topics = [
            NewTopic("invoices", replica_assignments={0: [first]}),
            NewTopic("orders", replica_assignments={0: [first, second]}),
            NewTopic("payments", replica_assignments={0: [second]}),
        ]
        clients.admin().create_topics(topics).raise_for_errors()
        cluster.nodes[1].stop()
        wait_until(
            lambda: (
                site.run_tool("kafka-topics.sh --describe --topic payments")
                .stdout.decode()
                .count("Leader: none")
            ),
            "the broker is fenced",
            timeout=60,
        )
        for job, case in DEGRADED.items():
            row = ROWS[job]
            assert row.kafka is not None
            assert row.kclient is not None
            found = case.ours(site.run(row.kclient))
            assert found == case.theirs(site.run_tool(row.kafka))
            assert found, job
