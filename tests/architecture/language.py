"""The word list of docs/contributing/style.md, and a search for its words in sources and pages.

``python -m tests.architecture.language [PATH …]`` prints each occurrence with its file and line.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
AREAS = ("kclient", "tests", "integration", "examples", "docs")
PAGES = ("README.md", "CHANGELOG.md", "SECURITY.md")

# Regular expression of the word -> what the terms of Kafka's documentation have instead.
WORDS = {
    r"(told|tells?|telling)": "report, return, notify, register",
    r"(no|some|any)body": "the caller, the application, no thread, another client",
    r"whoever": "the caller, the thread that",
    r"answer(s|ed|ing)?": "response, respond, return",
    r"anew": "again, restart, recreate",
    r"stands?": "is, is at, is stored",
    r"besides?": "next to, in addition to",
    r"mend(s|ed|ing)?": "reset, repair, recover",
    r"for ever": "without limit, indefinitely",
    r"in vain": "without result, fails",
    r"in the dark": "with unknown outcome",
    r"(let(s|ting)?|part(s|ing)?) (go|with)( of)?": "release, discard",
    r"(does|no|do) harm": "is harmless, is idempotent, has no effect",
    r"in words": "describe, as text",
    r"troubles?": "error, failure, last_error",
    r"surely": "always",
    r"rooms?": "package",
    r"knock(s|ed)?": "retry, connect to",
    r"to and fro": "back and forth",
    r"wish(es|ed)?": "request, option, preference",
    r"seat(s|ed)?": "lock",
    r"disturb(s|ed|ing)?": "invalidate, interrupt",
    r"hear(s|d)?": "receive",
    r"said": "stated, reported",
    r"honest(ly)?": "correct, valid",
    r"so often": "at this interval",
    r"begin of": "start of, beginning of",
    r"(goes|go|went|going) on": "continues",
    r"look(s|ed|ing)? after": "runs, maintains, drives",
    r"(strangers?|whatsoever|hither|thither|thereof|lest|erstwhile)": "a Kafka term",
    r"at the latest moment": "as late as possible",
    r"of no use": "unusable",
    r"in good time": "before the deadline",
    r"bad days?": "failures",
    r"(sit|sits|sat) (down|up)": "acquire",
    r"(take|takes|took|taken) in": "accept, process, add",
    r"(hand|hands|handed|handing) out": "return",
    r"by heart": "cached",
    r"in(to)? somebody": "caller",
    r"comes? true": "is completed",
    r"keepers?": "owner, registry",
    r"grow(s|n)? up": "a Kafka term",
    r"(pretend|pretends|pretended)": "simulate, fake",
}
PATTERN = re.compile(r"\b(" + "|".join(WORDS) + r")\b", re.IGNORECASE)
# A module's docstring begins with the noun that the module is.
OPENING = re.compile(r"(What|Who|Where|Which|How|When|Whether|Let|Says?|Tells?)\b")
# Names that are quoted as they are: a stage of a record's journey.
QUOTED: tuple[str, ...] = ("handed out",)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A word of the list, and the line it is in."""

    path: Path
    line: int
    word: str
    text: str

    def __str__(self) -> str:
        place = f"{self.path.relative_to(ROOT)}:{self.line}"
        return f"{place}: {self.word!r} (use {replacement(self.word)}): {self.text}"


def replacement(word: str) -> str:
    """Return what the style page has instead of the word."""
    for pattern, instead in WORDS.items():
        if re.fullmatch(pattern, word, re.IGNORECASE):
            return instead
    return "the noun that the module is"


def sources(areas: tuple[str, ...] = (*AREAS, *PAGES)) -> list[Path]:
    """Return the files whose language is checked."""
    found: list[Path] = []
    for area in areas:
        path = (ROOT / area).resolve()
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in files if file.suffix in {".py", ".pyx", ".pxd", ".md"}]
    return found


def occurrences(path: Path) -> Iterator[Occurrence]:
    """Find the words in a file: comments, strings and names of a source, the prose of a page."""
    if path == Path(__file__).resolve() or path.name == "style.md":
        return
    texts = page_texts(path) if path.suffix == ".md" else source_texts(path)
    for line, text in texts:
        for word in listed_words(text):
            yield Occurrence(path, line, word, text.strip()[:100])
    if path.suffix == ".py":
        opening = ast.get_docstring(ast.parse(path.read_text()))
        if opening and (first := OPENING.match(opening)):
            yield Occurrence(path, 1, first.group(), opening.splitlines()[0])


@cache  # most texts are names, which occur often
def listed_words(text: str) -> tuple[str, ...]:
    """Return the words of the list in a text or name."""
    words = without_quotations(as_words(text) if text.isidentifier() else text)
    return tuple(match.group() for match in PATTERN.finditer(words))


def without_quotations(text: str) -> str:
    for quoted in QUOTED:
        text = text.replace(quoted, "")
    return text


def as_words(name: str) -> str:
    """Split an identifier at underscores and capitals."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.replace("_", " ").strip())


def source_texts(path: Path) -> Iterator[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    for token in tokens:
        if token.type in {tokenize.COMMENT, tokenize.STRING, tokenize.NAME} or (
            tokenize.tok_name[token.type] == "FSTRING_MIDDLE"
        ):
            for number, text in enumerate(token.string.splitlines()):
                yield token.start[0] + number, text


def page_texts(path: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(path.read_text().splitlines(), 1)


def main(arguments: list[str]) -> int:
    count = 0
    for path in sources(tuple(arguments) or (*AREAS, *PAGES)):
        for occurrence in occurrences(path):
            count += 1
            print(occurrence)
    print(f"{count} occurrences")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
