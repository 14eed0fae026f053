"""Transactions of a producer: states, requests in both versions of the protocol, and errors."""

import pytest

from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    OperationNotAttemptedError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestTimedOutError,
    StaleMemberEpochError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownMemberIdError,
    UnknownProducerIdError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import (
    CommitFailedError,
    FatalError,
    IllegalStateError,
    InvalidTypeError,
    KafkaError,
)
from kclient.common.types import OffsetAndMetadata
from kclient.producer.errors import ProducerFatalError, TransactionAbortedError
from kclient.producer.producer import Producer
from kclient.producer.transaction_manager import TransactionalCall
from kclient.producer.transaction_state import CALLS, State
from kclient.producer.txn_reactions import Reaction, reaction_to
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request
from kclient.protocol.messages.committed_offsets import TxnOffsetCommitRequest
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
)
from kclient.record import ProducerIdAndEpoch, RecordBatch
from tests.support.virtual.producer_world import builder_of, sent_sequences, tp
from tests.support.virtual.transaction_world import (
    GROUP,
    TRANSACTIONAL_ID,
    TransactionWorld,
    in_transaction,
    ready,
)

BOTH_VERSIONS = pytest.mark.parametrize("version", [0, 2])


def in_state(state: State) -> TransactionWorld:
    """Returns a producer that has come to a state."""
    if state in {State.UNINITIALIZED, State.INITIALIZING}:
        world = TransactionWorld(2)
    elif state is State.READY:
        world = ready(2)
    else:
        world = in_transaction(2)
    match state:
        case State.INITIALIZING:
            world.start("init_transactions")
        case State.COMMITTING:
            world.start("commit_transaction")
        case State.ABORTING:
            world.start("abort_transaction")
        case State.ABORTABLE_ERROR:
            world.manager.fail_transaction(UnknownServerError("the disk is full"))
        case State.FATAL_ERROR:
            world.manager.fail(ProducerFencedError("a later producer"))
    assert state_of(world) is state
    return world


def state_of(world: TransactionWorld) -> State:
    return world.manager.state


def has_ended(pending: TransactionalCall) -> bool:
    return pending.is_done


def call(world: TransactionWorld, name: str) -> None:
    """Makes a call whose state nothing but the table decides."""
    world.manager._call = None
    match name:
        case "begin_transaction":
            world.begin()
        case "send":
            world.manager.check_sending("send")
        case "send_offsets_to_transaction":
            world.send_offsets()
        case _:
            world.start(name)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", State)
def test_calls_are_allowed_in_the_states_of_the_table_alone(state: State, name: str) -> None:
    world = in_state(state)
    following = CALLS[name].get(state)
    if following is not None:
        call(world, name)
        assert state_of(world) is following
        return
    expected: type[KafkaError] = IllegalStateError
    if state is State.ABORTABLE_ERROR:
        expected = TransactionAbortableError
    if state is State.FATAL_ERROR:
        expected = ProducerFencedError
    with pytest.raises(expected) as caught:
        call(world, name)
    assert state_of(world) is state
    if expected is IllegalStateError:
        assert f"{name}: got called in state {state.name}" in str(caught.value)
    else:
        assert caught.value.__cause__ is not None


def test_initialization_finds_the_coordinator_first() -> None:
    world = TransactionWorld(2)
    world.step()
    assert world.client.in_flight_request_count() == 0
    pending = world.start("init_transactions")
    find = world.pending(FindCoordinatorRequest)
    assert (find.key_type, find.coordinator_keys) == (1, [TRANSACTIONAL_ID])
    world.respond(FindCoordinatorRequest)
    init = world.pending(InitProducerIdRequest)
    assert init.transactional_id == TRANSACTIONAL_ID
    assert init.transaction_timeout_ms == 60_000
    assert (init.producer_id, init.producer_epoch) == (-1, -1)
    assert not has_ended(pending)
    world.respond(InitProducerIdRequest, code=ConcurrentTransactionsError.code or 0)
    world.step(200)
    world.respond(InitProducerIdRequest)
    assert has_ended(pending)
    assert pending.error is None
    assert world.manager.producer == (7, 0)


