"""``kclient cluster``: starts a cluster on this machine, and describes any other."""

import argparse
from importlib import import_module
from pathlib import Path

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import ClusterDescription, FeatureMetadata, QuorumInfo
from kclient.cli.common_options import add_connection_options, client_options, whole_number
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, number, show, table
from kclient.common.broker_errors import UnsupportedVersionError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient cluster``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_start(actions.add_parser("start", help="run several brokers on this machine"))
    describing = actions.add_parser("describe", help="show brokers, features and the quorum")
    describing.set_defaults(run=_describe)
    add_examples(describing, "kclient cluster describe", "kclient cluster describe --json")
    naming = actions.add_parser("id", help="print the id of the cluster")
    naming.set_defaults(run=_print_id)
    add_examples(naming, "kclient cluster id")
    unregistering = actions.add_parser(
        "unregister", help="remove a broker that has stopped from the cluster's metadata"
    )
    unregistering.add_argument("--id", type=whole_number(0), required=True, help="broker id")
    add_examples(unregistering, "kclient cluster unregister --id 3")
    unregistering.set_defaults(run=_unregister)
    for action in (describing, naming, unregistering):
        add_json_option(action)
        add_connection_options(action)


def _add_start(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run several brokers on this machine, each in a process of its own."
    parser.add_argument(
        "--brokers",
        type=int,
        default=3,
        metavar="N",
        help="number of brokers (default: %(default)s)",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        required=True,
        metavar="D",
        help="directory of the cluster; node-1, node-2, … in it have the nodes' files",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="address of the first broker; the others and the controllers have the ports after it; "
        "port 0 chooses free ones, which stay the same (default: 127.0.0.1:9092)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a broker config for all brokers, such as num.partitions=3; it overrides their files; "
        "may be repeated",
    )
    add_examples(parser, "kclient cluster start --data-dir ./cluster --listen 127.0.0.1:9092")
    parser.set_defaults(run=_start)


def _start(options: argparse.Namespace) -> int:
    # Only this action needs the broker, whose import takes longer than the other actions.
    status: int = import_module("kclient.cli.cluster.start").run(options)
    return status


def _describe(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        cluster = _described(admin)
        features = admin.describe_features()
        quorum = admin.describe_metadata_quorum()
    text = "\n\n".join([_brokers(cluster), _features(features), _quorum(quorum)])
    show(options, text, cluster._asdict() | {"features": features, "quorum": quorum})
    return 0


def _described(admin: AdminClient) -> ClusterDescription:
    try:
        return admin.describe_cluster(include_fenced_brokers=True)
    except UnsupportedVersionError:  # before Kafka 4.0
        return admin.describe_cluster()


def _brokers(cluster: ClusterDescription) -> str:
    controller = cluster.controller.id if cluster.controller is not None else None
    rows = [
        (each.id, each.host, each.port, each.rack, "yes" if each.id in cluster.fenced_ids else "no")
        for each in sorted(cluster.nodes)
    ]
    head = f"cluster {cluster.cluster_id}  controller {number(controller)}\n"
    return head + table(("broker", "host", "port", "rack", "fenced"), rows)


def _features(features: FeatureMetadata) -> str:
    finalized = features.finalized_features
    rows = [
        (
            name,
            finalized[name].max_version if name in finalized else None,
            f"{supported.min_version} to {supported.max_version}",
        )
        for name, supported in sorted(features.supported_features.items())
    ]
    return table(("feature", "level", "supported"), rows)


def _quorum(quorum: QuorumInfo) -> str:
    end = max((each.log_end_offset for each in quorum.voters), default=0)
    rows = [
        (each.replica_id, role, each.log_end_offset, max(0, end - each.log_end_offset))
        for role, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
        for each in replicas
    ]
    head = (
        f"quorum  leader {quorum.leader_id}  epoch {quorum.leader_epoch}"
        f"  high watermark {quorum.high_watermark}\n"
    )
    return head + table(("node", "role", "log end offset", "lag"), rows)


def _print_id(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    show(options, cluster_id, {"cluster_id": cluster_id})
    return 0


def _unregister(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        admin.unregister_broker(options.id)
    show(options, f"unregistered broker {options.id}", {"broker_id": options.id})
    return 0
