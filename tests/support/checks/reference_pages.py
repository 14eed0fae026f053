"""Writes docs/reference from the code: ``python -m tests.support.checks.reference_pages``.

`tests/docs` compares the pages with their generated text.
"""

from collections.abc import Iterable
from pathlib import Path

from kclient import errors
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.broker.log.log_config import TOPIC_CONFIG
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.kafka_apis import API_TABLE
from kclient.broker.server.unused_keys import refused_keys
from kclient.common import broker_errors
from kclient.common.config_def import REQUIRED, ConfigKey
from kclient.common.errors import KafkaError
from kclient.common.java_only_keys import java_only_keys
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.append_outcome import APPEND_TABLE
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.registry import REQUESTS
from kclient.spark.options.kafka_config import RESERVED_BY_SINK, RESERVED_BY_SOURCE
from kclient.spark.options.secret_options import SHOWN_SECRETS
from kclient.spark.options.sink_options import SINK_TABLE
from kclient.spark.options.source_options import CONSUMER_DEFAULTS, SOURCE_TABLE
from tests.support.checks.command_line_reference import command_line_page
from tests.support.checks.error_advice import ADVICE
from tests.support.checks.state_diagrams import state_machines_page

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def configuration_page() -> str:
    """Return the page of all options of clients and broker."""
    refused = {key.name for key in (*java_only_keys(), *refused_keys())}
    parts = [
        "# Configuration\n",
        (
            "Keys are Kafka's. A client takes them as keywords, with underscores for dots, or in a"
            ' dict by their\ndotted names: `Producer(linger_ms=5)` or `Producer({"linger.ms": 5})`.'
            " An unknown key is refused,\nwith the nearest known one.\n"
        ),
    ]
    for title, keys in (
        ("Producer", PRODUCER_CONFIG.keys.values()),
        ("Consumer", CONSUMER_CONFIG.keys.values()),
        ("AdminClient", ADMIN_CONFIG.keys.values()),
        ("Companion broker", BROKER_CONFIG.keys.values()),
        ("Topics of the companion broker", TOPIC_CONFIG.keys.values()),
    ):
        parts.append(f"## {title}\n")
        parts.append(config_table(key for key in keys if not (key.refused and key.name in refused)))
    parts.append("## Keys of Apache Kafka's broker without effect\n")
    parts.append(
        "The companion broker accepts these keys, so that a `server.properties` of Apache Kafka"
        " can be used. It checks the\nform of the value, and then ignores it.\n"
    )
    parts.append(unused_table(BROKER_CONFIG.unused.values()))
    return "\n".join(parts)


def unused_table(keys: Iterable[ConfigKey]) -> str:
    """Return a table of keys without effect."""
    lines = ["| key | form | remark |", "|---|---|---|"]
    lines += [
        f"| `{key.name}` | {cell(key.expected)} | {cell(key.doc)} |"
        for key in sorted(keys, key=lambda key: key.name)
    ]
    return "\n".join(lines) + "\n"


def config_table(keys: Iterable[ConfigKey]) -> str:
    """Return a table of options."""
    lines = ["| key | default | form | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{key.name}` | {default_text(key)} | {cell(key.expected)} | {cell(key.doc)} |"
        for key in sorted(keys, key=lambda key: key.name)
    ]
    return "\n".join(lines) + "\n"


def default_text(key: ConfigKey) -> str:
    """Return a default as the page shows it."""
    if key.default is REQUIRED:
        return "*required*"
    if key.default is None or key.default == "":
        return "–"
    for value in key.choices:  # as a user writes it
        if key.convert(value) == key.default and not isinstance(key.default, str):
            return f"`{value}`"
    if isinstance(key.default, list | tuple) and not hasattr(key.default, "_fields"):  # a list
        return cell(", ".join(str(getattr(item, "name", item)) for item in key.default)) or "–"
    return f"`{getattr(key.default, 'name', key.default)}`"


def cell(text: str) -> str:
    """Escape text for a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def protocol_page() -> str:
    """Return the page of all APIs, with the versions of the clients and the companion broker."""
    lines = [
        "# Protocol\n",
        (
            "Versions of each API that kclient can encode and decode, and those that the companion"
            " broker serves.\nWith each broker the highest version that both know is used.\n"
        ),
        "| key | API | kclient | companion broker |",
        "|---|---|---|---|",
    ]
    for key in sorted(REQUESTS):
        request = REQUESTS[key]
        served = API_TABLE.get(ApiKey(key))
        span = f"{served.versions.start}–{served.versions.stop - 1}" if served else "–"
        name = request.__name__.removesuffix("Request")
        lines.append(
            f"| {int(key)} | {name} | {request.min_version}–{request.max_version} | {span} |"
        )
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return the page of the errors of the clients and the error codes of the protocol."""
    lines = [
        "# Errors\n",
        (
            "All errors are imported from `kclient.errors`, and all are a `KafkaError`. An error of"
            " wrong use is also the\nbuiltin that Python programmers expect, such as `ValueError`."
            " Its `__cause__` is the error that led to it.\n"
        ),
        "## Errors of the clients\n",
        "| class | also a | raised when | what to do |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{kind.__name__}` | {bases(kind)} | {first_paragraph(kind)} | {ADVICE[kind.__name__]} |"
        for kind in own_errors()
    ]
    lines += [
        "\n## Error codes\n",
        (
            "An error that a broker reports is of the class of its code. *Retriable* errors are"
            " retried by the clients until\nthe call's deadline; before a retry of *metadata* ones"
            " the clients refresh their metadata.\n"
        ),
        "| code | name | class | retriable | metadata |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {code} | {kind.error_name} | `{kind.__name__}` | {yes(kind.retriable)}"
        f" | {yes(kind.invalid_metadata)} |"
        for code, kind in sorted(errors_of_codes().items())
    ]
    return "\n".join(lines) + "\n"


