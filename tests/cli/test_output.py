"""Output of the client commands: JSON of results, and tables."""

import json
from argparse import Namespace

import pytest

from kclient.admin.admin_types import ClusterDescription, GroupListing
from kclient.admin.results import Results
from kclient.admin.transaction_types import TransactionState
from kclient.cli.output import as_json, show, show_errors, show_rows, succeeded, table
from kclient.common.acls import AclOperation
from kclient.common.errors import KafkaTimeoutError
from kclient.common.types import Node, TopicPartition


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (GroupListing("g", "", None, "classic"),
         {"group_id": "g", "protocol_type": "", "state": None, "group_type": "classic"}),
        (ClusterDescription("id", None, (Node(1, "h", 9, "a"),), frozenset({2, 1})),
         {"cluster_id": "id", "controller": None, "fenced_ids": [1, 2],
          "nodes": [{"id": 1, "host": "h", "port": 9, "rack": "a"}]}),
        ({TopicPartition("t", 1): 5, 7: None}, {"t-1": 5, "7": None}),
        (frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}),
         [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}]),
        ((AclOperation.READ, TransactionState.ONGOING), ["READ", "Ongoing"]),
        (KafkaTimeoutError("too late"), "too late"),
    ],
)  # fmt: skip
def test_results_become_json(result: object, expected: object) -> None:
    assert as_json(result) == expected


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(Namespace(json=True), "text", {"name": "ä\nb"})
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert json.loads(shown) == {"name": "ä\nb"}
    assert "ä" in shown
    show(Namespace(json=False), "text", {"name": "a"})
    assert capsys.readouterr().out == "text\n"


def test_table_has_columns_of_equal_width() -> None:
    assert table(("name", "lag"), [("orders", 7), ("t", None)]) == (
        "NAME    LAG\norders  7\nt       -"
    )
    assert table(("name",), []) == "NAME"


def test_rows_are_a_table_or_objects(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": "t", "log_end_offset": 5, "hidden": 1}]
    show_rows(Namespace(json=False), ("name", "log_end_offset"), rows)
    show_rows(Namespace(json=True), ("name", "log_end_offset"), rows)
    show_rows(Namespace(json=False), ("name",), [])
    assert capsys.readouterr().out == (
        'NAME  LOG END OFFSET\nt     5\n{"name": "t", "log_end_offset": 5, "hidden": 1}\n'
    )


def test_items_that_failed_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    results: Results[str, int] = Results("call", {"a": KafkaTimeoutError("too late"), "b": 7})
    assert succeeded(results) == [("b", 7)]
    assert show_errors("topics", results) == 1
    assert capsys.readouterr().err == "kclient topics: too late\n"
    assert show_errors("topics", Results("call", {"b": 7})) == 0
