"""Preemption of virtual tasks between any two statements, as threads are preempted.

By default a virtual task yields only at locks, files and waits. Modules that are imported after
`install` are compiled with a call before each statement; at random, the call switches to another
task. This exposes state that no lock guards.
"""

import ast
import builtins
import math
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

_NAME = "__give_way__"
_PACKAGES = ("producer", "consumer", "client", "admin", "network", "broker", "common.metrics")
_PREFIXES = tuple(f"kclient.{package}" for package in _PACKAGES)
_NEVER = 1 << 60


class Preemption:
    """Counts statements, and calls `give_way` after a random number of them.

    Attributes:
        probability: Probability of a switch at each statement.
        count: Number of switches.
    """

    def __init__(self, probability: float) -> None:
        self.probability = probability
        self.count = 0
        self._countdown = _NEVER
        self._random: Callable[[], float] = lambda: 0.5
        self._give_way: Callable[[], bool] = lambda: False

    def begin(self, random: Callable[[], float], give_way: Callable[[], bool]) -> None:
        """Start; `give_way` returns whether it switched."""
        self._random, self._give_way = random, give_way
        self._countdown = self._draw()

    def end(self) -> None:
        """Stop preempting."""
        self._countdown = _NEVER

    def statement(self) -> None:
        """Count a statement."""
        self._countdown -= 1
        if self._countdown <= 0:
            self._countdown = self._draw()
            self.count += self._give_way()

    def _draw(self) -> int:
        return 1 + int(math.log(1.0 - self._random()) / math.log(1.0 - self.probability))


class _CallBeforeEachStatement(ast.NodeTransformer):
    """Adds the call, within functions only."""

    def __init__(self) -> None:
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth and not isinstance(node, ast.ClassDef | ast.Lambda):
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and all(
                    isinstance(statement, ast.stmt) for statement in statements
                ):
                    setattr(node, name, _interleaved(statements))
        return node


def _interleaved(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for statement in statements:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and not isinstance(statement, ast.Global | ast.Nonlocal):
            call = ast.Expr(ast.Call(ast.Name(_NAME, ast.Load()), [], []))
            made.append(ast.copy_location(call, statement))
        made.append(statement)
    return made


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = _CallBeforeEachStatement().visit(ast.parse(self.get_data(path)))
        code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
        if not isinstance(code, CodeType):
            raise TypeError(f"{path}: got {type(code)} from the compiler")
        return code


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIXES):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.origin is not None and found.origin.endswith(".py"):
            found.loader = _Loader(name, found.origin)
        return found


def install(probability: float) -> Preemption:
    """Compile later imports with preemption.

    Raises:
        RuntimeError: A module was imported before.
    """
    early = sorted(name for name in sys.modules if name.startswith(_PREFIXES))
    if early:
        raise RuntimeError(f"imported before tasks could be made to change in it: {early}")
    made = Preemption(probability)
    setattr(builtins, _NAME, made.statement)
    sys.meta_path.insert(0, _Finder)
    return made
