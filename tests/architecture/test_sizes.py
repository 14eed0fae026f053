"""Size limits of files and functions, and limits of structure that may only be lowered."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.architecture.structure import (
    Module,
    code_lines,
    modules,
    single_importer_modules,
    small_modules,
)

ROOT = Path(__file__).parents[2]
MAX_CODE_LINES = 400
MAX_COMPILED_LINES = 900
MAX_FUNCTION_LINES = 50

SOURCES = sorted((ROOT / "kclient").rglob("*.py")) + sorted((ROOT / "kclient").rglob("*.pyx"))
MODULES = [path for path in SOURCES if path.suffix == ".py"]


class Limits(NamedTuple):
    """Limits of a package: each number may only be lowered.

    Attributes:
        small: Modules of fewer than 40 lines.
        single_importer: Modules that one module imports.
        chains: Reads through two objects, ``a.b.c.d``.
    """

    small: int = 0
    single_importer: int = 0
    chains: int = 0


LIMITS = {
    "__main__.py": Limits(small=1),
    "admin": Limits(single_importer=8),
    "broker": Limits(single_importer=80),
    "cli": Limits(single_importer=10),
    "client": Limits(single_importer=3, chains=2),
    "common": Limits(small=2, single_importer=2),
    "consumer": Limits(single_importer=4),
    "errors.py": Limits(small=1),
    "journey": Limits(single_importer=4),
    "network": Limits(small=1, single_importer=1, chains=1),
    "producer": Limits(single_importer=9),
    "protocol": Limits(small=1, single_importer=20),
    "record": Limits(small=2, single_importer=3),
    "spark": Limits(single_importer=12, chains=1),
    "testing": Limits(single_importer=8, chains=1),
}


def package(module: Module) -> str:
    """Return the package of a module, or its own name at the top level."""
    return module.path.relative_to(ROOT / "kclient").parts[0]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_file_length() -> None:
    found = [
        f"{path.relative_to(ROOT)} has {lines} lines, expected at most {limit}"
        for path in SOURCES
        for lines, limit in [length_and_limit(path)]
        if lines > limit
    ]
    assert not found, "\n".join(found)


def length_and_limit(path: Path) -> tuple[int, int]:
    text = path.read_text()
    lines = len(text.splitlines())
    if path.suffix == ".pyx":  # a translation unit is one module
        return lines, MAX_COMPILED_LINES
    if lines > MAX_CODE_LINES:
        lines = code_lines(text, ast.parse(text))
    return lines, MAX_CODE_LINES


def test_function_length() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {length} lines"
        for path in MODULES
        for node in functions(path)
        for length in [function_length(node)]
        if length > MAX_FUNCTION_LINES
    ]
    assert not found, "\n".join(found)


def function_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    documented = ast.get_docstring(node, clean=False)
    last_line = node.body[-1].end_lineno or 0
    return last_line - node.lineno + 1 - (len(documented.splitlines()) if documented else 0)


def test_number_of_small_modules_and_chains_shrinks() -> None:
    found = [
        f"{name}: {len(counted)} {kind}, at most {limit}: {counted}"
        for name in sorted({package(module) for module in modules()})
        for kind, counted, limit in counts(name, LIMITS.get(name, Limits()))
        if len(counted) > limit
    ]
    assert not found, "\n".join(found)


def counts(name: str, limits: Limits) -> Iterator[tuple[str, list[str], int]]:
    small = [str(module.path) for module in small_modules() if package(module) == name]
    yield "small modules", small, limits.small
    single = [str(module) for module in single_importer_modules() if package(module) == name]
    yield "modules with a single importer", single, limits.single_importer
    chains = [
        str(each) for module in modules() if package(module) == name for each in module.chains
    ]
    yield "chains", chains, limits.chains


def test_limits_are_of_packages_of_kclient() -> None:
    assert set(LIMITS) <= {package(module) for module in modules()}