def test_version_1_adds_all_new_partitions_with_one_request_before_it_sends() -> None:
    world = in_transaction(0, partitions=3)
    futures = [world.send(b"x", partition) for partition in range(3)]
    world.step()
    assert not world.client.requests(ProduceRequest)
    (topic,) = world.pending(AddPartitionsToTxnRequest).v3_and_below_topics
    assert topic.partitions == [0, 1, 2]
    world.respond(AddPartitionsToTxnRequest)
    (sent,) = world.client.requests(ProduceRequest)
    assert builder_of(sent).latest_allowed_version == 11
    assert isinstance(sent.body, ProduceRequest)
    assert sent.body.transactional_id == TRANSACTIONAL_ID
    pending = world.start("commit_transaction")
    world.step()
    assert not world.client.requests(EndTxnRequest)
    world.respond_to_all()
    assert world.pending(EndTxnRequest).committed
    world.respond(EndTxnRequest)
    assert has_ended(pending)
    assert [future.result(0).offset for future in futures] == [0, 0, 0]
    assert world.manager.producer == (7, 0)


def test_version_1_keeps_epoch_and_sequences_over_commits() -> None:
    world = ready(0)
    for expected in (0, 1):
        world.begin()
        world.send(b"x")
        world.step()
        world.respond(AddPartitionsToTxnRequest)
        assert sent_sequences(world) == [expected]
        world.start("commit_transaction")
        world.run()
        world.manager._call = None


def test_version_2_sends_at_once_and_takes_the_epoch_of_each_end() -> None:
    world = ready(2)
    for epoch in (0, 1, 2):
        world.begin()
        world.send(b"x")
        world.step()
        (sent,) = world.client.requests(ProduceRequest)
        assert builder_of(sent).oldest_allowed_version == 12
        assert isinstance(sent.body, ProduceRequest)
        records = sent.body.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        batch = RecordBatch(records)
        assert (batch.producer_epoch, batch.base_sequence) == (epoch, 0)
        assert batch.is_transactional
        pending = world.start("commit_transaction")
        world.respond_to_all()
        assert world.pending(EndTxnRequest).producer_epoch == epoch
        world.respond(EndTxnRequest)
        assert world.manager.take_outcome(pending) is None
    assert world.manager.producer == (7, 3)


@BOTH_VERSIONS
@pytest.mark.parametrize("name", ["commit_transaction", "abort_transaction"])
def test_end_of_an_empty_transaction_needs_no_request(version: int, name: str) -> None:
    world = in_transaction(version)
    pending = world.start(name)
    world.step()
    assert world.client.in_flight_request_count() == 0
    assert world.manager.take_outcome(pending) is None
    assert state_of(world) is State.READY


@BOTH_VERSIONS
def test_abort_fails_queued_records_and_waits_for_those_in_flight(version: int) -> None:
    world = in_transaction(version)
    first = world.send(b"in flight")
    world.step()
    if version == 0:
        world.respond(AddPartitionsToTxnRequest)
    assert len(world.client.requests(ProduceRequest)) == 1
    second = world.send(b"queued")  # the first batch of a partition is sent alone
    pending = world.start("abort_transaction")
    world.step()
    assert isinstance(second.exception(0), TransactionAbortedError)
    assert not world.client.requests(EndTxnRequest)
    world.respond_to_all()
    assert first.result(0).offset == 0
    assert not world.pending(EndTxnRequest).committed
    world.respond(EndTxnRequest)
    assert world.manager.take_outcome(pending) is None


