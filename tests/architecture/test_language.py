"""Sources and pages contain no word of the style page's list."""

import re

import pytest

from tests.architecture.language import AREAS, PAGES, ROOT, WORDS, occurrences, replacement, sources

PAGE = ROOT / "docs" / "contributing" / "style.md"


@pytest.mark.parametrize("area", [*AREAS, *PAGES])
def test_sources_and_pages_contain_no_listed_word(area: str) -> None:
    files = sources((area,))
    assert files, f"{area}: contains no source or page"
    assert [str(found) for path in files for found in occurrences(path)] == []


def page_rows() -> dict[str, str]:
    """Return each word of the style page's list, with its replacement."""
    table = PAGE.read_text().split("## Words that are not used")[1]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)[1:]
    return {word: instead for words, instead in rows for word in words.split(", ")}


def test_style_page_lists_each_pattern() -> None:
    words = page_rows()
    missing = [
        pattern
        for pattern in WORDS
        if not any(re.fullmatch(pattern, word, re.IGNORECASE) for word in words)
    ]
    assert missing == []


@pytest.mark.parametrize("word", page_rows())
def test_style_page_and_list_name_the_same_replacement(word: str) -> None:
    assert replacement(word) == page_rows()[word]
