"""``kclient groups``: what each action prints and does."""

import json
from collections.abc import Callable, Iterator

import pytest

from kclient.cli.main import main
from kclient.consumer.consumer import Consumer
from tests.support.clients.clients import Clients, place

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
    head, first, second = shown.splitlines()
    assert status == 0
    assert head.startswith(f"group {group}  state Stable  assignor range  coordinator ")
    assert first.startswith(f"  {place(topic)}  committed 1  end 3  lag 2  member ")
    assert " at " in first
    assert second.startswith(f"  {place(topic, 1)}  committed 0  end 0  lag 0  member ")


def test_partition_without_a_committed_offset_has_an_end(run: Run, clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 2)
    consumer = clients.consumer(group)
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    shown = run("groups", "describe", group)[1]
    assert f"  {place(topic)}  committed -  end 2  lag -  member " in shown


def test_list_shows_each_group_with_its_state(run: Run, member: tuple[str, str, Consumer]) -> None:
    _, group, consumer = member
    assert f"{group}  Stable  consumer\n" in run("groups", "list")[1]
    consumer.close()
    assert f"{group}  Empty  consumer\n" in run("groups", "list")[1]


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
