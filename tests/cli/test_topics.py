"""``kclient topics``: what each action prints and does."""

import json
import re
from collections.abc import Callable

import pytest

from kclient.admin import NewTopic
from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.cli.shown_tables import rows_of
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients

Run = Callable[..., tuple[int, str, str]]


def test_topic_from_its_creation_to_its_deletion(run: Run, shared_clients: Clients) -> None:
    created = run(
        "topics", "create", "a", "b", "--partitions", "2", "--topic-config", "retention.ms=5"
    )
    assert created == (0, "created a with 2 partitions\ncreated b with 2 partitions\n", "")
    assert run("topics", "alter", "a", "--partitions", "3") == (0, "a has 3 partitions\n", "")
    described = shared_clients.admin().describe_topics(["a"])["a"]
    status, shown, _ = run("topics", "describe", "a")
    head, *partitions = shown.splitlines()
    assert status == 0
    assert head == f"topic a  id {described.topic_id}  partitions 3  configs retention.ms=5"
    assert rows_of("\n".join(partitions)) == [
        ["PARTITION", "LEADER", "REPLICAS", "ISR"],
        *([str(number), "1", "1", "1"] for number in range(3)),
    ]
    assert run("topics", "list") == (0, "a\nb\n", "")
    assert run("topics", "delete", "a", "b") == (0, "deleted a\ndeleted b\n", "")
    assert run("topics", "list") == (0, "", "")


