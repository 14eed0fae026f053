"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter."""

from dataclasses import replace
from typing import Any

import pytest

from kclient.broker.raft.voter_set import Endpoint
from kclient.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kclient.protocol.messages.raft_voters import (
    AddRaftVoterListener,
    AddRaftVoterRequest,
    KRaftVersionFeature,
    RemoveRaftVoterRequest,
    UpdateRaftVoterListener,
    UpdateRaftVoterRequest,
)
from tests.support.quorum.bench import CONFIG, Bench, key
from tests.support.quorum.requests import begin, catch_up, elect
from tests.support.quorum.world import CLUSTER, LISTENER


def add(node_id: int, *, early: bool = False) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=1_000,
        voter_id=node_id,
        voter_directory_id=key(node_id).directory_id,
        listeners=[AddRaftVoterListener(name=LISTENER, host=f"node{node_id}", port=9000 + node_id)],
        ack_when_committed=not early,
    )


def remove(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=node_id, voter_directory_id=key(node_id).directory_id
    )


def update(node_id: int, host: str, epoch: int = 1) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER,
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=key(node_id).directory_id,
        listeners=[UpdateRaftVoterListener(name=LISTENER, host=host, port=1)],
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )


def report_versions(bench: Bench, highest: int = 1) -> None:
    (_, _, on_response), *_ = bench.take(ApiVersionsRequest)
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=highest)
    bench.respond(
        on_response,
        ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[feature]),
    )


@pytest.fixture
def bench() -> Bench:
    """Leader of the voters 1 and 2, all committed."""
    bench = Bench(1, 2, dynamic=True)
    elect(bench)
    catch_up(bench, 2)
    return bench


def codes(responses: list[Any]) -> list[int]:
    return [response.error_code for response in responses]


def test_voter_is_added_when_it_has_all_records(bench: Bench) -> None:
    catch_up(bench, 3)
    responses = bench.handle(add(3))
    report_versions(bench)
    assert bench.client.voters.ids == {1, 2, 3}
    assert responses == []
    catch_up(bench, 3)
    assert codes(responses) == [0]


def test_early_response(bench: Bench) -> None:
    catch_up(bench, 3)
    responses = bench.handle(add(3, early=True))
    report_versions(bench)
    assert codes(responses) == [0]


def test_voter_without_the_records_is_refused(bench: Bench) -> None:
    responses = bench.handle(add(3))
    report_versions(bench)
    assert codes(responses) == [7]
    assert bench.client.voters.ids == {1, 2}


def test_voter_without_the_version_is_refused(bench: Bench) -> None:
    catch_up(bench, 3)
    responses = bench.handle(add(3))
    report_versions(bench, highest=0)
    assert codes(responses) == [42]


def test_voter_that_does_not_respond(bench: Bench) -> None:
    responses = bench.handle(add(3))
    bench.advance(1_000)
    assert codes(responses) == [7]


def test_errors_of_add(bench: Bench) -> None:
    assert codes(bench.handle(add(2))) == [126]
    no_directory = add(3)
    no_directory.voter_directory_id = bytes(16)
    assert codes(bench.handle(no_directory)) == [42]
    no_listener = add(3)
    no_listener.listeners = []
    assert codes(bench.handle(no_listener)) == [42]
    other = add(3)
    other.cluster_id = "other"
    assert codes(bench.handle(other)) == [104]


def test_voters_that_are_configured_cannot_be_changed() -> None:
    bench = Bench(1)
    bench.advance()
    assert codes(bench.handle(add(3))) == [35]
    assert codes(bench.handle(update(1, "new"))) == [0]
    assert codes(Bench(1, 2).handle(remove(2))) == [6]


def test_one_change_at_a_time(bench: Bench) -> None:
    catch_up(bench, 3)
    bench.handle(add(3))
    assert codes(bench.handle(remove(2))) == [7]
    report_versions(bench)
    assert codes(bench.handle(remove(2))) == [7]
    catch_up(bench, 2)
    catch_up(bench, 3)
    assert bench.handle(remove(2)) == []
    assert bench.client.voters.ids == {1, 3}


def test_no_change_before_a_record_of_the_epoch_is_committed() -> None:
    bench = Bench(1, 2, dynamic=True)
    elect(bench)
    assert codes(bench.handle(remove(2))) == [7]


def test_removed_voter_does_not_count(bench: Bench) -> None:
    responses = bench.handle(remove(2))
    assert codes(responses) == [0]
    assert bench.client.high_watermark == bench.client.log_end_offset
    assert codes(bench.handle(remove(2))) == [127]
    assert codes(bench.handle(remove(1))) == [127]


def test_removed_leader_leads_until_that_is_committed(bench: Bench) -> None:
    responses = bench.handle(remove(1))
    assert (bench.state, responses) == ("Leader", [])
    catch_up(bench, 2)
    assert codes(responses) == [0]
    assert bench.state == "Resigned"


def test_failed_leader_ends_the_change(bench: Bench) -> None:
    responses = bench.handle(remove(1))
    bench.context.observe(2, 5, {}, bench.clock.now_ms)
    assert codes(responses) == [6]


def test_update_does_not_wait_for_the_commit(bench: Bench) -> None:
    assert codes(bench.handle(update(2, "new"))) == [0]
    assert bench.client.voters.endpoint(2, LISTENER) == Endpoint("new", 1)
    assert codes(bench.handle(update(2, "newer"))) == [7]
    assert codes(bench.handle(update(2, "newer", epoch=0))) == [74]
    assert codes(bench.handle(update(2, "newer", epoch=9))) == [75]


def test_update_of_no_voter(bench: Bench) -> None:
    assert codes(bench.handle(update(9, "new"))) == [127]


def test_voter_with_another_endpoint_asks_for_an_update() -> None:
    bench = Bench(1, 2, dynamic=True)
    entry = replace(bench.context.local_voter, endpoints={LISTENER: Endpoint("old", 1)})
    voters = bench.client.voters.with_updated(entry)
    assert voters is not None
    bench.context.control.voter_sets.add(0, voters)
    bench.handle(begin(2, 1))
    bench.context.requests.reset_all()
    bench.advance(1_999)
    assert bench.take(UpdateRaftVoterRequest) == []
    bench.context.requests.reset_all()
    state = bench.context.quorum.state
    assert hasattr(state, "deadline_ms")
    state.deadline_ms = 10_000
    bench.advance(1)
    (node, request, _), *_ = bench.take(UpdateRaftVoterRequest)
    assert (node.id, request.voter_id, request.listeners[0].host) == (2, 1, "node1")


@pytest.mark.parametrize("auto_join", [False, True])
def test_auto_join(auto_join: bool) -> None:
    bench = Bench(2, 3, dynamic=True, config=replace(CONFIG, auto_join=auto_join))
    bench.handle(begin(2, 1))
    bench.context.requests.reset_all()
    bench.advance(2_000)
    requests = bench.take(AddRaftVoterRequest)
    assert len(requests) == auto_join
    assert all(not request.ack_when_committed for _, request, _ in requests)
