"""The command line: ``python -m examples.flights_pipeline --help``."""

import argparse
import sys
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from examples.flights_pipeline.pipeline import run
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from kclient.errors import KafkaError

MISMATCH, FAILED, INTERRUPTED = 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline; return 0 if every figure is right, 1 if one is not, 2 if it failed."""
    settings = parse(arguments)
    try:
        result = run(settings)
    except KeyboardInterrupt:
        print("\ninterrupted: query, session and broker are stopped", file=sys.stderr)
        return INTERRUPTED
    except (KafkaError, PySparkException, Py4JError, OSError) as error:
        print(f"flights_pipeline: {error}", file=sys.stderr)
        return FAILED
    return 0 if result.matches else MISMATCH


def parse(arguments: list[str] | None) -> PipelineSettings:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights_pipeline",
        description="Flights through Kafka and Spark to a report whose figures are checked.",
    )
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="a Kafka to use; without it the companion broker is started for the run",
    )
    parser.add_argument(
        "--security",
        type=str.lower,
        choices=["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"],
        default=PipelineSettings().security,
        help="security protocol of the companion broker (default: %(default)s)",
    )
    parser.add_argument(
        "--master",
        default=PipelineSettings().master,
        help="local[2] or spark://host:port (default: %(default)s)",
    )
    parser.add_argument(
        "--flights", type=int, metavar="N", help="only N flights, spread over the year"
    )
    parser.add_argument("--report", type=Path, metavar="FILE.html", help="file of the report")
    parser.add_argument(
        "--prefix", default="", help="prefix of the names of topics and group, for another run"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="URI",
        help="for a cluster: a new directory that all its hosts share",
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting"
    )
    options = parser.parse_args(arguments)
    pairs = [str(pair).partition("=") for pair in options.conf]
    if any(not (key and separator) for key, separator, _ in pairs):
        parser.error(f"--conf: got {options.conf}, expected KEY=VALUE")
    if options.flights is not None and options.flights < 1:
        parser.error(f"--flights: got {options.flights}, expected a whole number >= 1")
    if options.bootstrap is not None and options.security != PipelineSettings().security:
        parser.error(f"--security: got {options.security} with --bootstrap, expected one of them")
    return PipelineSettings(
        bootstrap=options.bootstrap,
        security=options.security,
        master=options.master,
        flights=options.flights,
        report=options.report,
        prefix=options.prefix,
        checkpoint=options.checkpoint,
        conf={key: value for key, _, value in pairs},
    )


if __name__ == "__main__":
    sys.exit(main())
