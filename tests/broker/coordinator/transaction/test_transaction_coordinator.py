"""Transaction coordinator: log first, then the state, the markers and the completion."""

import pytest

from kclient.common.broker_errors import (
    ConcurrentTransactionsError,
    CoordinatorNotAvailableError,
    InvalidPidMappingError,
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    NotCoordinatorError,
    PolicyViolationError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionalIdNotFoundError,
    UnknownServerError,
)
from kclient.record import ProducerIdAndEpoch
from tests.support.virtual.transaction_coordinator_world import (
    A0,
    A1,
    B0,
    LEADERS,
    Result,
    TransactionWorld,
    image,
    partitions_of,
)

CONCURRENT = ConcurrentTransactionsError


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


def error_of(results: list[Result]) -> type[Result]:
    (result,) = results
    return type(result)


def test_transaction_is_committed_by_a_marker_for_each_partition(world: TransactionWorld) -> None:
    assert world.init() == [(100, 0)]
    assert world.add((100, 0), A0, A1) == [(100, 0)]
    assert world.add((100, 0), B0) == [(100, 0)]
    assert world.state() == "Ongoing"
    assert world.end((100, 0)) == [(100, 1)]
    assert world.state() == "CompleteCommit"
    found = {
        (leader, partition): (marker.producer_id, marker.producer_epoch, marker.transaction_result)
        for leader, marker in world.leaders.markers()
        for partition in partitions_of(marker)
    }
    marker = (100, 1, True)
    assert found == {(1, A0): marker, (2, A1): marker, (1, B0): marker}


def test_marker_of_the_first_versions_has_the_epoch_of_the_producer(
    world: TransactionWorld,
) -> None:
    world.init()
    world.add((100, 0), A0, client_version=0)
    assert world.end((100, 0), commits=False, client_version=0) == [(100, 0)]
    ((_leader, marker),) = world.leaders.markers()
    assert (marker.producer_epoch, marker.transaction_version) == (0, 0)
    assert not marker.transaction_result
    assert world.state() == "CompleteAbort"


def test_response_waits_for_the_log(world: TransactionWorld) -> None:
    world.init()
    world.log.withheld = []
    adding = world.add((100, 0), A0)
    assert adding == []
    assert world.state() == "Empty"
    for results in (world.add((100, 0), A0), world.init(), world.end((100, 0))):
        assert error_of(results) is CONCURRENT
    world.log.commit()
    assert adding == [(100, 0)]
    assert world.state() == "Ongoing"

    ending = world.end((100, 0))
    assert (ending, world.leaders.sent) == ([], [])
    world.log.commit()
    assert ending == [(100, 1)]
    assert len(world.leaders.sent) == 1
    assert world.state() == "PrepareCommit"
    world.log.commit()
    assert world.state() == "CompleteCommit"


def test_failed_write_changes_nothing(world: TransactionWorld) -> None:
    world.init()
    world.log.failure = CoordinatorNotAvailableError("no replicas")
    assert error_of(world.add((100, 0), A0)) is CoordinatorNotAvailableError
    world.log.failure = None
    assert world.state() == "Empty"
    assert world.add((100, 0), A0) == [(100, 0)]


def test_late_write_leaves_the_id_pending_until_its_outcome(world: TransactionWorld) -> None:
    world.init()
    world.log.withheld = []
    adding = world.add((100, 0), A0)
    world.pass_time(30_100)
    assert error_of(adding) is CoordinatorNotAvailableError
    assert error_of(world.add((100, 0), A0)) is CONCURRENT
    world.log.commit()
    assert world.state() == "Ongoing"


def test_completion_is_logged_again_after_a_failure(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0)
    world.leaders.held = []
    world.end((100, 0))
    world.log.failure = CoordinatorNotAvailableError("no replicas")
    world.leaders.respond()
    assert world.state() == "PrepareCommit"
    world.log.failure = None
    world.pass_time(200)
    assert world.state() == "CompleteCommit"
    assert len(world.leaders.sent) == 1


def test_next_transaction_waits_for_the_markers(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0)
    world.leaders.held = []
    world.end((100, 0))
    assert error_of(world.add((100, 1), A0)) is CONCURRENT
    assert error_of(world.init()) is CONCURRENT
    assert error_of(world.end((100, 0))) is CONCURRENT
    world.leaders.respond()
    assert world.end((100, 0)) == [(100, 1)]
    assert world.add((100, 1), A0) == [(100, 1)]


def test_another_producer_of_the_id_fences_the_first(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0)
    assert error_of(world.init()) is CONCURRENT
    ((_leader, marker),) = world.leaders.markers()
    assert (marker.producer_epoch, marker.transaction_result) == (1, False)
    assert world.init() == [(100, 2)]
    assert error_of(world.add((100, 0), A0)) is ProducerFencedError
    assert error_of(world.end((100, 0), commits=False)) is ProducerFencedError
    assert error_of(world.end((100, 0), client_version=0)) is ProducerFencedError


