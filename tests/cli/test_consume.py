"""``kclient consume``: what it prints, when it ends, and what it commits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kclient.testing import EmbeddedCluster
from tests.cli.interruption import INTERRUPTED, TERMINATED, interrupted
from tests.support.clients.clients import Clients, place
from tests.support.processes.child_process import command

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