def test_internal_topics_are_listed_on_request(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic(name="visible")
    shared_clients.fill(topic, 1)
    consumer = shared_clients.consumer(shared_clients.group())
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    consumer.commit()
    assert run("topics", "list")[1] == "visible\n"
    assert run("topics", "list", "--internal")[1] == "__consumer_offsets\nvisible\n"


def test_missing_topic_is_an_error(run: Run) -> None:
    status, shown, error = run("topics", "describe", "nosuch")
    assert (status, shown) == (1, "")
    assert error.startswith("kclient topics: topic 'nosuch': ")


def test_json_has_the_fields_of_the_admin_client(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic(2)
    described = shared_clients.admin().describe_topics(topic)[topic]
    rows = [json.loads(line) for line in run("topics", "list", "--json")[1].splitlines()]
    assert {"name": topic, "topic_id": described.topic_id, "is_internal": False} in rows
    (row,) = run("topics", "describe", topic, "--json")[1].splitlines()
    found = json.loads(row)
    assert (found["name"], found["topic_id"], found["configs"]) == (topic, described.topic_id, {})
    assert found["partitions"][1] == {
        "partition": 1,
        "leader": 1,
        "replicas": [1],
        "isr": [1],
        "elr": [],
        "last_known_elr": [],
    }


def test_alter_needs_a_change(run: Run) -> None:
    status, shown, error = run("topics", "alter", "t")
    assert (status, shown) == (2, "")
    assert error.endswith("expected --partitions, --topic-config or --delete-config\n")


@pytest.mark.parametrize("action", ["create", "alter"])
def test_config_of_a_topic_among_client_options_has_a_hint(run: Run, action: str) -> None:
    status, shown, error = run("topics", action, "a", "--config", "retention.ms=5")
    assert (status, shown) == (2, "")
    assert error.startswith("kclient topics: unknown option 'retention.ms' for AdminClient; ")
    assert error.endswith("; --topic-config has configs of topics\n")


def test_number_of_partitions_cannot_decrease(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic(2)
    status, shown, error = run("topics", "alter", topic, "--partitions", "1")
    assert (status, shown, "INVALID_PARTITIONS" in error) == (1, "", True)


def test_description_without_topics_shows_all(run: Run, shared_clients: Clients) -> None:
    topics = {shared_clients.topic(), shared_clients.topic()}
    shown = run("topics", "describe", "--json")[1]
    assert topics <= {json.loads(line)["name"] for line in shown.splitlines()}
    assert run("topics", "describe", "--under-replicated") == (0, "", "")
    assert run("topics", "describe", "--unavailable") == (0, "", "")


def test_partitions_without_leader_or_replicas_are_filtered(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with EmbeddedCluster(3) as cluster, Clients(cluster.bootstrap_servers) as clients:
        admin = clients.admin()
        admin.create_topics([NewTopic("single", 3, 1), NewTopic("orders", 1, 3)]).raise_for_errors()
        described = admin.describe_topics("single")["single"].partitions
        (lost,) = (each.partition for each in described if each.leader == 3)
        cluster.stop(3)

        def filtered(*options: str) -> list[str]:
            servers = ("-b", cluster.bootstrap_servers)
            assert main(["topics", "describe", "single", "orders", *options, *servers]) == 0
            return capfd.readouterr().out.splitlines()

        wait_until(lambda: filtered("--unavailable"), "single lacks a leader")
        assert rows_of(filtered("--unavailable")[-1]) == [[str(lost), "-", "3", "3"]]
        wait_until(lambda: filtered("--under-replicated"), "orders lacks a replica")
        words = [line.split()[:2] for line in filtered("--under-replicated")]
        assert words[0] == ["topic", "orders"]
        assert [first for first, _ in words[1:]] == ["PARTITION", "0"]
        assert len(filtered("--under-replicated", "--unavailable")) == 6


def test_each_topic_succeeds_or_fails_by_itself(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    status, shown, error = run("topics", "create", topic, "fresh", "--partitions", "1")
    assert (status, shown) == (1, "created fresh with 1 partitions\n")
    assert re.fullmatch(rf"kclient topics: topic '{topic}': TOPIC_ALREADY_EXISTS.*\n", error)
    status, shown, error = run("topics", "describe", "nosuch", topic, "--json")
    assert (status, json.loads(shown)["name"]) == (1, topic)
    assert error.startswith("kclient topics: topic 'nosuch': UNKNOWN_TOPIC_OR_PARTITION")
    status, shown, error = run("topics", "delete", "nosuch", "fresh", topic)
    assert (status, shown) == (1, f"deleted fresh\ndeleted {topic}\n")
    assert "topic 'nosuch'" in error


def test_existing_topics_are_created_and_missing_ones_deleted_on_request(
    run: Run, shared_clients: Clients
) -> None:
    topic = shared_clients.topic(2)
    created = run("topics", "create", topic, "fresh", "--partitions", "1", "--if-not-exists")
    assert created == (0, f"{topic} exists\ncreated fresh with 1 partitions\n", "")
    deleted = run("topics", "delete", "nosuch", "fresh", "--if-exists")
    assert deleted == (0, "nosuch does not exist\ndeleted fresh\n", "")
    shown = run("topics", "create", topic, "--if-not-exists", "--json")[1]
    assert json.loads(shown) == {"name": topic, "is_created": False}
    shown = run("topics", "delete", "nosuch", "--if-exists", "--json")[1]
    assert json.loads(shown) == {"name": "nosuch", "is_deleted": False}
    status, shown, error = run("topics", "create", "a", "--replication-factor", "9")
    assert (status, shown) == (1, "")
    assert "INVALID_REPLICATION_FACTOR" in error


def test_replicas_are_placed(
    run: Run, shared_clients: Clients, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ("topics", "create", "placed", "--replica-assignment", "1,1")
    assert run(*given) == (0, "created placed with 2 partitions\n", "")
    described = shared_clients.admin().describe_topics("placed")["placed"]
    assert [each.replicas for each in described.partitions] == [(1,), (1,)]
    status, _, error = run(*given, "--partitions", "2")
    assert status == 2
    assert "--replica-assignment: not allowed with --partitions" in error
    with pytest.raises(SystemExit):
        run("topics", "create", "a", "--replica-assignment", "1:x")
    assert "got '1:x', expected broker ids such as 1:2,2:3" in capfd.readouterr().err


def test_partitions_by_min_isr_and_topics_with_settings_are_filtered(
    run: Run, shared_clients: Clients
) -> None:
    under, at, over = (NewTopic(name, 1, 1) for name in ("under", "at", "over"))
    configured = [
        under._replace(configs={"min.insync.replicas": "2"}),
        at._replace(configs={"retention.ms": "5"}),
        over,
    ]
    shared_clients.admin().create_topics(configured).raise_for_errors()

    def filtered(*options: str) -> list[str]:
        shown = run("topics", "describe", "under", "at", "over", "--json", *options)[1]
        return sorted(json.loads(line)["name"] for line in shown.splitlines())

    assert filtered("--under-min-isr") == ["under"]
    assert filtered("--at-min-isr") == ["at", "over"]
    assert filtered("--with-configs") == ["at", "under"]


@pytest.fixture
def timed(shared_clients: Clients) -> str:
    """A topic with records of the times 1000 to 5000 ms in partition 0, and an empty partition."""
    topic = shared_clients.topic(2)
    producer = shared_clients.producer()
    for time_ms in (1000, 2000, 5000, 3000, 4000):
        producer.send(topic, b"x", partition=0, timestamp_ms=time_ms)
    producer.flush()
    return topic


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("latest", [(5, -1), (0, -1)]),
        ("earliest", [(0, -1), (0, -1)]),
        ("max-timestamp", [(2, 5000), (-1, -1)]),
        ("2500", [(2, 5000), (-1, -1)]),
        ("1970-01-01T00:00:02Z", [(1, 2000), (-1, -1)]),
        ("-2h", [(-1, -1), (-1, -1)]),
    ],
)
def test_offsets_by_position_and_time(
    run: Run, timed: str, time: str, expected: list[tuple[int, int]]
) -> None:
    status, shown, _ = run("topics", "offsets", timed, "--time", time, "--json")
    rows = [json.loads(line) for line in shown.splitlines()]
    assert status == 0
    assert [(row["offset"], row["timestamp"]) for row in rows] == expected
    assert [(row["topic"], row["partition"]) for row in rows] == [(timed, 0), (timed, 1)]


def test_offsets_of_single_partitions_are_a_table(run: Run, timed: str) -> None:
    head, row = run("topics", "offsets", f"{timed}:0")[1].splitlines()
    assert head.split() == ["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"]
    assert row.split() == [timed, "0", "5", "-1"]
    status, shown, error = run("topics", "offsets", f"{timed}:1,7", "--json")
    assert (status, json.loads(shown)["partition"]) == (1, 1)
    assert f"{timed}-7" in error
