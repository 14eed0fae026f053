"""``kclient topics``: lists, describes, creates, alters and deletes topics."""

import argparse
from collections.abc import Callable

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    TopicDescription,
    TopicPartitionInfo,
)
from kclient.admin.new_topic import NewTopic
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    key_values,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, show, show_errors, succeeded, table
from kclient.cli.topic_offsets import add_offsets_action
from kclient.common.broker_errors import TopicExistsError, UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient topics``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_list(actions.add_parser("list", help="list every topic"))
    _add_describe(actions.add_parser("describe", help="show partitions, replicas and configs"))
    _add_create(actions.add_parser("create", help="create topics"))
    _add_alter(actions.add_parser("alter", help="add partitions to a topic, change its configs"))
    add_offsets_action(actions.add_parser("offsets", help="show offsets by position or time"))
    _add_delete(actions.add_parser("delete", help="delete topics and all their records"))
    for action in actions.choices.values():
        add_json_option(action)
        add_connection_options(action)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--internal", action="store_true", help="include Kafka's internal topics")
    add_examples(parser, "kclient topics list", "kclient topics list --internal --json")
    parser.set_defaults(run=_list)


def _add_describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="*", help="topics to describe (default: all)")
    parser.add_argument(
        "--under-replicated",
        action="store_true",
        help="show only partitions with fewer in-sync replicas than replicas",
    )
    parser.add_argument(
        "--unavailable", action="store_true", help="show only partitions without a leader"
    )
    parser.add_argument(
        "--under-min-isr",
        action="store_true",
        help="show only partitions with fewer in-sync replicas than min.insync.replicas",
    )
    parser.add_argument(
        "--at-min-isr",
        action="store_true",
        help="show only partitions with min.insync.replicas in-sync replicas",
    )
    parser.add_argument(
        "--with-configs",
        action="store_true",
        help="show only topics with configs that are not defaults",
    )
    add_examples(
        parser,
        "kclient topics describe orders",
        "kclient topics describe orders payments --json",
        "kclient topics describe --under-replicated",
        "kclient topics describe --unavailable --under-min-isr",
    )
    parser.set_defaults(run=_describe)


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="+")
    parser.add_argument(
        "--partitions",
        type=whole_number(1),
        default=-1,
        metavar="N",
        help="number of partitions (default: the cluster's num.partitions)",
    )
    parser.add_argument(
        "--replication-factor",
        type=whole_number(1),
        default=-1,
        metavar="N",
        help="replicas of each partition (default: the cluster's default.replication.factor)",
    )
    parser.add_argument(
        "--replica-assignment",
        type=_assignments,
        metavar="ID:ID,…",
        help="brokers of each partition, the preferred leader first, such as 1:2,2:3 for two "
        "partitions; instead of the two counts",
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="a topic that exists is not an error"
    )
    _add_configs(parser)
    add_examples(
        parser,
        "kclient topics create invoices --partitions 6",
        "kclient topics create prices stocks --topic-config cleanup.policy=compact",
        "kclient topics create invoices --partitions 6 --if-not-exists",
    )
    parser.set_defaults(run=_create)


def _add_configs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topic-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a topic config such as retention.ms=3600000; may be repeated",
    )


def _add_alter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic")
    parser.add_argument(
        "--partitions",
        type=whole_number(1),
        metavar="N",
        help="new number of partitions, more than now; keys are spread in another way from then on",
    )
    _add_configs(parser)
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="KEY",
        help="a topic config that is to have its default again; may be repeated",
    )
    add_examples(
        parser,
        "kclient topics alter orders --partitions 6",
        "kclient topics alter orders --topic-config retention.ms=3600000 "
        "--delete-config cleanup.policy",
    )
    parser.set_defaults(run=_alter)


def _add_delete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="+")
    parser.add_argument(
        "--if-exists", action="store_true", help="a topic that does not exist is not an error"
    )
    add_examples(
        parser,
        "kclient topics delete orders payments",
        "kclient topics delete invoices --if-exists",
    )
    parser.set_defaults(run=_delete)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        topics = admin.list_topics(include_internal=options.internal)
    for topic in sorted(topics):
        show(options, topic.name, topic)
    return 0


