"""Events of the cluster in a run, chosen at random by a seed."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from random import Random

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from integration.cluster_soak.fleet import Fleet
from integration.cluster_soak.recreated_topic import RecreatedTopic
from tests.support.checks.waiting import wait_until

_GROUPS = "__consumer_offsets"
_MOVE_S = 60.0
_PREFERRED = 0

MOVE, REASSIGN, COORDINATOR = "leader move", "reassignment", "coordinator move"
STOP, KILL, PAUSE, HICCUP = "SIGTERM", "SIGKILL", "pause beyond the session", "short pause"
BELOW_MIN_ISR, RECREATE, CONTROLLER = "below min.insync.replicas", "topic recreated", "controller"

# How often each comes in one shuffled round.
WEIGHTS = {
    MOVE: 4,
    REASSIGN: 2,
    COORDINATOR: 2,
    STOP: 3,
    KILL: 3,
    PAUSE: 2,
    HICCUP: 2,
    BELOW_MIN_ISR: 2,
    RECREATE: 3,
    CONTROLLER: 1,
}


@dataclass(frozen=True, slots=True)
class Durations:
    """How long brokers are away, in seconds: shortest and longest.

    Attributes:
        away: After SIGTERM and SIGKILL.
        paused: Longer than `broker.session.timeout.ms`.
        hiccup: Shorter than that.
        below: How long two of three brokers are down.
        missing: How long there is no topic of a name before it is created again. Clients may see
            that it is missing, or find another topic of that name at once.
    """

    away: tuple[float, float] = (0.0, 8.0)
    paused: tuple[float, float] = (8.0, 12.0)
    hiccup: tuple[float, float] = (0.5, 3.0)
    below: tuple[float, float] = (8.0, 20.0)
    missing: tuple[float, float] = (0.0, 4.0)


class Events:
    """Carries out one event after another."""

    def __init__(
        self,
        fleet: Fleet,
        topic: str,
        recreated: RecreatedTopic,
        random: Random,
        durations: Durations,
        pause: threading.Event,
    ) -> None:
        """Prepares events.

        Args:
            fleet: The brokers.
            topic: The topic whose leaders move.
            recreated: The topic that is deleted and created again.
            random: Chooses everything.
            durations: How long brokers are away.
            pause: Set to end all waits.
        """
        self._fleet = fleet
        self._topic = topic
        self._recreated = recreated
        self._random = random
        self._durations = durations
        self._pause = pause
        self._kinds: Mapping[str, Callable[[], str]] = {
            MOVE: lambda: self._move(self._topic),
            REASSIGN: self._reassign,
            COORDINATOR: lambda: self._move(_GROUPS),
            STOP: lambda: self._end(self._fleet.stop),
            KILL: lambda: self._end(self._fleet.kill),
            PAUSE: lambda: self._suspend(self._durations.paused),
            HICCUP: lambda: self._suspend(self._durations.hiccup),
            BELOW_MIN_ISR: self._below_min_isr,
            RECREATE: self._recreate,
            CONTROLLER: self._controller,
        }

    def carry_out(self, kind: str) -> str:
        """Carries out an event of this kind; all brokers work again afterwards."""
        return self._kinds[kind]()

    def _move(self, topic: str) -> str:
        """Gives every partition another preferred leader, and elects the preferred leaders."""
        wanted = {}
        with closing(self._admin()) as admin:
            for partition, replicas in self._replicas(admin, topic).items():
                wanted[partition] = self._random.sample(replicas, len(replicas))
            admin.alter_partition_reassignments(wanted)
            self._await_reassigned(admin)
            self._elect(admin, wanted)
        return f"{topic}: preferred leaders {[replicas[0] for replicas in wanted.values()]}"

    def _reassign(self) -> str:
        """Takes a replica from some partitions and gives it back, so that records are copied."""
        with closing(self._admin()) as admin:
            every = self._replicas(admin, self._topic)
            chosen = self._random.sample(sorted(every), max(1, len(every) // 2))
            fewer = {one: self._random.sample(every[one], len(every[one]) - 1) for one in chosen}
            admin.alter_partition_reassignments(fewer)
            self._await_reassigned(admin)
            again = {one: self._random.sample(every[one], len(every[one])) for one in chosen}
            admin.alter_partition_reassignments(again)
            self._await_reassigned(admin)
            self._elect(admin, again)
        return f"{self._topic}: partitions {[one.partition for one in chosen]}"

    def _end(self, end: Callable[..., None]) -> str:
        node = self._random.choice(self._fleet.working())
        away = self._random.uniform(*self._durations.away)
        end(node)
        self._pause.wait(away)
        self._fleet.start(node)
        return f"broker {node.node_id} for {away:.1f} s"

    def _suspend(self, range_s: tuple[float, float]) -> str:
        node = self._random.choice(self._fleet.working())
        away = self._random.uniform(*range_s)
        self._fleet.suspend(node)
        self._pause.wait(away)
        self._fleet.resume(node)
        return f"broker {node.node_id} for {away:.1f} s"

    def _below_min_isr(self) -> str:
        first, second = self._random.sample(self._fleet.working(), 2)
        away = self._random.uniform(*self._durations.below)
        self._random.choice([self._fleet.stop, self._fleet.kill])(first)
        self._fleet.kill(second)
        self._pause.wait(away)
        self._fleet.start(first, second)
        return f"brokers {first.node_id} and {second.node_id} for {away:.1f} s"

    def _recreate(self) -> str:
        missing = self._random.uniform(*self._durations.missing)
        self._recreated.recreate(missing, self._pause)
        return f"{self._recreated.name}, missing for {missing:.1f} s"

    def _controller(self) -> str:
        away = self._random.uniform(*self._durations.away)
        self._fleet.restart_controller(away, self._pause)
        return f"SIGKILL, for {away:.1f} s"

    def _admin(self) -> KafkaAdminClient:
        servers = [node.address() for node in self._fleet.working()]
        return KafkaAdminClient(bootstrap_servers=servers)

    @staticmethod
    def _replicas(admin: KafkaAdminClient, topic: str) -> dict[TopicPartition, list[int]]:
        [described] = admin.describe_topics([topic])
        found = {
            TopicPartition(topic, one["partition_index"]): sorted(one["replica_nodes"])
            for one in described["partitions"]
        }
        return dict(sorted(found.items()))

    @staticmethod
    def _await_reassigned(admin: KafkaAdminClient) -> None:
        what = "no partition is being reassigned"
        wait_until(lambda: not admin.list_partition_reassignments(), what, _MOVE_S, 0.25)

    @staticmethod
    def _elect(admin: KafkaAdminClient, partitions: Iterable[TopicPartition]) -> None:
        numbers: dict[str, list[int]] = {}
        for one in partitions:
            numbers.setdefault(one.topic, []).append(one.partition)
        # A replica that is not in sync yet is not elected; that is no error of the run.
        admin.elect_leaders(_PREFERRED, numbers, raise_errors=False)


def shuffled(random: Random, weights: Mapping[str, int]) -> Sequence[str]:
    """Returns one round of kinds, each as often as its weight, in random order."""
    kinds = [kind for kind, count in weights.items() for _ in range(count)]
    return random.sample(kinds, len(kinds))
