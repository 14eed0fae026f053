"""``kclient topics``: lists, describes, creates, deletes and extends topics."""

import argparse

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import ConfigResource, ConfigResourceType, TopicDescription
from kclient.admin.new_topic import NewTopic
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    key_values,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, show


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``kclient topics`` to the command line."""
    parser = commands.add_parser("topics", help="list, describe, create and delete topics")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list every topic")
    listing.add_argument("--internal", action="store_true", help="include Kafka's internal topics")
    add_examples(listing, "kclient topics list", "kclient topics list --internal --json")
    listing.set_defaults(run=_list)
    describing = actions.add_parser("describe", help="show partitions, leaders and topic configs")
    describing.add_argument("topic", nargs="+")
    add_examples(
        describing,
        "kclient topics describe orders",
        "kclient topics describe orders payments --json",
    )
    describing.set_defaults(run=_describe)
    creating = actions.add_parser("create", help="create topics")
    creating.add_argument("topic", nargs="+")
    creating.add_argument(
        "--partitions",
        type=whole_number(1),
        default=-1,
        help="number of partitions (default: the cluster's num.partitions)",
    )
    creating.add_argument(
        "--replication-factor",
        type=whole_number(1),
        default=-1,
        help="replicas of each partition (default: the cluster's default.replication.factor)",
    )
    creating.add_argument(
        "--topic-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a topic config such as retention.ms=3600000; may be repeated",
    )
    add_examples(
        creating,
        "kclient topics create invoices --partitions 6",
        "kclient topics create prices stocks --topic-config cleanup.policy=compact",
    )
    creating.set_defaults(run=_create)
    deleting = actions.add_parser("delete", help="delete topics and all their records")
    deleting.add_argument("topic", nargs="+")
    add_examples(deleting, "kclient topics delete orders payments")
    deleting.set_defaults(run=_delete)
    extending = actions.add_parser("add-partitions", help="add partitions to a topic")
    extending.add_argument("topic")
    extending.add_argument(
        "--total",
        type=whole_number(1),
        required=True,
        help="new number of partitions",
    )
    add_examples(extending, "kclient topics add-partitions orders --total 6")
    extending.set_defaults(run=_add_partitions)
    add_json_option(listing)
    add_json_option(describing)
    for action in (listing, describing, creating, deleting, extending):
        add_connection_options(action)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        topics = admin.list_topics(include_internal=options.internal)
    for topic in sorted(topics):
        show(options, topic.name, topic)
    return 0


def _describe(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        described = admin.describe_topics(options.topic).raise_for_errors()
        resources = {name: ConfigResource(ConfigResourceType.TOPIC, name) for name in described}
        configs = admin.describe_configs(resources.values()).raise_for_errors()
    for name, topic in described.items():
        entries = configs[resources[name]].values()
        changed = {entry.name: entry.value for entry in entries if not entry.is_default}
        show(options, _description(topic, changed), topic._asdict() | {"configs": changed})
    return 0


def _description(topic: TopicDescription, configs: dict[str, str | None]) -> str:
    settings = ",".join(f"{name}={value}" for name, value in configs.items())
    head = (
        f"topic {topic.name}  id {topic.topic_id}  partitions {len(topic.partitions)}"
        f"  configs {settings or '-'}"
    )
    partitions = (
        f"  partition {each.partition}  leader {each.leader}"
        f"  replicas {_ids(each.replicas)}  isr {_ids(each.isr)}"
        for each in topic.partitions
    )
    return "\n".join([head, *partitions])


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in brokers)


def _create(options: argparse.Namespace) -> int:
    configs = {
        key: str(value) for key, value in key_values("--topic-config", options.topic_config).items()
    }
    topics = [
        NewTopic(name, options.partitions, options.replication_factor, configs)
        for name in options.topic
    ]
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        for topic in admin.create_topics(topics).raise_for_errors().values():
            print(f"created {topic.name} with {topic.num_partitions} partitions")
    return 0


def _delete(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        admin.delete_topics(options.topic).raise_for_errors()
    print(f"deleted {', '.join(options.topic)}")
    return 0


def _add_partitions(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        admin.create_partitions(
            {options.topic: options.total}
        ).raise_for_errors().raise_for_errors()
    print(f"{options.topic} has {options.total} partitions")
    return 0
