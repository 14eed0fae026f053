"""Size limits of files, functions and classes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 50
MAX_CLASS_METHODS = 25
MAX_CONSTRUCTOR_PARAMETERS = 8

SOURCES = sorted((ROOT / "kclient").rglob("*.py")) + sorted((ROOT / "kclient").rglob("*.pyx"))
MODULES = [path for path in SOURCES if path.suffix == ".py"]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_length(path: Path) -> None:
    # A compiled module is one translation unit by design and has its own limit.
    limit = 900 if path.suffix == ".pyx" else MAX_FILE_LINES
    assert len(path.read_text().splitlines()) <= limit


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_and_classes(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False)
            body_lines = node.body[-1].end_lineno or 0
            length = (
                body_lines - node.lineno + 1 - (len(documented.splitlines()) if documented else 0)
            )
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"
            if node.name == "__init__":
                count = len(node.args.args) + len(node.args.kwonlyargs) - 1
                assert count <= MAX_CONSTRUCTOR_PARAMETERS, f"{node.lineno}: {count} parameters"
        elif isinstance(node, ast.ClassDef):
            methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            assert len(methods) <= MAX_CLASS_METHODS, f"{node.name} has {len(methods)} methods"
