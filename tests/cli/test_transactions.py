"""``kclient transactions``: what each action prints and does."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from kclient.admin.admin_client import AdminClient
from kclient.cli import transactions
from kclient.cli.main import main
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.transaction_descriptions import ListTransactionsRequest
from kclient.protocol.messages.transactions import WriteTxnMarkersRequest
from tests.support.virtual.transactions_world import FIRST, SECOND, START_MS, TransactionsWorld

Run = Callable[..., tuple[int, str, str]]
PARTITION = ("--topic", "t", "--partition", "1")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> TransactionsWorld:
    made = TransactionsWorld(2)
    monkeypatch.setattr(transactions, "AdminClient", partial(AdminClient, runtime=made.runtime))
    return made


@pytest.fixture
def run(world: TransactionsWorld, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an action against the scripted brokers; return status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["transactions", *arguments, "-b", "10.0.0.1:9092"])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return call


def test_list_shows_states(run: Run, world: TransactionsWorld) -> None:
    world.known(7, "orders", FIRST)
    world.known(8, "bills")
    given = ("--producer-id", "7", "--producer-id", "8")
    assert run("list", *given) == (
        0,
        "bills  state Ongoing  producer 8\norders  state Ongoing  producer 7\n",
        "",
    )
    rows = [json.loads(line) for line in run("list", *given, "--json")[1].splitlines()]
    assert rows[1] == {"transactional_id": "orders", "producer_id": 7, "state": "Ongoing"}


def test_filters_of_the_list_are_those_of_the_request(run: Run, world: TransactionsWorld) -> None:
    status, *_ = run(
        "list",
        *("--state", "Ongoing", "--state", "PrepareAbort", "--producer-id", "7"),
        *("--duration-filter", "60000", "--transactional-id-pattern", "orders.*"),
    )
    assert status == 0
    assert world.requests(ListTransactionsRequest) == [
        ListTransactionsRequest(
            state_filters=["Ongoing", "PrepareAbort"],
            producer_id_filters=[7],
            duration_filter=60_000,
            transactional_id_pattern="orders.*",
        )
    ]


def test_describe_shows_partitions_and_start(run: Run, world: TransactionsWorld) -> None:
    world.known(7, "orders", FIRST, SECOND)
    assert run("describe", "orders")[1] == (
        "transactional id orders  state Ongoing  producer 7  epoch 3  timeout 60000 ms"
        f"  started 2023-11-14T22:13:20.123Z  coordinator {world.brokers[1].node}\n  t-0\n  t-1\n"
    )
    (line,) = run("describe", "orders", "--json")[1].splitlines()
    assert json.loads(line) == {
        "transactional_id": "orders",
        "coordinator": world.brokers[1].node._asdict(),
        "state": "Ongoing",
        "producer_id": 7,
        "producer_epoch": 3,
        "transaction_timeout_ms": 60_000,
        "transaction_start_time_ms": START_MS,
        "topic_partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}],
    }


def test_transactional_id_that_does_not_exist(run: Run, world: TransactionsWorld) -> None:
    world.known(7, "orders", FIRST)
    world.coordinate("missing", 1)
    status, shown, error = run("describe", "missing", "orders")
    assert status == 1
    assert error.startswith("kclient transactions: transactional id 'missing': ")
    assert shown.startswith("transactional id orders  state Ongoing")


def test_describe_producers_shows_open_transactions(run: Run, world: TransactionsWorld) -> None:
    world.open(SECOND, 7)
    world.producers[SECOND][0].last_timestamp = START_MS
    assert run("describe-producers", *PARTITION)[1] == (
        "t-1  producer 7  epoch 3  coordinator epoch 2  start offset 40  last sequence 8"
        "  last batch 2023-11-14T22:13:20.123Z\n"
    )
    (line,) = run("describe-producers", *PARTITION, "--broker-id", "2", "--json")[1].splitlines()
    assert json.loads(line) == {
        "topic": "t",
        "partition": 1,
        "producer_id": 7,
        "producer_epoch": 3,
        "last_sequence": 8,
        "last_timestamp": START_MS,
        "coordinator_epoch": 2,
        "current_transaction_start_offset": 40,
    }


def test_producer_without_a_transaction_has_dashes(run: Run, world: TransactionsWorld) -> None:
    world.open(SECOND, 7)
    (state,) = world.producers[SECOND]
    state.coordinator_epoch = state.current_txn_start_offset = state.last_timestamp = -1
    shown = run("describe-producers", *PARTITION)[1]
    assert shown == (
        "t-1  producer 7  epoch 3  coordinator epoch -  start offset -  last sequence 8"
        "  last batch -\n"
    )


def test_time_that_no_calendar_has_is_a_number(run: Run, world: TransactionsWorld) -> None:
    world.open(SECOND, 7)
    world.producers[SECOND][0].last_timestamp = 2**62
    assert run("describe-producers", *PARTITION)[1].endswith(f"  last batch {2**62}\n")


def test_hanging_transactions_are_found(run: Run, world: TransactionsWorld) -> None:
    world.open(FIRST, 7)
    world.known(7, "orders", FIRST)
    world.open(SECOND, 8)
    assert run("find-hanging")[1].startswith("t-1  producer 8  epoch 3  ")
    assert run("find-hanging", "--max-transaction-timeout", "60") == (0, "", "")
    (line,) = run("find-hanging", "--topic", "t", "--broker-id", "1", "--json")[1].splitlines()
    assert json.loads(line)["producer_id"] == 8


@pytest.mark.parametrize(
    ("which", "coordinator_epoch"),
    [
        (("--start-offset", "40"), 2),
        (("--producer-id", "8", "--producer-epoch", "3", "--coordinator-epoch", "5"), 5),
        (("--producer-id", "8", "--producer-epoch", "3"), 0),
    ],
)
def test_abort_writes_one_marker(
    run: Run, world: TransactionsWorld, which: tuple[str, ...], coordinator_epoch: int
) -> None:
    world.open(SECOND, 8)
    shown = "aborted the transaction of producer 8 in t-1\n"
    assert run("abort", *PARTITION, *which) == (0, shown, "")
    (request,) = world.requests(WriteTxnMarkersRequest)
    assert isinstance(request, WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (
        8,
        3,
        coordinator_epoch,
    )
    (line,) = run("abort", *PARTITION, *which, "--json")[1].splitlines()
    assert json.loads(line)["producer_id"] == 8


def test_abort_needs_a_transaction_that_starts_there(run: Run, world: TransactionsWorld) -> None:
    world.open(SECOND, 8)
    assert run("abort", *PARTITION, "--start-offset", "41") == (
        1,
        "",
        "kclient transactions: t-1: no open transaction starts at offset 41\n",
    )
    assert world.requests(WriteTxnMarkersRequest) == []


@pytest.mark.parametrize(
    "which", [(), ("--producer-id", "8"), ("--start-offset", "40", "--producer-id", "8")]
)
def test_abort_needs_one_way_to_name_a_transaction(run: Run, which: tuple[str, ...]) -> None:
    status, _, error = run("abort", *PARTITION, *which)
    assert status == 2
    assert "--start-offset, or --producer-id with --producer-epoch" in error


def test_termination_fences_the_transactional_id(run: Run, world: TransactionsWorld) -> None:
    world.known(7, "orders", FIRST)
    assert run("force-terminate", "orders") == (0, "terminated the transaction of orders\n", "")
    assert len(world.requests(InitProducerIdRequest, 2)) == 1
    (line,) = run("force-terminate", "orders", "--json")[1].splitlines()
    assert json.loads(line) == {"transactional_id": "orders"}
