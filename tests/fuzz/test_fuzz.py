"""Each target over its seeds, its corpus and new inputs for a second; ``make fuzz`` runs longer."""

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
        inputs = session.inputs()
        for data in inputs:
            session.check(data)
        mutate = session.target.mutate
        seeded_engine.fuzz(session.check, mutate, inputs, seconds=NEW_SECONDS, seed=SEED)
    finally:
        session.close()
    assert corpus.load(name)
    assert session.runs > len(inputs)
    assert [path.read_text() for path in sorted(tmp_path.glob("finding-*.txt"))] == []


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in corpus.DIRECTORY.iterdir()) < MAX_CORPUS_BYTES
    assert {path.stem for path in corpus.DIRECTORY.iterdir()} == set(NAMES)