def _describe(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        wanted = options.topic or [
            each.name for each in sorted(admin.list_topics(include_internal=True))
        ]
        if not wanted:
            return 0
        results = admin.describe_topics(wanted)
        topics = {
            ConfigResource(ConfigResourceType.TOPIC, name): topic
            for name, topic in succeeded(results)
        }
        configs = admin.describe_configs(list(topics)) if topics else {}
    for resource, topic in topics.items():
        entries = configs[resource]
        changed = {each.name: each.value for each in entries.values() if not each.is_default}
        least = int(entries["min.insync.replicas"].value or 1)
        shown = topic._replace(partitions=_chosen(options, topic.partitions, least))
        if shown.partitions and (changed or not options.with_configs):
            text = _description(shown, len(topic.partitions), changed)
            show(options, text, shown._asdict() | {"configs": changed})
    return show_errors("topics", results)


def _chosen(
    options: argparse.Namespace, partitions: tuple[TopicPartitionInfo, ...], min_isr: int
) -> tuple[TopicPartitionInfo, ...]:
    """Return the partitions that are to be shown: those with one of the given conditions."""
    conditions: dict[str, Callable[[TopicPartitionInfo], bool]] = {
        "under_replicated": lambda each: len(each.isr) < len(each.replicas),
        "unavailable": lambda each: each.leader is None,
        "under_min_isr": lambda each: len(each.isr) < min_isr,
        "at_min_isr": lambda each: len(each.isr) == min_isr,
    }
    given = [holds for name, holds in conditions.items() if getattr(options, name)]
    return tuple(each for each in partitions if not given or any(holds(each) for holds in given))


def _description(topic: TopicDescription, count: int, configs: dict[str, str | None]) -> str:
    settings = ",".join(f"{name}={value}" for name, value in configs.items())
    head = f"topic {topic.name}  id {topic.topic_id}  partitions {count}  configs {settings or '-'}"
    rows = [
        (each.partition, each.leader, _ids(each.replicas), _ids(each.isr))
        for each in topic.partitions
    ]
    return head + "\n" + table(("partition", "leader", "replicas", "isr"), rows)


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in brokers) or "-"


def _create(options: argparse.Namespace) -> int:
    configs, assignments = _given_configs(options), options.replica_assignment
    if assignments is not None and (options.partitions, options.replication_factor) != (-1, -1):
        raise ConfigError(
            "--replica-assignment: not allowed with --partitions and --replication-factor"
        )
    topics = [
        NewTopic(name, options.partitions, options.replication_factor, configs, assignments)
        for name in options.topic
    ]
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.create_topics(topics)
    ignored = TopicExistsError if options.if_not_exists else ()
    for name, error in results.errors.items():
        if isinstance(error, ignored):
            show(options, f"{name} exists", {"name": name, "is_created": False})
    for _, topic in succeeded(results):
        show(options, f"created {topic.name} with {topic.num_partitions} partitions", topic)
    return show_errors("topics", results, ignored)


def _assignments(text: str) -> dict[int, list[int]]:
    """Return broker ids by partition of kafka-topics' form.

    Raises:
        argparse.ArgumentTypeError: The text has another form.
    """
    brokers = [each.split(":") for each in text.split(",")]
    if not all(each.isdecimal() for ids in brokers for each in ids):
        raise argparse.ArgumentTypeError(f"got {text!r:.80}, expected broker ids such as 1:2,2:3")
    return {partition: [int(each) for each in ids] for partition, ids in enumerate(brokers)}


def _given_configs(options: argparse.Namespace) -> dict[str, str]:
    if not all(map(ADMIN_CONFIG.has_key, key_values("--config", options.config))):
        try:
            ADMIN_CONFIG.parse(client_options(options, ADMIN_CONFIG))
        except ConfigError as error:  # kafka-topics has --config for topics
            raise ConfigError(f"{error}; --topic-config has configs of topics") from None
    given = key_values("--topic-config", options.topic_config)
    return {key: str(value) for key, value in given.items()}


def _alter(options: argparse.Namespace) -> int:
    topic = options.topic
    changes = [AlterConfigOp(name, value) for name, value in _given_configs(options).items()]
    changes += [
        AlterConfigOp(name, None, AlterConfigOpType.DELETE) for name in options.delete_config
    ]
    if options.partitions is None and not changes:
        raise ConfigError("alter: expected --partitions, --topic-config or --delete-config")
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        if changes:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic)
            admin.incremental_alter_configs({resource: changes}).raise_for_errors()
            altered = {change.name: change.value for change in changes}
            text = f"altered {', '.join(altered)} of {topic}"
            show(options, text, {"name": topic, "configs": altered})
        if options.partitions is not None:
            admin.create_partitions({topic: options.partitions}).raise_for_errors()
            text = f"{topic} has {options.partitions} partitions"
            show(options, text, {"name": topic, "num_partitions": options.partitions})
    return 0


def _delete(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        results = admin.delete_topics(options.topic)
    ignored = UnknownTopicOrPartitionError if options.if_exists else ()
    for name, error in results.errors.items():
        if isinstance(error, ignored):
            show(options, f"{name} does not exist", {"name": name, "is_deleted": False})
    for name, _ in succeeded(results):
        show(options, f"deleted {name}", {"name": name})
    return show_errors("topics", results, ignored)