@BOTH_VERSIONS
def test_failed_record_lets_the_transaction_only_be_aborted(version: int) -> None:
    world = in_transaction(version, partitions=2)
    refused, other = world.send(b"x", 0), world.send(b"y", 1)
    world.step()
    if version == 0:
        world.respond(AddPartitionsToTxnRequest)
    commit = world.start("commit_transaction")
    world.respond_to_all(errors={0: 87})
    assert isinstance(refused.exception(0), KafkaError)
    assert other.result(0).offset == 0
    assert isinstance(commit.error, TransactionAbortableError)
    assert isinstance(commit.error.__cause__, KafkaError)
    world.step(1000)
    assert not world.client.requests(EndTxnRequest)
    world.manager.take_outcome(commit)
    abort = world.start("abort_transaction")
    assert not world.pending(EndTxnRequest).committed
    world.respond(EndTxnRequest)
    if version == 0:  # the refused batch has left a gap in the sequences
        assert not abort.is_done
        init = world.pending(InitProducerIdRequest)
        assert (init.producer_id, init.producer_epoch) == (7, 0)
        world.respond(InitProducerIdRequest)
    assert world.manager.take_outcome(abort) is None
    assert world.manager.producer == (7, 1)
    world.begin()
    world.send(b"next")
    world.start("commit_transaction")
    world.run()
    assert world.broker[0].values() == [b"next"]


def test_no_batch_is_retried_once_the_transaction_has_failed() -> None:
    world = in_transaction(2)
    future = world.send(b"x")
    world.step()
    world.manager.fail_transaction(UnknownServerError("another request failed"))
    world.respond_with_error(7)
    assert future.exception(0) is not None
    assert not world.client.requests(ProduceRequest)


def test_version_2_ends_a_transaction_all_of_whose_batches_were_refused() -> None:
    world = in_transaction(2)
    world.send(b"x")
    world.step()
    world.respond_with_error(10)
    world.start("abort_transaction")
    assert world.pending(EndTxnRequest).producer_epoch == 0


@pytest.mark.parametrize("kind", [FindCoordinatorRequest, InitProducerIdRequest])
def test_call_continues_after_its_timeout(kind: type[Request]) -> None:
    world = TransactionWorld(2)
    first = world.start("init_transactions")
    if kind is InitProducerIdRequest:
        world.respond(FindCoordinatorRequest)
    world.step()
    with pytest.raises(IllegalStateError, match="init_transactions\\(\\) has timed out"):
        world.begin()
    assert world.start("init_transactions") is first
    world.run()
    assert first.is_done
    assert world.manager.take_outcome(first) is None


@pytest.mark.fault("W21")
def test_end_is_repeated_until_there_is_a_response() -> None:
    world = in_transaction(2)
    world.send(b"x")
    commit = world.start("commit_transaction")
    world.step()
    world.respond_to_all()
    for _ in range(3):
        assert world.pending(EndTxnRequest).committed
        world.lose(EndTxnRequest)
        world.step(1000)
        world.respond(FindCoordinatorRequest)
    with pytest.raises(IllegalStateError, match="commit_transaction\\(\\) has timed out"):
        world.start("abort_transaction")
    world.respond(EndTxnRequest)
    assert commit.is_done
    assert commit.error is None


@pytest.mark.fault("W21")
def test_unclear_response_to_a_commit_is_no_success() -> None:
    world = in_transaction(2)
    world.send(b"x")
    commit = world.start("commit_transaction")
    world.step()
    world.respond_to_all()
    world.respond(EndTxnRequest, code=-1)
    assert isinstance(commit.error, FatalError)
    assert state_of(world) is State.FATAL_ERROR


@BOTH_VERSIONS
def test_offsets_go_to_the_coordinator_of_the_group(version: int) -> None:
    world = in_transaction(version)
    pending = world.send_offsets()
    if version == 0:
        assert world.pending(AddOffsetsToTxnRequest).group_id == GROUP.group_id
        world.respond(AddOffsetsToTxnRequest)
    find = world.pending(FindCoordinatorRequest)
    assert (find.key_type, find.coordinator_keys) == (0, [GROUP.group_id])
    world.respond(FindCoordinatorRequest)
    sent = world.pending(TxnOffsetCommitRequest)
    assert sent.generation_id_or_member_epoch == GROUP.generation_id
    assert sent.member_id == GROUP.member_id
    (partition,) = sent.topics[0].partitions
    assert (partition.committed_offset, partition.committed_leader_epoch) == (5, 2)
    assert partition.committed_metadata == "m"
    assert not has_ended(pending)
    world.respond(TxnOffsetCommitRequest)
    assert world.manager.take_outcome(pending) is None
    commit = world.start("commit_transaction")
    assert world.pending(EndTxnRequest).committed
    world.respond(EndTxnRequest)
    assert world.manager.take_outcome(commit) is None


