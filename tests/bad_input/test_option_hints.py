"""Hints about unknown options name an option that can be set, or state that there is none.

The names are those of kafka-python and aiokafka, from their code, and of librdkafka 2.16.
"""

import inspect
import re
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from hypothesis import given
from hypothesis import strategies as st

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.common.config_def import ConfigDef
from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.producer_config import PRODUCER_CONFIG

DEFINITIONS = {each.owner: each for each in (PRODUCER_CONFIG, CONSUMER_CONFIG, ADMIN_CONFIG)}

LIBRDKAFKA = (Path(__file__).parent / "librdkafka_options.txt").read_text().split()
CONFLUENT_KAFKA = [
    "on_delivery",
    "on_commit",
    "error_cb",
    "throttle_cb",
    "stats_cb",
    "oauth_cb",
    "logger",
]
OLDER = [
    "metadata.broker.list",
    "max.in.flight",
    "socket.connection.setup.timeout",
    "default.topic.config",
]
GUESSED = ["group_name", "ssl", "use_tls"]


def kafka_python() -> set[str]:
    kinds = (kafka.KafkaConsumer, kafka.KafkaProducer, kafka.KafkaAdminClient)
    return {name for kind in kinds for name in kind.DEFAULT_CONFIG}


def of_aiokafka() -> set[str]:
    kinds: tuple[Any, ...] = (
        aiokafka.AIOKafkaConsumer,
        aiokafka.AIOKafkaProducer,
        AIOKafkaAdminClient,
    )
    return {name for kind in kinds for name in inspect.signature(kind).parameters}


FOREIGN = sorted({*LIBRDKAFKA, *CONFLUENT_KAFKA, *OLDER, *GUESSED, *kafka_python(), *of_aiokafka()})


def can_be_set(definition: ConfigDef[Any]) -> set[str]:
    return {key.keyword for key in definition.keys.values() if not key.refused}


REASONS = {
    key.refused for each in DEFINITIONS.values() for key in each.keys.values() if key.refused
}
ALL = set().union(*map(can_be_set, DEFINITIONS.values()))


def error_about(definition: ConfigDef[Any], name: str) -> str:
    with pytest.raises(ConfigError) as caught:
        definition.parse({"bootstrap_servers": "h:1", name: object()})
    return str(caught.value)


def options_in(text: str) -> list[str]:
    """Return the words of a hint that look like options."""
    return [
        word.replace(".", "_")
        for word in re.findall(r"[a-z0-9]+(?:[._][a-z0-9]+)+(?!\()\b", text)
        if not word.startswith(("kclient.", "commit_", "end_"))
    ]


def check_hint(definition: ConfigDef[Any], name: str, hint: str) -> None:
    here = re.match(r"here it is ([a-z0-9._, ]+?)(?: \(|$)", hint)
    elsewhere = re.match(r"it is ([a-z0-9._]+)(?: \(.*\))?, an option of (\w+)", hint)
    other = re.match(r"it is an option of (\w+)$", hint)
    refused = re.match(r"(?:it is an option of \w+, which cannot be set: )?(.*)", hint)
    if here is not None:
        named = {each.replace(".", "_") for each in here[1].split(", ")}
        assert named <= can_be_set(definition)
    elif elsewhere is not None:
        assert elsewhere[1].replace(".", "_") in can_be_set(DEFINITIONS[elsewhere[2]])
    elif other is not None:
        assert name.replace(".", "_") in can_be_set(DEFINITIONS[other[1]])
    elif refused is None or refused[1] not in REASONS:
        assert re.match("leave it out; |not available|.* not available|call |pass |set ", hint)
        excused = {"on_delivery", "on_assigned", "on_revoked", "on_lost"}
        assert set(options_in(hint)) - excused <= ALL


@pytest.mark.parametrize("owner", DEFINITIONS)
@pytest.mark.parametrize("name", FOREIGN)
def test_hints_name_existing_options(owner: str, name: str) -> None:
    definition = DEFINITIONS[owner]
    if name.replace(".", "_") in can_be_set(definition):
        return
    hint = error_about(definition, name).partition("; ")[2]
    assert "did you mean" not in hint
    check_hint(definition, name, hint)


def test_hint_identifies_broker_options() -> None:
    with pytest.raises(ConfigError, match="it is an option of Producer"):
        BROKER_CONFIG.parse({"log.dir": "d", "linger.ms": 5})
    assert error_about(PRODUCER_CONFIG, "num.partitions").endswith("it is an option of the broker")
    assert error_about(CONSUMER_CONFIG, "compression.type").endswith("an option of Producer")


