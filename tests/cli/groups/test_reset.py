"""``kclient groups reset``: targets, scopes, files, and what it refuses."""

import json
from pathlib import Path

import pytest

from kclient.cli.main import main
from kclient.common.types import TopicPartition
from tests.cli.conftest import Run
from tests.support.clients.clients import Clients

Captured = pytest.CaptureFixture[str]


class Group:
    """A group without members that has read 3 of the offsets 2 to 5 of partition 0.

    The records have the times 1000 to 5000 ms; partition 1 has one record and no committed offset.
    """

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.topic, self.name = clients.topic(2), clients.group()
        producer = clients.producer()
        for time_ms in (1000, 2000, 3000, 4000, 5000):
            producer.send(self.topic, b"x", partition=0, timestamp_ms=time_ms)
        producer.send(self.topic, b"x", partition=1, timestamp_ms=6000)
        producer.flush()
        self.admin = clients.admin()
        self.admin.delete_records({TopicPartition(self.topic, 0): 2}).raise_for_errors()
        self.commit({0: 3})

    def commit(self, offsets: dict[int, int]) -> None:
        given = {TopicPartition(self.topic, each): offset for each, offset in offsets.items()}
        self.admin.alter_consumer_group_offsets(self.name, given).raise_for_errors()

    def committed(self) -> dict[int, int]:
        found = self.admin.list_consumer_group_offsets(self.name).raise_for_errors()
        return {each.partition: offset.offset for each, offset in found.items()}


@pytest.fixture
def group(shared_clients: Clients) -> Group:
    return Group(shared_clients)


@pytest.mark.parametrize(
    ("target", "first", "second"),
    [
        (("--to-earliest",), 2, 0),
        (("--to-latest",), 5, 1),
        (("--to-current",), 3, 1),
        (("--to-offset", "4"), 4, 1),
        (("--to-offset", "1"), 2, 1),
        (("--to-time", "4000"), 3, 0),
        (("--to-time", "1970-01-01T00:00:05.5Z"), 5, 0),
        (("--to-time", "-1h"), 5, 1),
        (("--by-duration", "PT1H"), 5, 1),
        (("--by-duration", "40000d"), 2, 0),
    ],
)
def test_target_of_every_partition_of_a_topic(
    run: Run, group: Group, target: tuple[str, ...], first: int, second: int
) -> None:
    reset = ("groups", "reset", group.name, "--topic", group.topic, *target)
    status, shown, error = run(*reset, "--json")
    assert (status, "nothing was changed" in error) == (0, True)
    assert [json.loads(line) for line in shown.splitlines()] == [
        {"group_id": group.name, "topic": group.topic, "partition": 0, "previous_offset": 3,
         "offset": first},
        {"group_id": group.name, "topic": group.topic, "partition": 1, "previous_offset": None,
         "offset": second},
    ]  # fmt: skip
    assert group.committed() == {0: 3}
    assert run(*reset, "--execute")[0] == 0
    assert group.committed() == {0: first, 1: second}


@pytest.mark.parametrize(("shift", "offset"), [("1", 4), ("-1", 2), ("-2", 2), ("9", 5)])
def test_shift_stays_within_the_log(run: Run, group: Group, shift: str, offset: int) -> None:
    reset = ("groups", "reset", group.name, "--all-topics", "--shift-by", shift, "--execute")
    status, shown, error = run(*reset)
    head, row = shown.splitlines()
    assert head.split() == ["GROUP", "ID", "TOPIC", "PARTITION", "PREVIOUS", "OFFSET", "OFFSET"]
    assert row.split() == [group.name, group.topic, "0", "3", str(offset)]
    is_clamped = offset != 3 + int(shift)
    wanted = f"offset {3 + int(shift)} is outside of the log, 2 to 5; {offset} is used"
    assert (status, wanted in error) == (0, is_clamped)
    assert group.committed() == {0: offset}


def test_shift_needs_a_committed_offset(run: Run, group: Group) -> None:
    reset = ("groups", "reset", group.name, "--topic", group.topic, "--shift-by", "1", "--execute")
    status, _, error = run(*reset)
    assert status == 1
    assert error == (f"kclient groups: {group.topic}-1: there is no committed offset to shift\n")
    assert group.committed() == {0: 4}


def test_export_is_read_again(run: Run, group: Group, tmp_path: Path) -> None:
    for form in (("--export",), ("--json",)):
        group.commit({0: 3, 1: 1})
        reset = ("groups", "reset", group.name)
        shown = run(*reset, "--all-topics", "--to-current", *form)[1]
        if form == ("--export",):
            assert shown == f"{group.topic},0,3\n{group.topic},1,1\n"
        file = tmp_path / "offsets"
        file.write_text(shown)
        group.commit({0: 5, 1: 0})
        assert (
            run(*reset, "--from-file", str(file), "--topic", f"{group.topic}:0", "--execute")[0]
            == 0
        )
        assert group.committed() == {0: 3, 1: 0}
        assert run(*reset, "--from-file", str(file), "--execute")[0] == 0
        assert group.committed() == {0: 3, 1: 1}


def test_group_that_does_not_exist_is_created(run: Run, group: Group) -> None:
    reset = ("groups", "reset", "fresh", "--topic", f"{group.topic}:1", "--to-latest", "--execute")
    assert run(*reset)[0] == 0
    place = TopicPartition(group.topic, 1)
    assert group.admin.list_consumer_group_offsets("fresh")[place].offset == 1
    status, _, error = run("groups", "reset", "nosuch", "--all-topics", "--to-latest")
    assert (status, error) == (
        1,
        "kclient groups: group 'nosuch': it has no committed offsets to reset\n",
    )


def test_partition_that_does_not_exist_is_an_error(run: Run, group: Group) -> None:
    wanted = f"{group.topic}:0,7"
    reset = ("groups", "reset", group.name, "--topic", wanted, "--to-earliest", "--execute")
    status, _, error = run(*reset)
    assert (status, f"{group.topic}-7" in error) == (1, True)
    assert group.committed() == {0: 2}


def test_group_with_members_is_refused(run: Run, group: Group) -> None:
    consumer = group.clients.consumer(group.name)
    consumer.subscribe(group.topic)
    while not consumer.poll():
        pass
    reset = ("groups", "reset", group.name, "--topic", group.topic, "--to-earliest")
    for options in ((), ("--execute",)):
        status, shown, error = run(*reset, *options)
        assert (status, shown) == (1, "")
        expected = f"group '{group.name}': its state is Stable, expected Empty; stop its members"
        assert error.startswith(f"kclient groups: {expected}")
    consumer.close()
    assert run(*reset, "--execute")[0] == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--to-earliest",), "reset: expected --topic, --all-topics or --from-file"),
        (("--to-earliest", "--topic", "t", "--all-topics"), "got --topic and --all-topics"),
        (("--all-topics",), "one of the arguments --to-earliest"),
        (("--all-topics", "--to-earliest", "--to-latest"), "not allowed with argument"),
        (("--all-topics", "--by-duration", "soon"), "expected a duration such as 2h"),
        (("--all-topics", "--to-time", "soon"), "expected an ISO 8601 time"),
        (("--to-earliest", "--topic", "a:b"), "got 'a:b', expected TOPIC or TOPIC:P,P"),
    ],
)
def test_wrong_options_are_usage_errors(
    options: tuple[str, ...], text: str, capsys: Captured
) -> None:
    try:
        status: object = main(["groups", "reset", "g", *options])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert text in capsys.readouterr().err