def test_fence_that_cannot_be_logged_raises_the_epoch_once(world: TransactionWorld) -> None:
    world.version = 1
    world.init()
    world.add((100, 0), A0, client_version=0)
    world.log.failure = CoordinatorNotAvailableError("no replicas")
    for _attempt in range(3):
        assert error_of(world.init()) is CoordinatorNotAvailableError
    world.log.failure = None
    assert error_of(world.init()) is CONCURRENT
    assert world.described().producer == (100, 1)


def test_abort_without_transaction_has_no_marker(world: TransactionWorld) -> None:
    world.init()
    assert world.end((100, 0), commits=False) == [(100, 1)]
    assert world.state() == "CompleteAbort"
    assert world.leaders.sent == []
    assert error_of(world.end((100, 1))) is InvalidTxnStateError


def test_exhausted_epochs_get_another_producer_id(world: TransactionWorld) -> None:
    world.init()
    for epoch in range(32766):
        world.end((100, epoch), commits=False)
    assert world.end((100, 32766), commits=False) == [(101, 0)]
    assert world.end((100, 32766), commits=False) == [(101, 0)]
    assert world.add((101, 0), A0) == [(101, 0)]
    assert error_of(world.add((100, 32766), A0)) is InvalidPidMappingError


def test_error_of_the_allocation_of_ids_is_the_response(world: TransactionWorld) -> None:
    world.no_ids = RequestTimedOutError("no controller")
    assert error_of(world.init()) is RequestTimedOutError
    with pytest.raises(TransactionalIdNotFoundError):
        world.described()


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_are_limited(world: TransactionWorld, timeout_ms: int) -> None:
    assert error_of(world.init(timeout_ms=timeout_ms)) is InvalidTxnTimeoutError


def test_unknown_ids_have_no_transaction(world: TransactionWorld) -> None:
    assert error_of(world.add((1, 0), A0)) is InvalidPidMappingError
    assert error_of(world.end((1, 0))) is InvalidPidMappingError
    with pytest.raises(InvalidPidMappingError):
        world.coordinator.partitions_of("x", ProducerIdAndEpoch(1, 0))


def test_partitions_of_an_open_transaction_are_verified(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0)
    assert world.coordinator.partitions_of("x", ProducerIdAndEpoch(100, 0)) == {A0}
    for producer, error in (((100, 1), ProducerFencedError), ((7, 0), InvalidPidMappingError)):
        with pytest.raises(error):
            world.coordinator.partitions_of("x", ProducerIdAndEpoch(*producer))
    world.end((100, 0))
    assert world.coordinator.partitions_of("x", ProducerIdAndEpoch(100, 1)) == frozenset()


# -- time ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2])
def test_transaction_that_lasts_too_long_is_aborted(version: int) -> None:
    world = TransactionWorld(abort_interval_ms=1_000)
    world.version = version
    world.init(timeout_ms=5_000)
    world.add((100, 0), A0, client_version=version)
    world.pass_time(4_900)
    assert world.state() == "Ongoing"
    world.pass_time(1_200)
    assert world.state() == "CompleteAbort"
    assert world.described().producer == (100, 1)
    if version:
        assert world.end((100, 0), commits=False) == [(100, 1)]
    else:
        failed = world.end((100, 0), commits=False, client_version=0)
        assert error_of(failed) is ProducerFencedError


def test_abort_of_the_last_epoch_gets_another_producer_id() -> None:
    world = TransactionWorld(abort_interval_ms=1_000)
    world.init(timeout_ms=5_000)
    for epoch in range(32766):
        world.end((100, epoch), commits=False)
    world.add((100, 32766), A0)
    world.pass_time(6_200)
    assert world.described().producer == (101, 0)
    assert world.end((100, 32766), commits=False) == [(101, 0)]


def test_unused_ids_expire() -> None:
    world = TransactionWorld(expiration_ms=10_000, expiration_interval_ms=1_000)
    world.init(timeout_ms=60_000)
    world.init(name="open", timeout_ms=60_000)
    world.add((101, 0), A0, name="open")
    world.pass_time(9_000)
    assert world.state() == "Empty"
    world.pass_time(2_100)
    with pytest.raises(TransactionalIdNotFoundError):
        world.described()
    assert world.state("open") == "Ongoing"
    assert error_of(world.add((100, 0), A0)) is InvalidPidMappingError

    again = TransactionWorld(world.log)
    with pytest.raises(TransactionalIdNotFoundError):
        again.described()
    assert again.state("open") == "Ongoing"


def test_number_of_ids_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    world = TransactionWorld(max_ids=2, expiration_ms=10_000, expiration_interval_ms=1_000)
    world.init(name="a")
    world.init(name="b")
    for _attempt in range(2):
        assert error_of(world.init(name="c")) is PolicyViolationError
    assert world.init(name="a") == [(100, 1)]
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    world.pass_time(12_000)
    assert world.init(name="c") == [(102, 0)]