def errors_of_codes() -> dict[int, type[KafkaError]]:
    """Return the errors of the protocol by code."""
    kinds = [
        kind
        for kind in vars(broker_errors).values()
        if isinstance(kind, type) and issubclass(kind, KafkaError)
    ]
    return {kind.code: kind for kind in kinds if kind.code is not None}


def own_errors() -> list[type[KafkaError]]:
    """Return the errors in `kclient.errors` without a code of the protocol, by name."""
    found = {kind for kind in vars(errors).values() if is_own_error(kind)}
    return sorted(found, key=lambda kind: kind.__name__)


def is_own_error(value: object) -> bool:
    """Return whether a value is an error class that only the clients raise."""
    if not isinstance(value, type) or not issubclass(value, KafkaError):
        return False
    return value.code is None


def bases(kind: type[KafkaError]) -> str:
    """Return the base classes of an error class."""
    return ", ".join(f"`{base.__name__}`" for base in kind.__bases__ if base is not Exception)


def first_paragraph(kind: type[KafkaError]) -> str:
    """Return the first paragraph of an error class: when the error is raised."""
    paragraph = (kind.__doc__ or "").split("\n\n")[0]
    return cell(paragraph.replace("``", "`"))


def produce_errors_page() -> str:
    """Return the page on the log after a failed Produce request."""
    lines = [
        "# Errors of Produce requests\n",
        (
            "Whether the log may hold a record although the broker returned an error, for each"
            " error code of a Produce\nresponse in Apache Kafka. The producer decides"
            " `possibly_written` of an error by this table, over all attempts of\nthe record: it"
            " is True if one of them may have written it. With `acks=0` brokers send no response,"
            " so that only the\nerrors of the connection occur. A code that is not listed, a"
            " broken connection and a request that timed out prove\nnothing: the log may hold the"
            " record.\n"
        ),
        "| code | name | acks=1 | acks=all | when Apache Kafka returns it |",
        "|---|---|---|---|---|",
    ]
    for kind, row in sorted(APPEND_TABLE.items(), key=lambda item: item[0].code or 0):
        single, every = row.leader_only.value, row.all_replicas.value
        if row.idempotent is not None:
            single, every = (
                f"{each} (idempotent: {row.idempotent.value})" for each in (single, every)
            )
        lines.append(
            f"| {kind.code} | {kind.error_name} | {single} | {every} | {cell(row.reason)} |"
        )
    return "\n".join(lines) + "\n"


def spark_page() -> str:
    """Return the page of all options of the Spark source and sink."""
    parts = [
        "# Spark options\n",
        (
            'Options of `format("kclient")`, with the names of Spark\'s own Kafka connector where'
            " it has them. Names are\ncase-insensitive; an unknown option is an error that suggests"
            " a known one. Options of Kafka clients are\nwritten `kafka.<key>`; see the"
            " [configuration reference](configuration.md). `groupIdPrefix` has no effect:\nthe"
            " source joins no group.\n"
        ),
    ]
    parts.append(
        "Spark shows options in query plans, except those whose name matches"
        " `spark.redaction.regex`, such as\n`kafka.sasl.password`. The others with a secret are"
        " refused: "
        + ", ".join(f"`kafka.{key}`" for key in SHOWN_SECRETS)
        + ". Each secret can be\ngiven by reference, as `KEY.file`, a file with the value, or"
        " `KEY.env`, a variable of the environment; see\n[TLS and"
        " SASL](../how-to/tls-and-sasl.md#in-spark).\n"
    )
    for title, table, client, owned, defaults in (
        ("Source", SOURCE_TABLE, "consumers", RESERVED_BY_SOURCE, CONSUMER_DEFAULTS),
        ("Sink", SINK_TABLE, "producers", RESERVED_BY_SINK, {}),
    ):
        parts.append(f"## {title}\n")
        parts.append(config_table(table.rows.values()))
        others = ", ".join(f"`kafka.{key}` = `{value}`" for key, value in defaults.items())
        if others:
            parts.append(f"Keys of {client} with other defaults here: {others}.\n")
        parts.append(f"Keys of {client} that cannot be set:\n")
        parts.append("| key | why |\n|---|---|")
        parts.append("\n".join(f"| `kafka.{key}` | {cell(why)} |" for key, why in owned.items()))
        parts.append("")
    return "\n".join(parts)


def yes(flag: bool) -> str:
    """Return a flag as the page shows it."""
    return "yes" if flag else ""


PAGES = {
    "configuration.md": configuration_page,
    "protocol.md": protocol_page,
    "errors.md": errors_page,
    "produce-errors.md": produce_errors_page,
    "spark-options.md": spark_page,
    "command-line.md": command_line_page,
    "state-machines.md": state_machines_page,
}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page())


if __name__ == "__main__":
    main()
