r"""The command line of the soak.

Writers and groups of consumers use a broker that is restarted repeatedly, by SIGTERM and by
kill -9 in turn, while members join, leave, stall and are killed. No acknowledged record may be
lost, duplicated or out of order; no committed record may be read again; no client may stop; and
the memory of broker and clients may not grow.

    python -m integration.soak --minutes 20
    python -m integration.soak --broker kafka --rounds 20 --between 10
    python -m integration.soak --broker kafka-cluster --rounds 10 --between 15
    python -m integration.soak --group kclient,kafka-python,confluent-kafka,aiokafka \
        --group cooperative-sticky+static:confluent-kafka,kafka-python
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from integration.harness.discovery import NEWEST
from integration.soak.brokers import ApacheKafka, Brokers, CompanionBroker
from integration.soak.crowd import Cast
from integration.soak.report import faults_of, lines_of
from integration.soak.soak import Plan, Soak


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--broker", choices=["companion", "kafka", "kafka-cluster"], default="companion"
    )
    parser.add_argument("--version", default=NEWEST, help="of Apache Kafka")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, help="restarts; goes before the minutes")
    parser.add_argument("--between", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--member-events", type=float, default=8.0, metavar="SECONDS")
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--rate", type=int, default=500, help="records a second of each writer")
    parser.add_argument(
        "--group",
        action="append",
        metavar="[STRATEGY][+static]:CLIENT,CLIENT…",
        help="a group's members: kclient, kafka-python, aiokafka, confluent-kafka, franz-go (needs "
        "Go); may be repeated",
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(given)


def plan_of(chosen: argparse.Namespace) -> Plan:
    rounds = chosen.rounds or max(1, round(chosen.minutes * 60 / chosen.between) - 1)
    groups = chosen.group or ["kclient,kclient,kclient"] * 2
    return Plan(
        rounds=rounds,
        between_s=chosen.between,
        member_event_s=chosen.member_events,
        writers=chosen.writers,
        rate=chosen.rate,
        groups=[Cast.parse(group) for group in groups],
        in_flight=1 if chosen.broker == "kafka" else 5,
        seed=chosen.seed,
    )


def brokers_of(chosen: argparse.Namespace, directory: Path) -> Brokers:
    if chosen.broker == "companion":
        return CompanionBroker(directory / "data")
    return ApacheKafka(directory, chosen.version, 3 if chosen.broker == "kafka-cluster" else 1)


def main(given: Sequence[str]) -> int:
    chosen = arguments(given)
    started = time.monotonic()

    def log(what: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {what}", flush=True)

    directory = Path(tempfile.mkdtemp(prefix="kclient-soak-"))
    try:
        with brokers_of(chosen, directory) as brokers:
            outcome = Soak(brokers, directory, plan_of(chosen), log).run()
    except BaseException:
        print(f"logs, journals and data are in {directory}", flush=True)
        raise
    shutil.rmtree(directory)
    for line in lines_of(outcome):
        print(line)
    faults = faults_of(outcome)
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