# -- change of the coordinator -----------------------------------------------------------------


@pytest.mark.fault("B21")
def test_next_coordinator_has_the_open_transaction(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0, A1)
    world.resign(1)
    assert error_of(world.end((100, 0))) is NotCoordinatorError

    world.log.leader_epoch = 1
    second = TransactionWorld(world.log)
    assert second.described().partitions == {A0, A1}
    assert second.end((100, 0)) == [(100, 1)]
    assert second.state() == "CompleteCommit"


def test_next_coordinator_writes_the_markers_of_a_decided_transaction(
    world: TransactionWorld,
) -> None:
    world.init()
    world.add((100, 0), A0, A1)
    world.leaders.held = []
    assert world.end((100, 0)) == [(100, 1)]
    world.leaders.respond()
    world.resign(1)
    world.leaders.respond()  # the last marker, which the former coordinator does not take up
    assert sum(map(len, world.log.records.values())) == 3

    world.log.leader_epoch = 1
    second = TransactionWorld(world.log)
    markers = second.leaders.markers()
    assert {each for _, marker in markers for each in partitions_of(marker)} == {A0, A1}
    assert {marker.coordinator_epoch for _, marker in markers} == {1}
    assert second.state() == "CompleteCommit"
    assert second.end((100, 0)) == [(100, 1)]  # the response was lost


def test_coordinator_that_returns_completes_by_its_new_markers(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0)
    world.leaders.held = []
    world.end((100, 0))
    world.resign(1)
    world.lead(2)
    # One request per leader is in flight: the next has the markers of the new epoch.
    world.leaders.respond()
    assert world.state() == "PrepareCommit"
    world.leaders.respond()
    assert world.state() == "CompleteCommit"
    assert [marker.coordinator_epoch for _, marker in world.leaders.markers()] == [0, 2]


# -- leaders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-1, 3, 6, 7, 19, 20, 56])
def test_marker_that_fails_is_sent_again_to_the_leader_of_that_time(
    world: TransactionWorld, code: int
) -> None:
    world.init()
    world.add((100, 0), A0)
    world.leaders.code = code
    world.end((100, 0))
    assert world.state() == "PrepareCommit"
    world.image = image(LEADERS | {A0: 2})
    world.leaders.code = 0
    world.pass_time(200)
    assert [leader for leader, _ in world.leaders.markers()] == [1, 2]
    assert world.state() == "CompleteCommit"


@pytest.mark.parametrize("code", [47, 52])
def test_marker_of_a_fenced_coordinator_is_given_up(world: TransactionWorld, code: int) -> None:
    world.init()
    world.add((100, 0), A0, A1)
    world.leaders.code = code
    world.end((100, 0))
    world.leaders.code = 0
    world.pass_time(1_000)
    assert world.state() == "PrepareCommit"
    assert len(world.leaders.sent) <= 2


def test_marker_waits_for_a_leader(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0, B0)
    world.image = image(LEADERS | {A0: -1}, fenced=[1])
    world.end((100, 0))
    world.pass_time(500)
    assert world.leaders.sent == []
    world.image = image(LEADERS)
    world.pass_time(200)
    assert world.state() == "CompleteCommit"


def test_deleted_topic_needs_no_marker(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0, B0)
    world.image = image({A0: 1, A1: 2})
    world.end((100, 0))
    (_, marker), *others = world.leaders.markers()
    assert (partitions_of(marker), others) == ([A0], [])
    assert world.state() == "CompleteCommit"


def test_markers_for_one_leader_are_sent_together(world: TransactionWorld) -> None:
    world.leaders.held = []
    for number in range(4):
        name = f"id-{number}"
        world.init(name=name)
        world.add((100 + number, 0), A0, name=name)
        world.end((100 + number, 0), name=name)
    assert [len(request.markers) for _, request in world.leaders.sent] == [1]
    world.leaders.respond()
    assert [len(request.markers) for _, request in world.leaders.sent] == [1, 3]
    world.leaders.respond()
    assert {world.state(f"id-{number}") for number in range(4)} == {"CompleteCommit"}


def test_lost_response_of_a_leader_repeats_the_markers(world: TransactionWorld) -> None:
    world.init()
    world.add((100, 0), A0)
    world.leaders.held = []
    world.end((100, 0))
    _request, on_response = world.leaders.held.pop()
    on_response(UnknownServerError("disconnected"))
    world.leaders.held = None
    world.pass_time(200)
    assert world.state() == "CompleteCommit"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_have_the_version_of_the_cluster(version: int) -> None:
    world = TransactionWorld()
    world.version = version
    world.init()
    (records,) = world.log.records.values()
    value = records[0][1]
    assert value is not None
    assert value[:2] == bytes([0, min(version, 1)])
