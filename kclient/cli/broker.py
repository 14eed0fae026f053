"""``kclient broker``: runs one broker until SIGTERM or SIGINT."""

import argparse
import resource
import signal
from contextlib import ExitStack
from pathlib import Path

from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.cli.common_options import key_values
from kclient.cli.request_log import RequestLog
from kclient.network.system_runtime import system_runtime

_REBALANCE_DELAY = "group.initial.rebalance.delay.ms"
_NO_DELAY_NOTE = (
    f"{_REBALANCE_DELAY}=0: the first member of a group does not wait for others (Apache Kafka: "
    f"3000; set it with --config {_REBALANCE_DELAY}=3000)"
)

_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient broker`` to the command line."""
    summary = "run one broker"
    parser = commands.add_parser("broker", help=summary, description=__doc__)
    parser.add_argument("--data-dir", required=True, metavar="D", help="directory for all data")
    parser.add_argument(
        "--listen",
        default="127.0.0.1:9092",
        metavar="HOST:PORT",
        help="address to listen on, or several as NAME://HOST:PORT,…; port 0 chooses a free one "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a broker config by Kafka's name, such as num.partitions=3; may be repeated",
    )
    parser.add_argument(
        "--request-log",
        type=Path,
        metavar="FILE",
        help="append the times of each request to this file, as Kafka's request log does",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, then shut down cleanly."""
    settings = {
        "log.dir": options.data_dir,
        "listeners": options.listen,
        **key_values("--config", options.config),
    }
    without_delay = _REBALANCE_DELAY not in {name.replace("_", ".") for name in settings}
    if without_delay:
        settings[_REBALANCE_DELAY] = "0"
    broker = BrokerServer(BROKER_CONFIG.parse(settings), system_runtime())
    _raise_descriptor_limit()
    # Threads inherit the mask, so that no thread of the broker receives the signal before sigwait.
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with ExitStack() as stack:  # closes the log after the broker has stopped
            if options.request_log is not None:
                log = stack.enter_context(RequestLog(options.request_log))
                broker.observe_requests(log.write)
            return _serve(broker, without_delay=without_delay)
    finally:
        while signal.sigtimedwait(_SIGNALS, 0) is not None:
            pass  # discard signals that arrived during the shutdown
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def _serve(broker: BrokerServer, *, without_delay: bool) -> int:
    broker.start()
    try:
        first, *others = broker.endpoints
        print(f"bootstrap.servers={first.address}", flush=True)
        for endpoint in others:
            print(f"{endpoint.name}: bootstrap.servers={endpoint.address}", flush=True)
        if without_delay:
            print(_NO_DELAY_NOTE, flush=True)
        signal.sigwait(_SIGNALS)
    finally:
        broker.stop()
    return 0


def _raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors to the maximum: each partition needs several."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
