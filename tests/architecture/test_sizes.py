"""Size limits of files, functions and classes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.structure import code_lines

ROOT = Path(__file__).parents[2]
MAX_CODE_LINES = 400
MAX_COMPILED_LINES = 900
MAX_FUNCTION_LINES = 50
MAX_CLASS_METHODS = 25
# One method for each call of the public interface.
MANY_CALLS = {"Consumer", "ConsumerCore"}
MAX_CONSTRUCTOR_PARAMETERS = 8

SOURCES = sorted((ROOT / "kclient").rglob("*.py")) + sorted((ROOT / "kclient").rglob("*.pyx"))
MODULES = [path for path in SOURCES if path.suffix == ".py"]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_length(path: Path) -> None:
    if path.suffix == ".pyx":  # a translation unit is one module
        assert len(path.read_text().splitlines()) <= MAX_COMPILED_LINES
    else:
        text = path.read_text()
        assert code_lines(text, ast.parse(text)) <= MAX_CODE_LINES


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
            limit = 2 * MAX_CLASS_METHODS if node.name in MANY_CALLS else MAX_CLASS_METHODS
            assert len(methods) <= limit, f"{node.name} has {len(methods)} methods"