def test_commit_waits_for_offsets_whose_call_has_timed_out() -> None:
    world = in_transaction(2)
    offsets = world.send_offsets()
    with pytest.raises(IllegalStateError, match="with other offsets"):
        world.manager.send_offsets({tp(): OffsetAndMetadata(6)}, GROUP)
    assert world.send_offsets() is offsets
    world.start("commit_transaction")
    world.respond(FindCoordinatorRequest)
    assert not world.client.requests(EndTxnRequest)
    world.respond(TxnOffsetCommitRequest)
    assert world.pending(EndTxnRequest).committed


def test_group_that_has_rebalanced_fails_the_transaction() -> None:
    world = in_transaction(2)
    pending = world.send_offsets()
    world.respond(FindCoordinatorRequest)
    world.respond(TxnOffsetCommitRequest, code=22)
    assert isinstance(pending.error, CommitFailedError)
    assert "abort the transaction" in str(pending.error)
    with pytest.raises(TransactionAbortableError) as caught:
        world.start("commit_transaction")
    assert caught.value.__cause__ is pending.error


@pytest.mark.parametrize(("level", "later"), [(0, 2), (2, 0)])
def test_change_of_the_version_takes_effect_after_the_transaction(level: int, later: int) -> None:
    world = in_transaction(level)
    world.send(b"x")
    world.step()
    if level == 0:
        world.respond(AddPartitionsToTxnRequest)
    world.set_transaction_version(later, epoch=2)
    world.start("commit_transaction")
    world.respond_to_all()
    before = world.manager.uses_version_2
    world.pending(EndTxnRequest)
    world.respond(EndTxnRequest)
    assert world.manager.uses_version_2 is before
    world.is_version_2 = later == 2
    world.respond(InitProducerIdRequest)
    assert world.manager.uses_version_2 is not before
    assert state_of(world) is State.READY


def test_unauthorized_initialization_may_be_repeated() -> None:
    world = TransactionWorld(2)
    pending = world.start("init_transactions")
    world.respond(FindCoordinatorRequest)
    world.respond(InitProducerIdRequest, code=TransactionalIdAuthorizationError.code or 0)
    assert isinstance(world.manager.take_outcome(pending), TransactionalIdAuthorizationError)
    assert state_of(world) is State.UNINITIALIZED
    again = world.start("init_transactions")
    world.run()
    assert world.manager.take_outcome(again) is None


@pytest.mark.parametrize("state", [State.IN_TRANSACTION, State.ABORTABLE_ERROR])
def test_close_aborts_an_open_transaction(state: State) -> None:
    world = in_transaction(2)
    world.send(b"x")
    world.step()
    world.respond_to_all()
    if state is State.ABORTABLE_ERROR:
        world.manager.fail_transaction(UnknownServerError("failed"))
    world.manager.abort_to_close()
    world.sender.initiate_close()
    assert not world.pending(EndTxnRequest).committed
    world.respond(EndTxnRequest)
    assert not world.step()


def test_close_completes_a_commit() -> None:
    world = in_transaction(2)
    world.send(b"x")
    world.start("commit_transaction")
    world.manager.abort_to_close()
    world.sender.initiate_close()
    world.step()
    world.respond_to_all()
    assert world.pending(EndTxnRequest).committed
    world.respond(EndTxnRequest)
    assert not world.step()