@pytest.mark.parametrize("owner", DEFINITIONS)
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sasl_plain_password", "here it is sasl_password"),
        ("sasl.mechanisms", "here it is sasl.mechanism"),
        ("ssl.ca.location", "here it is ssl.truststore.location"),
        ("ssl_certfile", "set ssl_keystore_location to one file with private key and certificate"),
        ("enable.ssl.certificate.verification", "pass an ssl.SSLContext with this setting as ssl_"),
        ("sasl_mechansim", "did you mean 'sasl_mechanism'?"),
        ("sasl_oauth_token_provider", "pass an object whose token() returns a token and its"),
        ("use_tls", "set security_protocol"),
    ],
)
def test_security_options_of_other_clients_lead_to_ours(owner: str, name: str, hint: str) -> None:
    assert f"; {hint}" in error_about(DEFINITIONS[owner], name)


@pytest.mark.parametrize(
    ("owner", "name", "hint"),
    [
        ("Producer", "bootstrap_timeout_ms", "here it is max_block_ms"),
        ("Consumer", "bootstrap_timeout_ms", "here it is default_api_timeout_ms"),
        ("Consumer", "group_name", "here it is group_id"),
        ("Producer", "metrics_enabled", "leave it out; .metrics() of a producer or a consumer"),
        ("Consumer", "enable.partition.eof", "not available; compare position() with end_offs"),
        ("Consumer", "broker.address.family", "not available; every address of a host name is"),
        ("Producer", "socket.keepalive.enable", "not available; connections_max_idle_ms closes"),
        ("Producer", "auto.commit.enable", "it is enable.auto.commit, an option of Consumer"),
        ("Consumer", "compression.level", "it is compression.gzip.level (one for each codec), an"),
        ("Producer", "batch.num.messages", "here it is batch.size (it counts bytes)"),
        ("Producer", "transaction_id", "did you mean 'transactional_id'?"),
        ("Producer", "LINGER_MS", "did you mean 'linger_ms'?"),
        ("Producer", "linger", "did you mean 'linger_ms'?"),
        ("Producer", "quality", "the options are listed in the configuration reference"),
    ],
)  # fmt: skip
def test_other_names_of_an_option_lead_to_it(owner: str, name: str, hint: str) -> None:
    assert error_about(DEFINITIONS[owner], name).partition("; ")[2].startswith(hint)


KEYWORDS = sorted(
    (owner, key.keyword) for owner, each in DEFINITIONS.items() for key in each.keys.values()
)


@given(st.sampled_from(KEYWORDS), st.data())
def test_misspelt_option_is_recognised(place: tuple[str, str], data: st.DataObject) -> None:
    owner, keyword = place
    definition = DEFINITIONS[owner]
    at = data.draw(st.integers(0, len(keyword) - 2))
    swapped = f"{keyword[:at]}{keyword[at + 1]}{keyword[at]}{keyword[at + 2 :]}"
    dropped = keyword[:at] + keyword[at + 1 :]
    misspelt = data.draw(st.sampled_from([swapped, dropped]))
    known = {key.keyword for key in definition.keys.values()}
    if misspelt in known or len(keyword) < 8:
        return
    hint = error_about(definition, misspelt).partition("; ")[2]
    suggested = re.match(r"did you mean '(\w+)'\?", hint)
    if suggested is None:
        assert "it is an option of" in hint or "here it is" in hint
    else:
        assert keyword == suggested[1] or distance(misspelt, suggested[1]) <= 2


@given(st.sampled_from(sorted(DEFINITIONS)), st.text("abcdegilmnorstu_", min_size=3, max_size=30))
def test_option_is_suggested_only_for_similar_names(owner: str, name: str) -> None:
    suggested = re.search(r"did you mean '(\w+)'\?", error_about(DEFINITIONS[owner], name))
    if suggested is not None:
        begun = suggested[1].startswith(f"{name}_")
        assert begun or distance(name, suggested[1]) <= 0.4 * len(suggested[1])


def distance(one: str, other: str) -> int:
    """Return the number of letters to insert, delete or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        previous, row[0] = row[0], number
        for column, against in enumerate(other, start=1):
            cost = min(row[column] + 1, row[column - 1] + 1, previous + (letter != against))
            previous, row[column] = row[column], cost
    return row[-1]
