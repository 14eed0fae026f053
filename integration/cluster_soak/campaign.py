"""The run: brokers, clients and events."""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from integration.cluster_soak.availability import AvailabilityWatch
from integration.cluster_soak.clients import CampaignClients
from integration.cluster_soak.event_thread import EventThread, Report
from integration.cluster_soak.fleet import Fleet
from integration.cluster_soak.inspection import Findings, inspect
from integration.cluster_soak.plan import (
    BROKER_PROPERTIES,
    MIN_IN_SYNC,
    PARTITIONS,
    RECREATED,
    RECREATED_PARTITIONS,
    REPLICAS,
    TOPIC,
    TRANSACTION_PARTITIONS,
    TRANSACTIONS,
    Plan,
)
from integration.cluster_soak.recreated_topic import RecreatedTopic
from integration.harness.discovery import find_runtime
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.soak.report import client_faults
from kclient import AdminClient, NewTopic
from tests.support.processes.vital_signs import VitalSigns

_TICK_S = 1.0
_WARM_UP = 0.4  # of the whole time


@dataclass(slots=True)
class Outcome:
    """Result of a run.

    Attributes:
        findings: What the topics hold, compared with the outcomes that the clients reported.
        events: How many there were of each kind.
        admin_calls: How many calls of the admin client succeeded.
        admin_failures: The errors of the others.
        admin_longest: How long the longest of them took, in seconds.
        signs: What the client processes used.
        warm: When the warm-up was over, by the monotonic clock.
        seconds: Duration of the events.
        faults: Violations of a guarantee.
    """

    findings: Findings
    events: Counter[str] = field(default_factory=Counter)
    admin_calls: int = 0
    admin_failures: Counter[str] = field(default_factory=Counter)
    admin_longest: float = 0.0
    signs: VitalSigns = field(default_factory=VitalSigns)
    warm: float = 0.0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class Campaign:
    """Three brokers and a controller, the clients, and what happens to the brokers."""

    def __init__(self, directory: Path, version: str, plan: Plan, report: Report) -> None:
        session = {"broker.session.timeout.ms": str(plan.broker_session_ms)}
        options = ClusterOptions(
            nodes=REPLICAS,
            controllers=1,
            properties={**BROKER_PROPERTIES, **session},
            heap_mb=400,
            # A broker runs for so short a time that the optimising compiler does not pay off.
            jvm_options=("-XX:TieredStopAtLevel=1",),
        )
        self._cluster = KafkaCluster(find_runtime(version, directory), directory / "kafka", options)
        self._directory = directory
        self._plan = plan
        self._report = report
        self._events: Counter[str] = Counter()

    def run(self) -> Outcome:
        """Carries out all events, and compares what was written with what was acknowledged.

        Raises:
            AssertionError: An event failed, because a broker failed to.
        """
        with ExitStack() as ending:
            ending.enter_context(self._cluster)
            fleet = Fleet(self._cluster)
            admin = ending.enter_context(AdminClient(bootstrap_servers=fleet.bootstrap))
            recreated = RecreatedTopic(admin, RECREATED, RECREATED_PARTITIONS, REPLICAS)
            self._create_topics(admin, recreated, fleet)
            watch = ending.enter_context(AvailabilityWatch(fleet, TOPIC, MIN_IN_SYNC))
            clients = ending.enter_context(CampaignClients(fleet, self._directory, self._plan))
            clients.await_work()
            self._report("every writer writes and every group reads")
            began = time.monotonic()
            self._live(fleet, recreated, clients, watch)
            ended = time.monotonic()
            self._report("all events are over; the clients finish")
            clients.finish()
            findings = inspect(clients, watch, recreated, (began, ended))
            clients.guard(watch.name, watch.check)
            warm = began + _WARM_UP * (ended - began)
            return self._outcome(findings, clients, warm, ended - began)

    def _create_topics(self, admin: AdminClient, recreated: RecreatedTopic, fleet: Fleet) -> None:
        admin.create_topics(
            [
                NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=REPLICAS),
                NewTopic(
                    TRANSACTIONS,
                    num_partitions=TRANSACTION_PARTITIONS,
                    replication_factor=REPLICAS,
                ),
            ]
        )
        recreated.create()
        fleet.await_in_sync([TOPIC, TRANSACTIONS, RECREATED], REPLICAS)

    def _live(
        self,
        fleet: Fleet,
        recreated: RecreatedTopic,
        clients: CampaignClients,
        watch: AvailabilityWatch,
    ) -> None:
        """Observes the clients until the events are over."""
        with EventThread(fleet, recreated, self._plan, self._report) as events:
            while not events.ended(_TICK_S):
                clients.observe()
                clients.guard(watch.name, watch.check)
        self._events = events.counts

    def _outcome(
        self, findings: Findings, clients: CampaignClients, warm: float, seconds: float
    ) -> Outcome:
        faults = [
            *clients.faults,
            *findings.faults,
            *clients.admin.faults,
            *client_faults(clients.signs, warm),
        ]
        return Outcome(
            findings,
            self._events,
            clients.admin.succeeded,
            clients.admin.failed,
            clients.admin.longest,
            clients.signs,
            warm,
            seconds,
            faults,
        )
