"""Classes, methods and files that the pages name."""

import builtins
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALL_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXPLANATIONS = sorted((ROOT / "docs" / "explanation").glob("*.md"))
NAME = re.compile(r"`([A-Z][a-z]+[A-Z]\w*)(?:\.(\w+))?(?:\([^`]*\))?`")
FILE = re.compile(r"`((?:kclient|tests|integration)/[\w/.]+)`")


SOURCES = [path.read_text() for path in (ROOT / "kclient").rglob("*.py")]
# Python's, and the trigger of Spark.
CLASSES = {*dir(builtins), "AvailableNow"} | {
    name for text in SOURCES for name in re.findall(r"^class (\w+)", text, re.MULTILINE)
}
METHODS = {name for text in SOURCES for name in re.findall(r"^    def (\w+)", text, re.MULTILINE)}


@pytest.mark.parametrize("page", EXPLANATIONS, ids=lambda page: page.stem)
def test_named_classes_and_methods_exist(page: Path) -> None:
    named = NAME.findall(page.read_text())
    assert [name for name, _ in named if name not in CLASSES] == []
    assert [member for _, member in named if member and member not in METHODS] == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    named = FILE.findall(page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
