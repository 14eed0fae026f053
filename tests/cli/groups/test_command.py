"""``kclient groups``: what each action prints and does."""

import json
from collections.abc import Callable, Iterator

import pytest

from kclient.cli.main import main
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from tests.cli.shown_tables import rows_of
from tests.support.clients.clients import Clients

Captured = pytest.CaptureFixture[str]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def clients(shared_clients: Clients) -> Clients:
    return shared_clients


@pytest.fixture
def member(shared_clients: Clients) -> Iterator[tuple[str, str, Consumer]]:
    """A topic with three records, a group that read one of them, and its member."""
    topic, group = shared_clients.topic(2), shared_clients.group()
    shared_clients.fill(topic, 3)
    consumer = shared_clients.consumer(group, max_poll_records=1)
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    consumer.commit()
    yield topic, group, consumer
    consumer.close()


def test_members_offsets_and_lag(run: Run, member: tuple[str, str, Consumer]) -> None:
    topic, group, _ = member
    status, shown, _ = run("groups", "describe", group)
    head, *lines = shown.splitlines()
    columns, first, second = rows_of("\n".join(lines))
    assert status == 0
    assert head.startswith(f"group {group}  state Stable  assignor range  coordinator ")
    assert columns == [
        "TOPIC", "PARTITION", "OFFSET", "LOG END OFFSET", "LAG", "MEMBER ID", "HOST",
    ]  # fmt: skip
    assert first[:5] == [topic, "0", "1", "3", "2"]
    assert first[6] == "/127.0.0.1"
    assert second[:5] == [topic, "1", "0", "0", "0"]


def test_partition_without_a_committed_offset_has_an_end(run: Run, clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 2)
    consumer = clients.consumer(group)
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    shown = run("groups", "describe", group)[1]
    assert rows_of(shown)[-1][:5] == [topic, "0", "-", "2", "-"]


def test_list_shows_each_group_with_its_state(run: Run, member: tuple[str, str, Consumer]) -> None:
    _, group, consumer = member
    assert [group, "consumer", "Stable", "classic"] in rows_of(run("groups", "list")[1])
    consumer.close()
    assert [group, "consumer", "Empty", "classic"] in rows_of(run("groups", "list")[1])


def test_group_is_deleted_when_it_has_no_members(
    run: Run, member: tuple[str, str, Consumer]
) -> None:
    _, group, consumer = member
    status, shown, error = run("groups", "delete", group)
    assert (status, shown) == (1, "")
    assert error.startswith(f"kclient groups: group {group!r}: ")
    consumer.close()
    assert run("groups", "delete", group) == (0, f"deleted {group}\n", "")


def test_a_group_that_does_not_exist(clients: Clients, capsys: Captured) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 1)
    consumer = clients.consumer(group)
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    consumer.commit()
    assert main(["groups", "describe", "nosuch", group, "-b", clients.bootstrap]) == 1
    shown = capsys.readouterr()
    assert shown.err == "kclient groups: group 'nosuch' does not exist\n"
    assert shown.out.startswith(f"group {group}  state Stable")
    consumer.close()
    assert main(["groups", "describe", group, "-b", clients.bootstrap]) == 0
    assert capsys.readouterr().out.startswith(f"group {group}  state Empty")


def test_json_has_members_and_lag(run: Run, member: tuple[str, str, Consumer]) -> None:
    topic, group, _ = member
    rows = [json.loads(line) for line in run("groups", "list", "--json")[1].splitlines()]
    assert [row["state"] for row in rows if row["group_id"] == group] == ["Stable"]
    (line,) = run("groups", "describe", group, "--json")[1].splitlines()
    found = json.loads(line)
    (owner,) = found["members"]
    assert found["coordinator"]["id"] == 1
    assert owner["assignment"] == [{"topic": topic, "partition": each} for each in (0, 1)]
    assert found["offsets"][0] == {
        "topic": topic,
        "partition": 0,
        "offset": 1,
        "log_end_offset": 3,
        "lag": 2,
        "member_id": owner["member_id"],
        "host": owner["host"],
    }


def test_each_group_is_deleted_or_fails_by_itself(
    run: Run, member: tuple[str, str, Consumer], clients: Clients
) -> None:
    topic, group, _ = member
    free = clients.group()
    clients.admin().alter_consumer_group_offsets(free, {TopicPartition(topic, 0): 1})
    status, shown, error = run("groups", "delete", group, free, "nosuch")
    assert (status, shown) == (1, f"deleted {free}\n")
    first, second = error.splitlines()
    assert first.startswith(f"kclient groups: group {group!r}: NON_EMPTY_GROUP")
    assert second.startswith("kclient groups: group 'nosuch': GROUP_ID_NOT_FOUND")


def test_list_is_filtered(run: Run, member: tuple[str, str, Consumer], clients: Clients) -> None:
    topic, group, _ = member
    free = clients.group()
    clients.admin().alter_consumer_group_offsets(free, {TopicPartition(topic, 0): 1})

    def listed(*options: str) -> set[str]:
        rows = run("groups", "list", "--json", *options)[1].splitlines()
        return {json.loads(row)["group_id"] for row in rows} & {group, free}

    assert listed() == {group, free}
    assert listed("--state", "Empty") == {free}
    assert listed("--state", "Stable", "--type", "classic") == {group}
    assert listed("--protocol-type", "consumer") == {group}


def test_static_members_are_removed(run: Run, clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 1)
    consumer = clients.consumer(group, group_instance_id="one")
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    status, shown, error = run(
        "groups", "remove-members", group, "--instance-id", "nosuch", "--instance-id", "one"
    )
    assert (status, shown) == (1, f"removed one from {group}\n")
    assert "member 'nosuch': UNKNOWN_MEMBER_ID" in error
    assert clients.admin().describe_consumer_groups(group)[group].members == ()
    assert run("groups", "remove-members", group, "--all") == (0, "", "")


def test_committed_offsets_are_deleted(
    run: Run, member: tuple[str, str, Consumer], clients: Clients
) -> None:
    topic, group, _ = member
    free, other = clients.group(), clients.topic()
    offsets = {
        TopicPartition(topic, 0): 1,
        TopicPartition(topic, 1): 0,
        TopicPartition(other, 0): 0,
    }
    clients.admin().alter_consumer_group_offsets(free, offsets).raise_for_errors()
    deleted = run("groups", "delete-offsets", free, "--topic", f"{topic}:1", "--topic", other)
    assert deleted == (
        0,
        f"deleted the offset of {free} in {topic}-1\ndeleted the offset of {free} in {other}-0\n",
        "",
    )
    assert set(clients.admin().list_consumer_group_offsets(free)) == {TopicPartition(topic, 0)}
    status, shown, error = run("groups", "delete-offsets", group, "--topic", topic)
    assert (status, shown, "GROUP_SUBSCRIBED_TO_TOPIC" in error) == (1, "", True)


def test_every_consumer_group_is_shown_without_a_name(
    run: Run, member: tuple[str, str, Consumer]
) -> None:
    topic, group, _ = member
    assert f"group {group}  state Stable" in run("groups", "describe")[1]
    assert [topic, "0", "1"] in [row[1:4] for row in rows_of(run("groups", "lag")[1])]
