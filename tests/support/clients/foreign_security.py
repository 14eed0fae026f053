"""Options of security of other projects' clients, made of those of kclient."""

import ssl
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider as AiokafkaTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.support.clients.foreign import ForeignClient
from tests.support.clients.foreign_aiokafka import AiokafkaClient
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_kafka_python import KafkaPythonClient

Token = Callable[[], tuple[str, float]]


class KafkaPythonTokens(AbstractTokenProvider):  # type: ignore[misc]  # has no types
    """Tokens for kafka-python."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def token(self) -> str:
        return self._token()[0]


class AiokafkaTokens(AiokafkaTokenProvider):  # type: ignore[misc]  # has no types
    """Tokens for aiokafka."""

    def __init__(self, token: Token) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token()[0]


def secured_foreign_client(
    name: str, own: Mapping[str, Any], native: Mapping[str, Any] | None = None
) -> ForeignClient:
    """Return another project's client.

    Args:
        name: Its name in `FOREIGN_CLIENTS`.
        own: Options of one of our clients, with the stores as files.
        native: More options, in the client's own names.
    """
    servers = own["bootstrap_servers"]
    more = native or {}
    if name == "confluent-kafka":
        return ConfluentClient(servers, {**options_of_librdkafka(own), **more})
    if name == "aiokafka":
        return AiokafkaClient(servers, {**options_of_aiokafka(own), **more})
    return KafkaPythonClient(servers, {**options_of_kafka_python(own), **more})


def options_of_librdkafka(own: Mapping[str, Any]) -> dict[str, Any]:
    names = {"ssl_truststore_location": "ssl.ca.location"}
    found = {names.get(name, name).replace("_", "."): value for name, value in own.items()}
    token = found.pop("sasl.token.provider", None)
    if token is not None:
        found["oauth_cb"] = lambda _: token()
    store = found.pop("ssl.keystore.location", None)
    if store is not None:
        found |= {"ssl.certificate.location": store, "ssl.key.location": store}
    return found


def options_of_kafka_python(own: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "ssl_truststore_location": "ssl_cafile",
        "ssl_keystore_location": "ssl_certfile",
        "sasl_username": "sasl_plain_username",
        "sasl_password": "sasl_plain_password",
    }
    found = {names.get(name, name): value for name, value in own.items()}
    if "ssl_certfile" in found:
        found["ssl_keyfile"] = found["ssl_certfile"]
    token = found.pop("sasl_token_provider", None)
    if token is not None:
        found["sasl_oauth_token_provider"] = KafkaPythonTokens(token)
    return found


def options_of_aiokafka(own: Mapping[str, Any]) -> dict[str, Any]:
    found = options_of_kafka_python(own)
    if "sasl_oauth_token_provider" in found:
        found["sasl_oauth_token_provider"] = AiokafkaTokens(own["sasl_token_provider"])
    stores = {name: found.pop(name) for name in list(found) if name.startswith("ssl_")}
    if stores:
        context = ssl.create_default_context(cafile=stores["ssl_cafile"])
        if "ssl_certfile" in stores:
            context.load_cert_chain(stores["ssl_certfile"])
        found["ssl_context"] = context
    return found


def options_of_java(own: Mapping[str, Any]) -> dict[str, str]:
    found = {
        name.replace("_", "."): str(value)
        for name, value in own.items()
        if name
        not in {"bootstrap_servers", "sasl_username", "sasl_password", "sasl_token_provider"}
    }
    found |= {name.replace("location", "type"): "PEM" for name in found if "store" in name}
    if "sasl_password" in own:
        kind = "plain.Plain" if own["sasl_mechanism"] == "PLAIN" else "scram.Scram"
        found["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{kind}LoginModule required"
            f' username="{own["sasl_username"]}" password="{own["sasl_password"]}";'
        )
    return found
