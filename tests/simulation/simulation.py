"""Run of a scenario: world, participants, faults and checks."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kclient.testing.virtual.virtual_task import SimulationError
from kclient.testing.virtual.virtual_world import VirtualWorld
from tests.simulation.admin_application import Reader
from tests.simulation.application import Application, Stage
from tests.simulation.cast import Cast
from tests.simulation.checker import Violation, check
from tests.simulation.clients import BLOCKING, Clients
from tests.simulation.history import Fault, History, Stored
from tests.simulation.nemesis import Nemesis
from tests.simulation.promises import Promises
from tests.simulation.scenario import WORK_MS, draw
from tests.simulation.transaction_readers import logged

_BEGIN_MS = 30_000.0
_FINISH_MS = 50_000.0
_SETTLE_MS = 4_000.0  # requests sent earlier may still arrive
_CATCH_UP_MS = 30_000.0
_CLOSE_MS = 30_000.0
_CALM_MS = 40_000.0
_READ_MS = 40_000.0
_BEFORE_COPY = ("begin", "work", "finish", "catch-up")


@dataclass
class Result:
    """Result of a run.

    Attributes:
        seed: The seed.
        clients: Kind of the clients.
        violations: Violated invariants.
        faults: Number of injected faults by kind.
        records: Number of records in the final log.
        virtual_ms: Elapsed virtual time.
        steps: Number of task switches.
        digest: Hash of all events.
        history: Events of the applications.
        trace: Events of the world, if requested.
    """

    seed: int
    clients: str = BLOCKING.name
    violations: list[Violation] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    records: int = 0
    virtual_ms: float = 0.0
    steps: int = 0
    digest: str = ""
    history: History = field(default_factory=History, repr=False)
    trace: list[str] = field(default_factory=list, repr=False)


def simulate(seed: int, clients: Clients = BLOCKING, *, keep_trace: bool = False) -> Result:
    """Run the scenario of a seed."""
    scenario = draw(seed)
    result = Result(seed, clients.name)
    with VirtualWorld(seed, latency_ms=scenario.latency_ms, keep_lines=keep_trace) as world:
        stage = Stage(world, scenario, result.history, clients)
        run = _Run(stage)
        try:
            run.play()
        except (SimulationError, AssertionError) as problem:
            result.violations.append(Violation(run.phase, f"{type(problem).__name__}: {problem}"))
        except Exception as problem:  # noqa: BLE001 (whatever a task died of is a finding)
            detail = f"{type(problem).__name__}: {problem} {_where(problem)}"
            result.violations.append(Violation("crash", f"{run.phase}: {detail}"))
        run.cast.operator.traffic.flush()
        run.note_transactions()
        result.faults.update(event.kind for event in result.history.of(Fault))
        result.faults.update(run.cast.operator.faults.struck)
        for what, count in run.cast.operator.machine.disk.refused.items():
            result.faults[f"no {what} left"] += count
        result.virtual_ms = world.clock.now_ms
        result.steps = world.scheduler.steps
        result.digest = world.trace.digest()
        result.trace = world.trace.lines
    found = _judge(result.history, scenario.promises, run.phase)
    # The act `copy` shows that records are missing; the history, which.
    first, then = (found, result.violations) if run.phase == "copy" else (result.violations, found)
    result.violations = [*first, *then]
    result.records = sum(1 for _ in result.history.of(Stored))
    return result


def _judge(history: History, promises: Promises, phase: str) -> list[Violation]:
    """Check the history; of an aborted run only the invariants of incomplete histories."""
    missing = set() if phase == "end" else {"lost-write", "unseen", "outcome"}
    if phase in _BEFORE_COPY:
        missing |= {"exactly-once", "left-open"}
    return [found for found in check(history, promises) if found.invariant not in missing]


def _where(problem: BaseException) -> str:
    trace = problem.__traceback__
    places = []
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places[-6:])


class _Run:
    """Phases of a run.

    Attributes:
        phase: Current phase, for errors of a run that takes too long.
        cast: Participants.
    """

    def __init__(self, stage: Stage) -> None:
        self.phase = "begin"
        self._world = stage.world
        self._stage = stage
        self.cast = Cast(stage)

    def play(self) -> None:
        """Run all phases."""
        world, cast = self._world, self.cast
        nemesis = Nemesis(cast)
        cast.operator.start()
        self._act("begin", _BEGIN_MS, lambda: cast.admin.ready or cast.admin.over)
        world.on_step.append(cast.watch)
        cast.enter()
        nemesis.plan()
        self.phase = "work"
        world.run(timeout_ms=WORK_MS)
        nemesis.heal()
        cast.complete()
        self._stage.faults_are_over = True
        for each in cast.writers:
            each.stopping = True
        self._act("finish", _FINISH_MS, lambda: _all_over([*cast.producers, *cast.writers]))
        world.run(timeout_ms=_SETTLE_MS)
        self._act("catch-up", _CATCH_UP_MS, self._caught_up)
        self._act("copy", _CATCH_UP_MS, self._have_copied)
        self._stay()
        self._close()
        self._read()
        self._check_leftovers()
        self.phase = "end"

    def _act(self, phase: str, limit_ms: float, until: Callable[[], bool]) -> None:
        self.phase = phase
        self._world.run(until, limit_ms)

    def _caught_up(self) -> bool:
        """Return whether each group has processed all records of the log."""
        ends = self.cast.operator.ends()
        processed = self._stage.processed
        return ends is not None and all(
            len(processed[f"g{group}", partition]) >= end
            for partition, end in ends.items()
            for group in range(self._stage.scenario.groups)
        )

    def _have_copied(self) -> bool:
        """Return whether all transactions have ended, and readers and copiers are at the end."""
        cast = self.cast
        if not self._stage.scenario.writers:
            return True
        ends = {
            each.topic_partition: each.log._state for each in cast.operator.transactional_logs()
        }
        if any(each.last_stable_offset() < each.local.log_end_offset for each in ends.values()):
            return False
        return all(
            reader.positions.get(each, 0) >= state.local.log_end_offset
            for reader in cast.readers
            for each, state in ends.items()
        ) and all(each.has_seen_all_copies for each in cast.readers if each.is_committed)

    def _stay(self) -> None:
        """Keep each member busy for longer than its session, after the end of the faults."""
        cast = self.cast
        cast.operator.refuse_offset_look_ups()
        self._stage.calm = True
        running = [each for each in cast.consumers if not each.stopping]
        self._act("calm", _CALM_MS, lambda: all(each.over or each.stayed for each in running))
        cast.operator.allow_offset_look_ups()

    def _close(self) -> None:
        cast = self.cast
        ending = [*cast.others, *cast.consumers, *cast.readers]
        for each in ending:
            each.stopping = True
        for copier in cast.copiers:
            copier.stop()
        ending += cast.copiers
        self._act("close", _CLOSE_MS, lambda: _all_over(ending))

    def _read(self) -> None:
        reader = Reader(self._stage, "reader", "reader")
        self._act("read", _READ_MS, lambda: reader.over)

    def note_transactions(self) -> None:
        """Add the content of the transactional topics to the history."""
        if self._stage.scenario.writers:
            self.cast.operator.stable_offsets.end()
            machine, now_ms = self.cast.operator.machine, self._world.clock.now_ms
            for event in logged(machine, self._stage.scenario, now_ms):
                self._stage.history.add(event)

    def _check_leftovers(self) -> None:
        """Check that closed clients and brokers have left no file or socket open."""
        cast = self.cast
        self.phase = "leftovers"
        for each in (*cast.others, *cast.applications):
            _check_empty(each)
        cast.operator.stop()
        self._act("stop", _CLOSE_MS, lambda: cast.operator.down)
        self.phase = "leftovers"
        if cast.operator.left_open:
            raise AssertionError(f"the broker left open: {cast.operator.left_open}")


def _all_over(applications: Iterable[Application]) -> bool:
    return all(each.over for each in applications)


def _check_empty(application: Application) -> None:
    process = application.process
    if process.alive:
        left = [*map(repr, process.net.sockets()), *process.files.open_files()]
        left += [task.name for task in process._live]
        if left:
            raise AssertionError(f"{application.name} left open: {left}")
