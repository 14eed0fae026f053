"""Size limits of files and functions, and limits of structure that may only be lowered."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

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
    "admin": Limits(small=1, single_importer=7, chains=5),
    "broker": Limits(small=7, single_importer=43, chains=30),
    "cli": Limits(single_importer=11, chains=4),
    "client": Limits(small=1, single_importer=7, chains=11),
    "common": Limits(small=4, single_importer=6, chains=3),
    "consumer": Limits(small=3, single_importer=9, chains=27),
    "errors.py": Limits(small=1),
    "network": Limits(small=1, single_importer=4, chains=4),
    "producer": Limits(small=1, single_importer=13, chains=9),
    "protocol": Limits(small=7, single_importer=3, chains=1),
    "record": Limits(small=2, single_importer=3),
    "spark": Limits(single_importer=15, chains=16),
    "testing": Limits(small=2, single_importer=12, chains=27),
}


def package(module: Module) -> str:
    """Return the package of a module, or its own name at the top level."""
    return module.path.relative_to(ROOT / "kclient").parts[0]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_length(path: Path) -> None:
    if path.suffix == ".pyx":  # a translation unit is one module
        assert len(path.read_text().splitlines()) <= MAX_COMPILED_LINES
    else:
        text = path.read_text()
        assert code_lines(text, ast.parse(text)) <= MAX_CODE_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_function_length(path: Path) -> None:
    for node in functions(path):
        documented = ast.get_docstring(node, clean=False)
        last_line = node.body[-1].end_lineno or 0
        length = last_line - node.lineno + 1 - (len(documented.splitlines()) if documented else 0)
        assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize("name", sorted({package(module) for module in modules()}))
def test_number_of_small_modules_and_chains_shrinks(name: str) -> None:
    limits = LIMITS.get(name, Limits())
    small = [str(module.path) for module in small_modules() if package(module) == name]
    assert len(small) <= limits.small, f"{len(small)} of {limits.small}: {small}"
    single = [str(each.path) for each in single_importer_modules() if package(each) == name]
    assert len(single) <= limits.single_importer, f"{len(single)} of {limits[1]}: {single}"
    chains = [
        str(each) for module in modules() if package(module) == name for each in module.chains
    ]
    assert len(chains) <= limits.chains, f"{len(chains)} of {limits.chains}: {chains}"


def test_limits_are_of_packages_of_kclient() -> None:
    assert set(LIMITS) <= {package(module) for module in modules()}
