"""The consumer group of the report: two members, of which one is killed during the run."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from examples.flights_pipeline.kafka_access import KafkaAccess
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from examples.flights_pipeline.progress import Progress
from examples.flights_pipeline.story import Event, Sample
from examples.flights_pipeline.topics import PARTITIONS
from kclient import AdminClient, Consumer, TopicPartition
from kclient.cli.processes import Process
from kclient.errors import KafkaError, KafkaTimeoutError

KILL_AT: Final = 0.4  # of all statistics
_INTERVAL_S: Final = 0.25
_TIMEOUT_S: Final = 90.0
_NAMES: Final = ("member-1", "member-2")


class ReportGroup:
    """Runs the members, kills the first one, and samples topics and groups in a thread.

    Args:
        kafka: How to connect.
        settings: Settings of the run.
        directory: Directory of the table and of the members' logs.
        expected: Number of statistics, of which `KILL_AT` are collected before the kill.
        progress: Where events are shown.
    """

    def __init__(
        self,
        kafka: KafkaAccess,
        settings: PipelineSettings,
        directory: Path,
        expected: int,
        progress: Progress,
    ) -> None:
        self.samples: list[Sample] = []
        self.events: list[Event] = []
        self._kafka = kafka
        self._settings = settings
        self._kill_after = KILL_AT * expected
        self._progress = progress
        self._members = [self._start(name, directory) for name in _NAMES]
        self._owners: dict[str, int] = {}
        self._has_killed = False
        self._has_taken_over = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="group", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        for member in self._members:
            member.stop()

    def note(self, text: str, mark: str = "") -> None:
        """Add an event."""
        self.events.append(Event(self._progress.seconds, text, mark))

    def await_members(self) -> None:
        """Wait until both members have partitions.

        Raises:
            KafkaError: A request failed, or a member ended by itself, or it takes too long.
        """
        self._await("both members have partitions", lambda: set(self._owners) == set(_NAMES))
        self.note("two members share the four partitions of the statistics")

    def await_end(self) -> None:
        """Wait until all statistics are collected and the partitions of the killed member owned.

        Raises:
            KafkaError: A request failed, or a member ended by itself, or it takes too long.
        """
        now = self._progress.seconds

        def is_collected() -> bool:
            last = self.samples[-1]
            return last.seconds > now and last.collected == last.statistics and self._has_taken_over

        self._await("all statistics are collected", is_collected)
        self.note("the group has committed all statistics")

    def _await(self, what: str, reached: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._error is not None or (self.samples and reached()), _TIMEOUT_S
            )
            if self._error is not None:
                raise self._error
            if not reached():
                raise KafkaTimeoutError(
                    f"{self._settings.group}: not within {_TIMEOUT_S:g} s: {what}"
                )

    def _start(self, name: str, directory: Path) -> Process:
        settings = self._settings
        arguments = [*self._kafka.arguments(), "--topic", settings.statistics_topic]
        arguments += ["--group", settings.group, "--name", name]
        arguments += ["--table", str(directory / "statistics.sqlite")]
        module = "examples.flights_pipeline.member"
        return Process(name, module, arguments, directory / f"{name}.log")

    def _watch(self) -> None:
        try:
            with (
                AdminClient(self._kafka.client_options()) as admin,
                Consumer(self._kafka.client_options()) as consumer,
            ):
                while not self._stopped.wait(_INTERVAL_S):
                    self._step(admin, consumer)
        except Exception as error:  # noqa: BLE001 (raised by the thread that waits)
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _step(self, admin: AdminClient, consumer: Consumer) -> None:
        settings = self._settings
        sample = Sample(
            self._progress.seconds,
            _end(consumer, settings.flights_topic),
            _committed(admin, settings.query_group),
            _end(consumer, settings.statistics_topic),
            _committed(admin, settings.group),
        )
        found = admin.describe_consumer_groups(settings.group)[settings.group]
        owners = {one.client_id: len(one.assignment) for one in found.members if one.assignment}
        self._check_members()
        if not self._has_killed and sample.collected >= self._kill_after > 0 and len(owners) > 1:
            self._kill(sample)
        elif self._has_killed and not self._has_taken_over and owners == {_NAMES[1]: PARTITIONS}:
            self._has_taken_over = True
            self._show(f"{_NAMES[1]} has taken over all partitions", "taken over")
        with self._changed:
            self.samples.append(sample)
            self._owners = owners
            self._changed.notify_all()

    def _kill(self, sample: Sample) -> None:
        self._members[0].kill()
        self._has_killed = True
        self._show(
            f"{_NAMES[0]} is killed (SIGKILL) after {sample.collected:,} statistics", "killed"
        )

    def _show(self, text: str, mark: str) -> None:
        self._progress.say("group", text)
        self.note(text, mark)

    def _check_members(self) -> None:
        for member in self._members[1:] if self._has_killed else self._members:
            if not member.is_running():
                raise KafkaError(f"{member.name} ended by itself; see {member.log}")


def _end(consumer: Consumer, topic: str) -> int:
    return sum(
        consumer.end_offsets([TopicPartition(topic, one) for one in range(PARTITIONS)]).values()
    )


def _committed(admin: AdminClient, group: str) -> int:
    return sum(found.offset for found in admin.list_consumer_group_offsets(group).values())
