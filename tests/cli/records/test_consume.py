"""``kclient consume``: what it prints, when it ends, and what it commits."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.cli.interruption import INTERRUPTED, TERMINATED, interrupted
from tests.support.clients.clients import Clients, place
from tests.support.processes.child_process import ROOT, command

Run = Callable[..., tuple[int, str, str]]


def test_command_ends_after_the_maximum(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    shared_clients.fill(topic, 5)
    limits = ("--from-beginning", "--max-records", "3")
    assert run("consume", topic, *limits) == (0, "0\n1\n2\n", "3 records\n")


def test_group_continues_after_what_was_printed(run: Run, shared_clients: Clients) -> None:
    topic, group = shared_clients.topic(), shared_clients.group()
    shared_clients.fill(topic, 5)
    options = ("--group", group, "--from-beginning", "--max-records")
    assert run("consume", topic, *options, "2")[1] == "0\n1\n"
    assert run("consume", topic, *options, "3")[1] == "2\n3\n4\n"


def test_command_ends_when_no_record_arrives(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    shared_clients.fill(topic, 5)
    assert run("consume", topic, "--idle-timeout", "0.1") == (0, "", "0 records\n")


def test_missing_topic_is_an_error_and_not_created(run: Run, shared_clients: Clients) -> None:
    before = shared_clients.admin().list_topics()
    for group in ((), ("--group", "g")):
        status, _, error = run("consume", "nosuch", *group)
        assert status == 1
        assert "UNKNOWN_TOPIC_OR_PARTITION" in error
    assert shared_clients.admin().list_topics() == before


def test_options_of_consumers_are_accepted(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    shared_clients.fill(topic, 2)
    given = ("-X", "max.poll.records=1", "--from-beginning", "--max-records", "2")
    assert run("consume", topic, *given) == (0, "0\n1\n", "2 records\n")
    status, _, error = run("consume", "nosuch", "-X", "linger.ms=1")
    assert (status, "unknown option 'linger.ms' for Consumer" in error) == (2, True)


def test_group_of_the_configuration_file_is_joined(
    run: Run, shared_clients: Clients, tmp_path: Path
) -> None:
    topic, group = shared_clients.topic(), shared_clients.group()
    shared_clients.fill(topic, 3)
    file = tmp_path / "consumer.properties"
    file.write_text(f"group.id={group}\nauto.offset.reset=earliest\nlinger.ms=5\n")
    given = ("--config-file", str(file), "--max-records")
    assert run("consume", topic, *given, "1")[1] == "0\n"
    assert run("consume", topic, *given, "2")[1] == "1\n2\n"


# -- ranges of records


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tail", "2"), [3, 4, 3, 4]),
        (("--tail", "9"), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]),
        (("--tail", "2", "--partition", "1"), [3, 4]),
        (("--until-end",), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]),
        (("--offset", "3", "--until-end"), [3, 4, 3, 4]),
        (("--offset", "-1", "--until-end"), [4, 4]),
        (("--offset", "99", "--until-end"), []),
        (("--offset", "end", "--until-end"), []),
        (("--offset", "beginning", "--partition", "0", "--max-records", "2"), [0, 1]),
        (("--partition", "0", "--partition", "1", "--until-end"), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]),
        (("--from-time", "2000", "--until-end", "--partition", "1"), [2, 3, 4]),
        (("--from-time", "1970-01-01T00:00:02Z", "--to-time", "4000"), [2, 3, 2, 3]),
        (("--to-time", "1000"), [0, 0]),
        (("--from-time", "-1h", "--until-end"), []),
    ],
)
def test_range_of_records_is_printed(
    run: Run, shared_clients: Clients, options: tuple[str, ...], expected: list[int]
) -> None:
    topic = topic_with_times(shared_clients)
    status, output, error = run("consume", topic, *options)
    counted = f"{len(expected)} records\n"
    assert (status, sorted(map(int, output.split())), error) == (0, sorted(expected), counted)


def topic_with_times(clients: Clients) -> str:
    """Create a topic with 0 to 4 in both partitions, one second apart."""
    topic = clients.topic(partitions=2)
    producer = clients.producer()
    for partition in range(2):
        producer.send_many(
            topic,
            [b"%d" % number for number in range(5)],
            partition=partition,
            timestamps_ms=[number * 1000 for number in range(5)],
        ).result(20)
    return topic


def test_offset_that_was_deleted_starts_at_the_nearest(
    cluster: EmbeddedCluster, clients: Clients, capfd: pytest.CaptureFixture[str]
) -> None:
    clients.fill("orders", 5)
    cluster.broker.services.replica_manager.partition(place("orders")).delete_records(3)
    given = ("--offset", "1", "--until-end", "-b", clients.bootstrap)
    assert main(["consume", "orders", *given]) == 0
    assert capfd.readouterr().out == "3\n4\n"


def test_records_after_the_stop_are_not_printed(run: Run, shared_clients: Clients) -> None:
    """One batch contains the stop, and the group commits none of the records after it."""
    topic, group = shared_clients.topic(), shared_clients.group()
    shared_clients.producer().send_many(
        topic, [b"a", b"b", b"c"], timestamps_ms=[1000, 2000, 3000]
    ).result(20)
    options = ("--group", group, "--to-time", "3000")
    assert run("consume", topic, *options) == (0, "a\nb\n", "2 records\n")
    committed = shared_clients.admin().list_consumer_group_offsets(group)
    assert committed[place(topic)].offset == 2
    assert run("consume", topic, "--group", group, "--until-end")[1] == "c\n"
    assert run("consume", topic, "--group", group, "--until-end")[1] == ""


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("group", [False, True])
def test_until_end_passes_offsets_without_a_record(
    run: Run, shared_clients: Clients, level: str, group: bool
) -> None:
    topic = shared_clients.topic()
    producer = shared_clients.producer(transactional_id=f"of-{topic}-{level}")
    producer.init_transactions()
    for value, is_committed in ((b"kept", True), (b"aborted", False)):
        producer.begin_transaction()
        producer.send(topic, value)
        producer.flush()
        if is_committed:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    expected = "kept\n" if level == "read_committed" else "kept\naborted\n"
    joined = ("--group", shared_clients.group()) if group else ()
    given = ("--until-end", "-X", f"isolation.level={level}", *joined)
    assert run("consume", topic, *given)[:2] == (0, expected)


def test_until_end_of_an_open_transaction_is_its_start(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    shared_clients.fill(topic, 1)
    producer = shared_clients.producer(transactional_id=f"of-{topic}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open").result(20)
    given = ("--until-end", "-X", "isolation.level=read_committed")
    assert run("consume", topic, *given) == (0, "0\n", "1 record\n")
    producer.abort_transaction()


def test_group_of_a_configuration_file_is_not_joined_for_a_range(
    run: Run, shared_clients: Clients, tmp_path: Path
) -> None:
    topic, group = shared_clients.topic(), shared_clients.group()
    shared_clients.fill(topic, 3)
    file = tmp_path / "consumer.properties"
    file.write_text(f"group.id={group}\n")
    given = ("--tail", "1", "--config-file", str(file))
    assert run("consume", topic, *given) == (0, "2\n", "1 record\n")
    assert group not in [listed.group_id for listed in shared_clients.admin().list_groups()]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--group", "g", "--tail", "1"), "argument --group: not allowed with --offset"),
        (("--group", "g", "--partition", "0"), "argument --group: not allowed with --offset"),
        (("--tail", "1", "--offset", "3"), "argument --offset: not allowed with argument --tail"),
        (("--tail", "0"), "argument --tail: got '0', expected a whole number from 1"),
        (("--offset", "last"), "argument --offset: got 'last', expected beginning, end, an off"),
        (("--offset", str(2**63)), "argument --offset: got '9223372036854775808', expected beg"),
        (("--from-time", "yesterday"), "argument --from-time: got 'yesterday', expected an ISO"),
        (("--to-time", "-2x"), "argument --to-time: got '-2x', expected an ISO 8601 time such"),
        (("--format", "jsn"), "argument --format: got 'jsn', expected text, json, raw, or a te"),
        (("--format", "%q"), "argument --format: token: got '%q', expected %%, %s, %k"),
        (("--delimiter", r"\q"), "argument --delimiter: escape sequence: got"),
    ],
)
def test_invalid_options_are_refused_with_the_usage(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["consume", "t", *options])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("usage: kclient consume ")
    assert text in error


def test_missing_partition_is_an_error(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic(partitions=2)
    status, _, error = run("consume", topic, "--partition", "2")
    expected = f"--partition: got 2, expected one of 0 to 1, the partitions of topic {topic!r}\n"
    assert (status, error) == (2, f"kclient consume: {expected}")


# -- formats


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--format", "raw"), b"v\xff\n\n\n"),
        (("--format", "raw", "--delimiter", r"\x00\t"), b"v\xff\0\t\0\t\0\t"),
        (("--format", "raw", "--delimiter", ""), b"v\xff"),
        (("--format", r"%o:%S;\n"), b"0:2;\n1:-1;\n2:0;\n"),
        (("--format", "%o", "--delimiter", ","), b"0,1,2,"),
        (("--show", "key-value", "--delimiter", ";"), b"k\tv\\xff;\\N\t\\N;\\N\t;"),
    ],
)
def test_formats_and_delimiters(
    shared_clients: Clients,
    capfdbinary: pytest.CaptureFixture[bytes],
    options: tuple[str, ...],
    expected: bytes,
) -> None:
    topic = shared_clients.topic()
    producer = shared_clients.producer()
    producer.send(topic, b"v\xff", key=b"k")
    producer.send(topic, None)
    producer.send(topic, b"").result(20)
    given = ("--until-end", "--quiet", "-b", shared_clients.bootstrap)
    assert main(["consume", topic, *options, *given]) == 0
    assert capfdbinary.readouterr() == (expected, b"")


# -- interrupts


@pytest.mark.parametrize("group", [(), ("--group", "readers")])
def test_consume_reports_what_it_printed(
    clients: Clients, tmp_path: Path, group: tuple[str, ...]
) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", *group, "-b", clients.bootstrap)
    with command(tmp_path, "consume", *arguments) as process:
        process.wait_for("2\n")
        assert interrupted(process) == ["3 records", "kclient: interrupted"]
        assert process.stdout == "0\n1\n2\n"
    if group:
        committed = clients.admin().list_consumer_group_offsets("readers")
        assert committed[place("orders")].offset == 3


@pytest.mark.parametrize("options", [("--from-beginning",), ("--tail", "3")])
def test_consume_fails_if_the_disk_is_full(
    clients: Clients, tmp_path: Path, options: tuple[str, ...]
) -> None:
    clients.fill("orders", 3)
    with (tmp_path / "errors").open("wb") as errors, Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "kclient",
                "consume",
                "orders",
                *options,
                "-b",
                clients.bootstrap,
            ],
            check=False,
            stdout=full,
            stderr=errors,
            cwd=ROOT,
            timeout=60,
        )
    expected = "0 records\nkclient consume: [Errno 28] No space left on device\n"
    assert (done.returncode, (tmp_path / "errors").read_text()) == (1, expected)


def test_consume_leaves_its_group_at_sigterm(clients: Clients, tmp_path: Path) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "readers", "-b", clients.bootstrap)
    with command(tmp_path, "consume", *arguments) as process:
        process.wait_for("2\n")
        process.terminate()
        process.finish(TERMINATED)
        assert process.stderr.splitlines() == ["3 records", "kclient: terminated"]
    group = clients.admin().describe_consumer_groups(["readers"])["readers"]
    assert (group.state, group.members) == ("Empty", ())
    assert clients.admin().list_consumer_group_offsets("readers")[place("orders")].offset == 3


def test_consume_ends_at_ctrl_c_after_the_broker_was_killed(
    cluster: EmbeddedCluster, clients: Clients, tmp_path: Path
) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "g", "--timeout", "1")
    with command(tmp_path, "consume", *arguments, "-b", clients.bootstrap) as process:
        process.wait_for("2\n")
        cluster.kill()
        assert interrupted(process) == ["3 records", "kclient: interrupted"]


def test_a_second_interrupt_ends_the_closing(
    cluster: EmbeddedCluster, clients: Clients, tmp_path: Path
) -> None:
    clients.fill("orders", 3)
    arguments = ("orders", "--from-beginning", "--group", "g", "--timeout", "600")
    with command(
        tmp_path, "--log-level", "INFO", "consume", *arguments, "-b", clients.bootstrap
    ) as process:
        process.wait_for("2\n")
        cluster.kill()
        process.interrupt()
        process.wait_for("could not connect")
        process.interrupt()
        process.finish(INTERRUPTED)
        assert "Traceback" not in process.stderr
        assert process.stderr.endswith("3 records\nkclient: interrupted\n")
