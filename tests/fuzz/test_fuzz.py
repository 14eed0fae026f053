"""Each target over its corpus and over a second of new inputs; ``make fuzz`` goes on for longer."""

from pathlib import Path

import pytest

from tests.fuzz import corpus, seeded_engine
from tests.fuzz.session import Session
from tests.fuzz.targets import NAMES

NEW_SECONDS = 1.0
SEED = 1
MAX_CORPUS_BYTES = 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_no_input_does_harm(name: str, tmp_path: Path) -> None:
    session = Session(name, tmp_path)
    try:
        kept = corpus.load(name)
        for data in kept:
            session.check(data)
        inputs = session.inputs()
        mutate = session.target.mutate
        seeded_engine.fuzz(session.check, mutate, inputs, seconds=NEW_SECONDS, seed=SEED)
    finally:
        session.close()
    assert kept
    assert session.runs > len(kept)
    assert [path.read_text() for path in sorted(tmp_path.glob("finding-*.txt"))] == []


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in corpus.DIRECTORY.iterdir()) < MAX_CORPUS_BYTES
    assert {path.stem for path in corpus.DIRECTORY.iterdir()} == set(NAMES)
