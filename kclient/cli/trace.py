"""``kclient trace``: sends records and shows how long they are in each stage.

Without --bootstrap-server it starts a companion broker of its own, in another process, and the
stages in the broker are exact. Any other broker counts as one stage.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from kclient.cli.common_options import key_values, positive_number, seconds, whole_number
from kclient.cli.processes import start_broker
from kclient.common.arguments import LONGEST_S
from kclient.common.errors import KafkaError
from kclient.journey import Journey, Report, as_svg, as_table
from kclient.producer.producer import Producer

_WARM_UP = 50
"""Records that are not traced: the first ones wait for connections and metadata."""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient trace`` to the command line."""
    parser = commands.add_parser(
        "trace", help="show the time of each stage of a record", description=__doc__
    )
    parser.add_argument(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        help="brokers to connect to; by default a companion broker is started",
    )
    parser.add_argument("--topic", default="kclient-trace", help="topic (default: %(default)s)")
    parser.add_argument(
        "--records", type=whole_number(1), default=1000, help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--rate",
        type=positive_number(1e6, "records per second"),
        default=500.0,
        metavar="R",
        help="records per second (default: %(default)g)",
    )
    parser.add_argument(
        "--size", type=whole_number(0), default=100, help="bytes of a value (default: %(default)s)"
    )
    parser.add_argument("--acks", default="all", choices=("all", "1", "0"), help="acks")
    parser.add_argument("--linger-ms", type=whole_number(0), default=5, help="linger.ms")
    parser.add_argument(
        "--sample",
        type=seconds(LONGEST_S),
        metavar="SECONDS",
        help="trace one record at this mean interval; by default each record is traced",
    )
    parser.add_argument(
        "--timeout",
        type=seconds(LONGEST_S),
        default=30.0,
        metavar="SECONDS",
        help="fail if the cluster does not respond within this time (default: %(default)g)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any producer option by its dotted name; may be repeated",
    )
    parser.add_argument("--json", type=_output, metavar="FILE", help="write the statistics as JSON")
    parser.add_argument("--svg", type=_output, metavar="FILE", help="write a picture")
    parser.set_defaults(run=run)


def _output(given: str) -> Path:
    """Check before the records are sent that a file can be written after it."""
    path = Path(given)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"got {given!r}, expected a file that can be written")
    return path


def run(options: argparse.Namespace) -> int:
    """Trace records and show the result; return 0 if every traced record was acknowledged."""
    if options.bootstrap_server is not None:
        journey = _trace(options, options.bootstrap_server)
    else:
        with tempfile.TemporaryDirectory(prefix="kclient-trace-") as directory:
            journey = _trace_with_own_broker(options, Path(directory))
    report = journey.report()
    if not report.sections:
        raise KafkaError("no traced record was acknowledged")
    print(as_table(report), end="")
    _write_files(options, report)
    return 1 if report.sections[0].failed else 0


def _trace_with_own_broker(options: argparse.Namespace, directory: Path) -> Journey:
    requests = directory / "requests.log"
    broker, bootstrap = start_broker(
        directory / "data", directory / "broker.log", "--request-log", str(requests)
    )
    with broker:
        journey = _trace(options, bootstrap)
    with requests.open(encoding="utf-8") as lines:  # complete when the broker has ended
        journey.broker_times.read_log(lines)
    return journey


def _trace(options: argparse.Namespace, bootstrap: str) -> Journey:
    with Producer(_producer_options(options, bootstrap)) as producer:
        value = bytes(options.size)
        for _ in range(_WARM_UP):
            producer.send(options.topic, value).result(options.timeout)
        with Journey(producer, interval=options.sample or 0) as journey:
            _send(producer, options, value)
            journey.close(options.timeout)
    return journey


def _producer_options(options: argparse.Namespace, bootstrap: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": f"kclient-trace-{os.getpid()}",
        "acks": options.acks,
        "linger.ms": options.linger_ms,
        "max.block.ms": round(options.timeout * 1000),
        **({} if options.acks == "all" else {"enable.idempotence": False}),
        **key_values("--config", options.config),
    }


def _send(producer: Producer[Any, Any], options: argparse.Namespace, value: bytes) -> None:
    """Send the records at the rate; one that is late is sent at once."""
    due = time.monotonic()
    for _ in range(options.records):
        wait = due - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        producer.send(options.topic, value)
        due += 1.0 / options.rate


def _write_files(options: argparse.Namespace, report: Report) -> None:
    if options.json is not None:
        names = ("topic", "records", "rate", "size", "acks", "linger_ms")
        fields = {name: getattr(options, name) for name in names} | report.as_fields()
        options.json.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    if options.svg is not None:
        options.svg.write_text(as_svg(report), encoding="utf-8")
