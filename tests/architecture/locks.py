"""Locks of kclient: where they are created, and in which order threads acquire them."""

import ast
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

from kclient.common.runtime import Clock, Condition, Lock, Task, Tasks
from kclient.common.waiting import Steps

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "locks.md"
CREATION = re.compile(r"(tasks\.(lock|condition)|make_lock|threading\.R?Lock)\(\)$")
# Where `Tasks` makes the locks of the others.
MAKERS = ("system_tasks.py",)


@dataclass(frozen=True, slots=True)
class Site:
    """An expression that creates a lock."""

    path: str
    first_line: int
    last_line: int
    name: str


@cache
def sites() -> tuple[Site, ...]:
    """Find the calls of ``Tasks.lock()`` and ``Tasks.condition()`` in the package."""
    found: list[Site] = []
    for path in sorted((ROOT / "kclient").rglob("*.py")):
        if path.name in MAKERS:
            continue
        tree = ast.parse(path.read_text())
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and CREATION.search(ast.unparse(node)):
                name = lock_name(node, parents)
                found.append(Site(str(path), node.lineno, node.end_lineno or node.lineno, name))
    return tuple(found)


def lock_name(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """Name a lock by the class that gets it: `Class`, or `Class.attribute` where it is assigned."""
    parent = parents[node]
    if isinstance(parent, ast.keyword):
        parent = parents[parent]
    if isinstance(parent, ast.Call):
        return ast.unparse(parent.func)
    target = (
        parent.targets[0] if isinstance(parent, ast.Assign) else getattr(parent, "target", None)
    )
    if isinstance(target, ast.Attribute):
        return f"{enclosing(parent, parents, ast.ClassDef)}.{target.attr}"
    if isinstance(target, ast.Name):
        function = parent
        while not isinstance(function, ast.FunctionDef):
            function = parents[function]
        for call in ast.walk(function):
            arguments = (
                [*call.args, *[k.value for k in call.keywords]]
                if isinstance(call, ast.Call)
                else []
            )
            if any(isinstance(value, ast.Name) and value.id == target.id for value in arguments):
                assert isinstance(call, ast.Call)
                return ast.unparse(call.func)
    return enclosing(parent, parents, ast.FunctionDef)


def enclosing(
    node: ast.AST, parents: dict[ast.AST, ast.AST], kind: type[ast.ClassDef | ast.FunctionDef]
) -> str:
    while not isinstance(node, kind):
        node = parents[node]
    return node.name


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the page: a lock and those that a thread may acquire while it holds it."""

    name: str
    then: tuple[str, ...]


def rows() -> list[Row]:
    """Read the table of the page."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            names = [re.findall(r"`([^`]+)`", cell) for cell in cells]
            found.append(Row(names[0][0], tuple(names[2])))
    return found


def reachable() -> dict[str, set[str]]:
    """Return all locks that may be acquired, directly or through others, while one is held."""
    then = {row.name: set(row.then) for row in rows()}
    for _ in then:
        for name, following in then.items():
            then[name] = following.union(*(then.get(each, set()) for each in following))
    return then


class Order:
    """The order in which threads acquire locks: pairs of one held and one acquired."""

    def __init__(self) -> None:
        self.pairs: set[tuple[str, str]] = set()
        self._held = threading.local()

    def acquired(self, lock: "RecordedLock") -> None:
        held = self._stack()
        if lock not in held:
            self.pairs |= {(other.name, lock.name) for other in held}
        held.append(lock)

    def released(self, lock: "RecordedLock") -> None:
        held = self._stack()
        del held[len(held) - 1 - held[::-1].index(lock)]

    def _stack(self) -> list["RecordedLock"]:
        if not hasattr(self._held, "locks"):
            self._held.locks = []
        locks: list[RecordedLock] = self._held.locks
        return locks


class RecordedLock:
    """A lock that reports when it is acquired and released."""

    def __init__(self, lock: Lock, name: str, order: Order) -> None:
        self._lock = lock
        self._order = order
        self.name = name

    def __enter__(self) -> bool:
        self._order.acquired(self)
        return self._lock.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.__exit__(kind, error, trace)
        self._order.released(self)


class RecordedCondition(RecordedLock):
    """A condition that reports when its lock is acquired and released; waiting holds no lock."""

    def __init__(self, condition: Condition, name: str, order: Order) -> None:
        super().__init__(condition, name, order)
        self._condition = condition

    def wait(self, timeout: float | None = None) -> bool:
        return self._condition.wait(timeout)

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        return self._condition.wait_for(predicate, timeout)

    def notify(self, n: int = 1) -> None:
        self._condition.notify(n)

    def notify_all(self) -> None:
        self._condition.notify_all()


class RecordingTasks:
    """Tasks of the system whose locks record the order in which they are acquired."""

    def __init__(self, tasks: Tasks, order: Order) -> None:
        self._tasks = tasks
        self._order = order
        self.caller_id = tasks.caller_id
        self.process_id = tasks.process_id
        self.at_exit = tasks.at_exit
        self.after_fork = tasks.after_fork

    def spawn(self, name: str, step: Callable[[], bool]) -> Task:
        return self._tasks.spawn(name, step)

    def run(self, name: str, steps: Steps[None], clock: Clock) -> Task:
        return self._tasks.run(name, steps, clock)

    def run_shared(
        self,
        name: str,
        steps: Steps[None],
        clock: Clock,
        wakeup: Callable[[], None],
        has_work: Callable[[], bool],
    ) -> Task:
        return self._tasks.run_shared(name, steps, clock, wakeup, has_work)

    def condition(self) -> Condition:
        return RecordedCondition(self._tasks.condition(), caller_name(), self._order)

    def lock(self) -> Lock:
        return RecordedLock(self._tasks.lock(), caller_name(), self._order)


def caller_name() -> str:
    """Name the lock that the caller's caller creates."""
    frame = sys._getframe(2)
    path, line = frame.f_code.co_filename, frame.f_lineno
    for site in sites():
        if site.path == path and site.first_line <= line <= site.last_line:
            return site.name
    return f"{path}:{line}"