def test_close_waits_for_the_end_of_a_transaction_for_a_limited_time() -> None:
    world = in_transaction(2)
    world.send(b"x")
    world.step()
    world.respond_to_all()
    world.manager.abort_to_close()
    world.sender.initiate_close()
    world.pending(EndTxnRequest)
    assert world.step(59_000)
    assert world.client.polled_ms[-1] <= 1_000
    assert not world.step(2_000)


def test_state_change_is_reported() -> None:
    world = ready(2)
    seen: list[State] = []
    world.manager._on_change = lambda: seen.append(world.manager.state)
    world.begin()
    world.start("abort_transaction")
    world.step()
    assert seen == [State.IN_TRANSACTION, State.ABORTING, State.READY]


INIT, END = ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN
PARTITIONS, GROUPS = ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN
OFFSET_COMMIT, FIND = ApiKey.TXN_OFFSET_COMMIT, ApiKey.FIND_COORDINATOR
ALL = (INIT, END, PARTITIONS, GROUPS, OFFSET_COMMIT, FIND)
RETRY, FIND_AGAIN, ABORTABLE = Reaction.RETRY, Reaction.FIND_COORDINATOR, Reaction.ABORTABLE
NEXT_EPOCH, FATAL = Reaction.NEXT_EPOCH, Reaction.FATAL
TABLE: dict[type[KafkaError], tuple[Reaction, ...]] = {  # in the order of ALL
    NotCoordinatorError: (FIND_AGAIN,) * 6,
    CoordinatorNotAvailableError: (FIND_AGAIN,) * 6,
    CoordinatorLoadInProgressError: (RETRY,) * 6,
    NotEnoughReplicasError: (RETRY,) * 6,
    ConcurrentTransactionsError: (RETRY,) * 6,
    RequestTimedOutError: (RETRY, RETRY, RETRY, RETRY, FIND_AGAIN, RETRY),
    InvalidProducerEpochError: (FATAL,) * 6,
    ProducerFencedError: (FATAL,) * 6,
    InvalidPidMappingError: (FATAL,) * 6,
    UnknownProducerIdError: (FATAL, NEXT_EPOCH, NEXT_EPOCH, NEXT_EPOCH, FATAL, FATAL),
    InvalidTxnStateError: (FATAL,) * 6,
    TransactionAbortableError: (ABORTABLE,) * 6,
    TransactionalIdAuthorizationError: (FATAL,) * 6,
    TopicAuthorizationError: (FATAL, FATAL, ABORTABLE, FATAL, FATAL, FATAL),
    OperationNotAttemptedError: (FATAL, FATAL, ABORTABLE, FATAL, FATAL, FATAL),
    GroupAuthorizationError: (FATAL, FATAL, ABORTABLE, ABORTABLE, ABORTABLE, ABORTABLE),
    ClusterAuthorizationError: (FATAL, FATAL, ABORTABLE, FATAL, FATAL, FATAL),
    UnknownMemberIdError: (FATAL, FATAL, ABORTABLE, FATAL, ABORTABLE, FATAL),
    IllegalGenerationError: (FATAL, FATAL, ABORTABLE, FATAL, ABORTABLE, FATAL),
    StaleMemberEpochError: (FATAL, FATAL, ABORTABLE, FATAL, ABORTABLE, FATAL),
    GroupIdNotFoundError: (FATAL, FATAL, ABORTABLE, FATAL, ABORTABLE, FATAL),
    FencedInstanceIdError: (FATAL, FATAL, ABORTABLE, FATAL, ABORTABLE, FATAL),
    InvalidTxnTimeoutError: (FATAL, FATAL, ABORTABLE, FATAL, FATAL, FATAL),
    UnknownServerError: (FATAL, FATAL, ABORTABLE, FATAL, FATAL, FATAL),
    UnknownTopicOrPartitionError: (RETRY,) * 6,
}


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.error_name)
def test_reaction_to_each_error(kind: type[KafkaError]) -> None:
    assert tuple(reaction_to(kind(), api) for api in ALL) == TABLE[kind]


