"""Counts of the structure of kclient: sizes of modules, importers and attribute chains.

``python -m tests.architecture.structure`` prints them for each package; ``--list`` names the
modules and lines behind the counts.
"""

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "kclient"
SMALL_LINES = 40
SINGLE_IMPORTER_LINES = 60
# a.b.c.d: two objects are read on the way to the third.
LONG_CHAIN = 3


@dataclass(frozen=True, slots=True)
class Chain:
    """An expression that reads an attribute of an attribute of an object's attribute."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Module:
    """A module with its lines, the modules it imports and its attribute chains."""

    path: Path
    lines: int
    code_lines: int
    imports: frozenset[str]
    chains: tuple[Chain, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_package(self) -> bool:
        """Whether it is an ``__init__``."""
        return self.path.stem == "__init__"

    @property
    def folder(self) -> str:
        """The path of its folder below the root."""
        return str(self.path.parent.relative_to(ROOT))


@cache
def modules() -> tuple[Module, ...]:
    """Read all modules of the package."""
    return tuple(read(path) for path in sorted((ROOT / PACKAGE).rglob("*.py")))


def read(path: Path) -> Module:
    """Count what one module has."""
    text = path.read_text()
    tree = ast.parse(text)
    return Module(
        path,
        len(text.splitlines()),
        code_lines(text, tree),
        frozenset(imported_names(tree)),
        tuple(chains(path, tree)),
    )


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines that are neither blank nor comment nor docstring."""
    lines: set[int] = set()
    ignored = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Name the modules of the package that are imported, and what is imported from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(PACKAGE))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def chains(path: Path, tree: ast.Module) -> Iterator[Chain]:
    """Find reads through several objects, ``self.a.b.c``; not those of modules and classes."""
    known = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            inner.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            depth = 0
            root: ast.expr = node
            while isinstance(root, ast.Attribute):
                depth, root = depth + 1, root.value
            if depth >= LONG_CHAIN and isinstance(root, ast.Name) and root.id not in known:
                yield Chain(path, node.lineno, ast.unparse(node))


def importers() -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found: dict[str, set[str]] = {module.name: set() for module in modules()}
    for module in modules():
        for name in module.imports & found.keys():
            if name != module.name:
                found[name].add(module.name)
    return found


def small_modules() -> list[Module]:
    """Return the modules of fewer lines than a module should have."""
    return [module for module in modules() if not module.is_package and module.lines < SMALL_LINES]


def single_importer_modules() -> list[Module]:
    """Return the modules that one module imports."""
    imported_by = importers()
    return [
        module
        for module in modules()
        if not module.is_package and len(imported_by[module.name]) == 1
    ]


def rows() -> Iterator[tuple[str, int, int, int, float, int, int, int]]:
    """Count each package and the whole."""
    small, single = set(small_modules()), set(single_importer_modules())
    names = sorted({module.path.relative_to(ROOT / PACKAGE).parts[0] for module in modules()})
    for name in (*names, ""):
        inside = [
            module
            for module in modules()
            if not name or module.path.relative_to(ROOT / PACKAGE).parts[0] == name
        ]
        yield (
            name or "all",
            len(inside),
            sum(module.lines for module in inside),
            sum(module.code_lines for module in inside),
            statistics.median(module.lines for module in inside),
            len(small.intersection(inside)),
            len(single.intersection(inside)),
            sum(len(module.chains) for module in inside),
        )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name modules and lines")
    heads = ("package", "files", "lines", "code", "median", "< 40", "one importer", "chains")
    print(("{:>16}" * len(heads)).format(*heads))
    for row in rows():
        print(("{:>16}" * len(row)).format(*row))
    if parser.parse_args(arguments).list:
        for title, found in (
            ("small", small_modules()),
            ("one importer", single_importer_modules()),
        ):
            for module in found:
                print(f"{title}: {module.path.relative_to(ROOT)} ({module.lines} lines)")
        for module in modules():
            for chain in module.chains:
                print(f"chain: {chain}")


if __name__ == "__main__":
    main(sys.argv[1:])
