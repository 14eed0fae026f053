"""Code blocks of the README and the pages, with the comments that say how they are tested.

``<!-- code: tests/docs/test_readme.py -->`` names the test that runs the block. Directly before a
block it is for this block, elsewhere in a page for all blocks without their own comment.
``<!-- code: not run, REASON -->`` excludes a block. A block without a comment runs by itself.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"^(?:<!-- code: (?P<note>[^\n]*?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)```",
    re.DOTALL | re.MULTILINE,
)
_PAGE_NOTE = re.compile(r"^<!-- code: ([^\n]*?) -->\n(?!```)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A code block of a page.

    Attributes:
        page: The page.
        line: Line of the page that the code begins after.
        language: Language of the fence.
        code: The code.
        note: How the block is tested, from its comment or the page's; None if it runs by itself.
    """

    page: Path
    line: int
    language: str
    code: str
    note: str | None


def code_blocks(page: Path) -> list[CodeBlock]:
    """Return the code blocks of a page in their order."""
    text = page.read_text()
    page_note = _PAGE_NOTE.search(text)
    default = page_note.group(1) if page_note is not None else None
    return [
        CodeBlock(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["code"],
            found["note"] or default,
        )
        for found in _BLOCK.finditer(text)
    ]


def blocks(page: Path, language: str) -> dict[str, list[str]]:
    """Return the code of a language by the heading above it."""
    found: dict[str, list[str]] = defaultdict(list)
    for section in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        for block in _BLOCK.finditer(text):
            if block["language"] == language:
                found[heading].append(block["code"])
    return found


def all_blocks(page: Path, language: str) -> list[str]:
    """Return the code of a language in its order."""
    return [block.code for block in code_blocks(page) if block.language == language]