@pytest.mark.fault("W21")
@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.error_name)
@pytest.mark.parametrize("api", [END, PARTITIONS, GROUPS, OFFSET_COMMIT])
def test_state_after_each_error(kind: type[KafkaError], api: ApiKey) -> None:
    requests: dict[ApiKey, type[Request]] = {
        END: EndTxnRequest,
        PARTITIONS: AddPartitionsToTxnRequest,
        GROUPS: AddOffsetsToTxnRequest,
        OFFSET_COMMIT: TxnOffsetCommitRequest,
    }
    request = requests[api]
    world = in_transaction(0)
    if api in {END, PARTITIONS}:
        world.send(b"x")
        world.start("commit_transaction")
    if api is END:
        world.respond(AddPartitionsToTxnRequest)
        world.respond_to_all()
    if api in {GROUPS, OFFSET_COMMIT}:
        world.send_offsets()
    if api is OFFSET_COMMIT:
        world.respond(AddOffsetsToTxnRequest)
        world.respond(FindCoordinatorRequest)
    before = world.manager.state
    world.respond(request, code=kind.code or 0)
    reaction = reaction_to(kind(), api)
    if reaction in {RETRY, FIND_AGAIN}:
        assert state_of(world) is before
        world.run()
        assert world.manager.fatal_error is None
        assert world.asked.count(request.__name__.removesuffix("Request")) == 2
    elif reaction is FATAL:
        assert state_of(world) is State.FATAL_ERROR
    else:
        assert state_of(world) is State.ABORTABLE_ERROR
        world.start("abort_transaction")
        world.run()
        assert state_of(world) is State.READY
        assert ("InitProducerId" in world.asked) == (reaction is NEXT_EPOCH)


def test_abort_that_can_only_be_aborted_is_fatal() -> None:
    world = in_transaction(2)
    world.send(b"x")
    world.step()
    world.respond_to_all()
    abort = world.start("abort_transaction")
    world.respond(EndTxnRequest, code=TransactionAbortableError.code or 0)
    assert isinstance(abort.error, FatalError)
    assert state_of(world) is State.FATAL_ERROR


def test_denied_topics_are_named() -> None:
    world = in_transaction(0)
    world.send(b"x")
    commit = world.start("commit_transaction")
    world.respond(AddPartitionsToTxnRequest, code=29)
    assert "an ACL has to allow WRITE" in str(commit.error)
    assert "'t'" in str(commit.error)


def test_record_that_is_too_large_fails_the_transaction() -> None:
    with Producer(
        {"bootstrap.servers": "127.0.0.1:1", "transactional.id": "t", "max.request.size": 1000}
    ) as producer:
        manager = producer._core._manager
        assert manager is not None
        manager._move_to(State.INITIALIZING)
        manager.initialized(ProducerIdAndEpoch(7, 0))
        producer.begin_transaction()
        with pytest.raises(InvalidTypeError):
            producer.send("t", 7)  # type: ignore[arg-type]
        assert manager.state is State.IN_TRANSACTION
        with pytest.raises(RecordTooLargeError):
            producer.send("t", b"x" * 2000)
        with pytest.raises(TransactionAbortableError) as caught:
            producer.commit_transaction()
        assert isinstance(caught.value.__cause__, RecordTooLargeError)
        with pytest.raises(TransactionAbortableError):
            producer.send("t", b"x")
        producer.abort_transaction(5)


def test_call_that_waits_fails_with_the_end_of_the_sender() -> None:
    world = in_transaction(2)
    offsets = world.send_offsets()
    commit = world.start("commit_transaction")
    world.sender.force_close()
    assert not world.step()
    for waiting in (offsets, commit):
        assert has_ended(waiting)
        assert "was closed before" in str(waiting.error)


def test_calls_after_a_crash_of_the_sender_raise_its_error() -> None:
    with Producer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "t"}) as producer:
        producer._core._sender._unexpected = ValueError("a defect")
        with pytest.raises(ProducerFatalError, match="a defect"):
            producer.init_transactions(20)
        with pytest.raises(ProducerFatalError, match="a defect"):
            producer.begin_transaction()
