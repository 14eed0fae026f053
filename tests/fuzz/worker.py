"""Worker process that fuzzes one target; ``python -m tests.fuzz`` starts it."""

import argparse
import atexit
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.session import Session


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--engine", choices=("atheris", "seeded"), required=True)
    _work(parser.parse_args())


def _work(options: argparse.Namespace) -> None:
    if options.engine == "seeded":
        _fuzz_seeded(options, _session(options))
        return
    from tests.fuzz import atheris_engine  # noqa: PLC0415 - not installed everywhere

    with atheris_engine.instrumenting():
        session = _session(options)
    _fuzz_guided(options, session)


def _session(options: argparse.Namespace) -> "Session":
    # Imported here, since the engine instruments modules while they are imported.
    from tests.fuzz.session import Session  # noqa: PLC0415

    session = Session(options.target, options.directory)
    atexit.register(session.close)
    return session


def _fuzz_seeded(options: argparse.Namespace, session: "Session") -> None:
    from tests.fuzz import seeded_engine  # noqa: PLC0415 - late as well

    runs = seeded_engine.fuzz(
        session.check,
        session.target.mutate,
        session.inputs(),
        seconds=options.seconds,
        seed=options.seed,
    )
    print(f"runs: {runs}")  # noqa: T201 - read by the parent


def _fuzz_guided(options: argparse.Namespace, session: "Session") -> None:
    from tests.fuzz import atheris_engine  # noqa: PLC0415 - not installed everywhere
    from tests.fuzz.oracle import input_name  # noqa: PLC0415 - late as well

    kept = options.directory / "corpus"
    kept.mkdir(exist_ok=True)
    for data in session.inputs():
        (kept / input_name(data)).write_bytes(data)
    atheris_engine.fuzz(
        session.check, session.target.mutate, kept, seconds=options.seconds, seed=options.seed
    )


if __name__ == "__main__":
    main()
