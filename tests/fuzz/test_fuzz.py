"""Each fuzz target with its seeds, its corpus and some new inputs; ``make fuzz`` runs longer."""

from pathlib import Path

import pytest

from tests.fuzz import corpus, seeded_engine
from tests.fuzz.session import Session
from tests.fuzz.targets import NAMES

NEW_INPUTS = 50
SEED = 1
MAX_CORPUS_BYTES = 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_target_accepts_or_rejects_each_input(name: str, tmp_path: Path) -> None:
    session = Session(name, tmp_path)
    try:
        inputs = session.inputs()
        for data in inputs:
            session.check(data)
        mutate = session.target.mutate
        seeded_engine.fuzz(session.check, mutate, inputs, seed=SEED, limit=NEW_INPUTS)
    finally:
        session.close()
    assert corpus.load(name)
    assert session.runs == len(inputs) + NEW_INPUTS
    assert [path.read_text() for path in sorted(tmp_path.glob("finding-*.txt"))] == []


def test_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in corpus.DIRECTORY.iterdir()) < MAX_CORPUS_BYTES
    assert {path.stem for path in corpus.DIRECTORY.iterdir()} == set(NAMES)
