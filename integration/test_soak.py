"""A few rounds of the soak on each kind of broker; `make soak` runs many."""

from pathlib import Path

import pytest

from integration.harness.discovery import NEWEST
from integration.soak.brokers import ApacheKafka, Brokers, CompanionBroker
from integration.soak.crowd import Cast
from integration.soak.report import faults_of, lines_of
from integration.soak.soak import Plan, Soak

pytestmark = pytest.mark.campaign

OURS = Cast(("kclient", "kclient"))
MIXED = Cast(("kclient", "kafka-python", "confluent-kafka", "aiokafka"))
COOPERATIVE = Cast(("confluent-kafka", "confluent-kafka", "kafka-python"), "cooperative-sticky")
STATIC = Cast(("kclient", "kclient", "confluent-kafka", "kafka-python"), static=True)


def live_through(brokers: Brokers, directory: Path, plan: Plan) -> None:
    lines: list[str] = []
    with brokers:
        outcome = Soak(brokers, directory, plan, lines.append).run()
    assert outcome.acknowledged > 0
    assert len(outcome.pauses) == plan.rounds
    assert faults_of(outcome) == []
    assert "none lost" in next(iter(lines_of(outcome)))


@pytest.mark.timeout(400)  # on a machine that is busy with other things
@pytest.mark.fault("W3")
def test_soak_on_one_node_of_apache_kafka(tmp_path: Path) -> None:
    plan = Plan(
        rounds=2, between_s=3, member_event_s=0, writers=2, rate=500, groups=[OURS], in_flight=1
    )
    live_through(ApacheKafka(tmp_path, NEWEST, nodes=1), tmp_path, plan)


@pytest.mark.timeout(400)
@pytest.mark.fault("W2")
def test_soak_on_three_nodes_of_apache_kafka(tmp_path: Path) -> None:
    plan = Plan(
        rounds=2, between_s=3, member_event_s=0, writers=2, rate=500, groups=[OURS], kills=[True]
    )
    live_through(ApacheKafka(tmp_path, NEWEST, nodes=3), tmp_path, plan)


@pytest.mark.timeout(400)
@pytest.mark.fault("R11", "R22")
def test_soak_of_all_clients_on_the_companion_broker(tmp_path: Path) -> None:
    groups = [MIXED, COOPERATIVE, STATIC]
    plan = Plan(rounds=2, between_s=8, member_event_s=1, writers=2, rate=200, groups=groups, seed=1)
    live_through(CompanionBroker(tmp_path / "data"), tmp_path, plan)
