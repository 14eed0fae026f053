r"""The command line of the run on several brokers.

Three brokers of Apache Kafka and a controller run under producers, groups of consumers,
transactions and an admin client. While they run, leaders move, replicas are reassigned, brokers
stop, are killed and suspended, two of three are down at once, group coordinators move, and a topic
is deleted and created again. At the end another client reads the topics, and every record is
compared with the outcome that its producer reported.

    python -m integration.cluster_soak --minutes 10 --seed 1
"""

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from integration.cluster_soak.campaign import Campaign
from integration.cluster_soak.plan import Plan
from integration.cluster_soak.report import lines_of
from integration.harness.discovery import NEWEST

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.cluster_soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", default=NEWEST, help="of Apache Kafka")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=30, help="records a second of each writer")
    parser.add_argument("--seed", type=int, help="of the events; without one, any")
    parser.add_argument("--keep", action="store_true", help="keep logs, journals and data")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    chosen = arguments(given)
    seed = random.SystemRandom().randrange(1_000_000) if chosen.seed is None else chosen.seed
    started = time.monotonic()

    def report(what: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {what}", flush=True)

    report(f"seed {seed}")
    directory = Path(tempfile.mkdtemp(prefix="kclient-cluster-soak-"))
    # Clients report every connection that fails, and there are many.
    logging.basicConfig(filename=directory / "clients.log", format=_LOG_FORMAT)
    plan = Plan(minutes=chosen.minutes, seed=seed, rate=chosen.rate)
    try:
        outcome = Campaign(directory, chosen.version, plan, report).run()
    except BaseException:
        print(f"logs, journals and data are in {directory}", flush=True)
        raise
    for line in lines_of(outcome):
        print(line)
    for fault in outcome.faults:
        print(f"FAULT: {fault}")
    if outcome.faults or chosen.keep:
        print(f"logs, journals and data are in {directory}")
    else:
        shutil.rmtree(directory)
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
