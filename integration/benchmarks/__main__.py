"""The command line of the benchmark."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from integration.benchmarks.cases import BLOCKS, Block
from integration.benchmarks.report import head, summary, table
from integration.benchmarks.results import block_results, merged, setup
from integration.benchmarks.runner import Runner, Settings
from integration.benchmarks.targets import SINK, target
from integration.harness.discovery import NEWEST, given_bootstrap
from tests.support.checks.waiting import HarnessError

_PROJECT = Path(__file__).parents[2]


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.benchmarks",
        description="Compares Python clients on this machine, and with the goals.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="blocks with these in the title")
    parser.add_argument("--list", action="store_true", help="show the blocks and their cases")
    parser.add_argument("--sink", action="store_true", help="the sink broker instead of Kafka")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual records")
    parser.add_argument("--quick", action="store_true", help="three short rounds, for a look")
    parser.add_argument("--acks", default="all", choices=["all", "1"])
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--batch-bytes", type=int, default=256 << 10)
    parser.add_argument("--version", default=NEWEST, help="of Apache Kafka")
    parser.add_argument("--kclient", type=Path, default=_PROJECT, help="checkout to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the measurements there")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> None:
    chosen = arguments(given)
    blocks = [block for block in BLOCKS if _takes_part(block, chosen)]
    if not blocks:
        titles = ", ".join(block.title for block in BLOCKS)
        raise HarnessError(f"only: got {chosen.only}, expected parts of {titles}")
    if chosen.list:
        print("\n".join(f"{block.title}: {_names(block)}" for block in blocks))
        return
    settings = Settings(
        rounds=3 if chosen.quick else chosen.rounds,
        scale=0.3 * chosen.scale if chosen.quick else chosen.scale,
        acks=chosen.acks,
        linger_ms=chosen.linger_ms,
        batch_bytes=chosen.batch_bytes,
        tree=chosen.kclient.resolve(),
    )
    measure(blocks, settings, chosen)


def measure(blocks: Sequence[Block], settings: Settings, chosen: argparse.Namespace) -> None:
    """Runs the blocks and prints each as soon as it is measured."""
    started = time.monotonic()
    done = []
    with target(SINK if chosen.sink else chosen.version) as kafka:
        common = setup(kafka.version, settings)
        print(head(common), flush=True)
        runner = Runner(kafka, settings, _progress)
        runner.check([cell for block in blocks for cell in block.cells])
        for block in blocks:
            done.append(block_results(block, runner.measure(block), kafka.version))
            _progress("")
            print(f"\n{table(done[-1])}", flush=True)
            if chosen.json:
                chosen.json.write_text(json.dumps(merged(chosen.json, common, done[-1]), indent=1))
    print(f"\n{summary(done)} {time.monotonic() - started:.0f} s in all.")


def _takes_part(block: Block, chosen: argparse.Namespace) -> bool:
    named = not chosen.only or any(text in block.title for text in chosen.only)
    is_own = not chosen.sink and given_bootstrap() is None
    return named and (chosen.sink or not block.needs_sink) and (is_own or not block.needs_own_kafka)


def _names(block: Block) -> str:
    return ", ".join(case.name for case in block.cases)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HarnessError as error:
        sys.exit(f"\n{error}")
