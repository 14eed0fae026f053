"""Tokens from an OIDC endpoint: requests, retries, and errors without secrets."""

import base64
import http.client
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kclient.client.client_config import ClientConfig
from kclient.common.config_def import ConfigDef
from kclient.common.errors import AuthenticationError, ConfigError
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.common.secret import Secret
from kclient.network.https_client import MAX_RESPONSE, HttpResponse
from kclient.network.sasl.credentials import OAuthBearerToken
from kclient.network.sasl.credentials_loading import credentials_source
from kclient.network.sasl.token_endpoint import TokenEndpoint
from kclient.network.system_runtime import system_runtime
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.checks.waiting import wait_until
from tests.support.token_server import Received, Reply, TokenServer, token_reply, token_server
from tests.support.virtual.virtual_home import VirtualHome

CLIENT = ConfigDef("test", ClientConfig)
URL = "https://idp.example/token"
SECRET = "canary+:/%"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def parse(**given: object) -> ClientConfig:
    options: dict[str, object] = {
        "bootstrap_servers": "a:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": URL,
    }
    return CLIENT.parse({**options, **given})


CREDENTIALS = {
    "sasl_oauthbearer_client_credentials_client_id": "me",
    "sasl_oauthbearer_client_credentials_client_secret": SECRET,
}

Outcome = HttpResponse | Exception


class ScriptedEndpoint:
    """Endpoint in virtual time, with the outcomes of its requests; the last one is repeated."""

    def __init__(self, *outcomes: Outcome, **given: object) -> None:
        self.home = VirtualHome()
        self.outcomes = list(outcomes)
        self.times: list[float] = []
        config = parse(**CREDENTIALS, **given)
        request = config.token_request
        assert request is not None
        self.endpoint = TokenEndpoint(config, request, self.post, self.home.runtime)

    def post(self, _headers: Mapping[str, str], _body: bytes) -> HttpResponse:
        self.times.append(self.home.runtime.clock.monotonic_ms())
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def pauses(self) -> list[float]:
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]

    def failure(self) -> str:
        with pytest.raises(AuthenticationError) as caught:
            self.endpoint.token()
        assert caught.value.__cause__ is None
        return str(caught.value)


def response(status: int = 200, **fields: object) -> HttpResponse:
    return HttpResponse(status, json.dumps(fields).encode())


def jwt(**claims: object) -> str:
    encoded = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{encoded}.c2ln"


@pytest.mark.parametrize(
    "outcome",
    [response(status) for status in (408, 429, 500, 502, 503, 504)]
    + [TimeoutError(), ConnectionRefusedError(111, "refused"), http.client.BadStatusLine("canary")],
)
def test_retriable_failures_are_repeated_with_growing_pauses(outcome: Outcome) -> None:
    good = response(access_token="t", expires_in=60)
    scripted = ScriptedEndpoint(outcome, outcome, outcome, good)
    token = scripted.endpoint.token()
    assert token.value == Secret("t")
    assert scripted.pauses() == pytest.approx([100, 200, 400])


def test_retries_end_after_the_longest_time() -> None:
    scripted = ScriptedEndpoint(
        response(503), sasl_login_retry_backoff_ms=300, sasl_login_retry_backoff_max_ms=1000
    )
    assert scripted.failure() == "token endpoint idp.example:443: responded 503"
    assert scripted.pauses() == pytest.approx([300, 600, 100])


@pytest.mark.parametrize("status", [302, 400, 401, 403, 407, 409, 415, 501, 505])
def test_refusals_are_not_repeated(status: int) -> None:
    scripted = ScriptedEndpoint(response(status, error="invalid_client", detail="canary"))
    expected = f"token endpoint idp.example:443: responded {status} invalid_client"
    assert scripted.failure() == expected
    assert len(scripted.times) == 1


def test_refused_credentials_are_sent_again_after_a_pause() -> None:
    """Connections are attempted each second; an identity provider may lock a client out."""
    scripted = ScriptedEndpoint(response(401), response(access_token="t", expires_in=60))
    refused = scripted.failure()
    for _ in range(9):
        scripted.home.sleep(1_000)
        assert scripted.failure() == refused
    assert len(scripted.times) == 1
    scripted.home.sleep(1_000)
    assert scripted.endpoint.token().value == Secret("t")


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (response(401, error="canary canary"), "responded 401"),
        (response(401, error="x" * 65), "responded 401"),
        (response(401, error=["canary"]), "responded 401"),
        (HttpResponse(401, b"canary"), "responded 401"),
        (HttpResponse(401, b"[" * 100_000), "responded 401"),
        (HttpResponse(200, b"canary"), "responded without a usable access_token"),
        (HttpResponse(200, b"[1]"), "responded without a usable access_token"),
        (response(access_token="canary canary", expires_in=9), "without a usable access_token"),
        (response(access_token="", expires_in=9), "responded without a usable access_token"),
        (response(access_token="canary"), "responded without expires_in"),
        (response(access_token="canary", expires_in=0), "responded without expires_in"),
        (response(access_token="canary", expires_in=True), "responded without expires_in"),
        (response(access_token=jwt(exp="canary")), "responded without expires_in"),
        (http.client.BadStatusLine("canary"), "request failed: BadStatusLine"),
        (TimeoutError("canary"), "request failed: it timed out"),
    ],
)
def test_errors_show_the_status_and_nothing_of_the_response(outcome: Outcome, text: str) -> None:
    shown = ScriptedEndpoint(outcome, sasl_login_retry_backoff_max_ms=0).failure()
    assert shown.endswith(text)
    assert "canary" not in shown


def test_expiry_is_that_of_the_response_or_of_the_token() -> None:
    for fields, expected_s in (
        ({"access_token": "t", "expires_in": 100}, 100),
        ({"access_token": "t", "expires_in": "100"}, 100),
        ({"access_token": jwt(exp=50), "expires_in": 100}, 100),
    ):
        scripted = ScriptedEndpoint(response(**fields))
        now_s = scripted.home.runtime.clock.wall_ms() / 1000
        assert scripted.endpoint.token().expires_at_s == pytest.approx(now_s + expected_s)
    assert (
        ScriptedEndpoint(response(access_token=jwt(exp=5e9))).endpoint.token().expires_at_s == 5e9
    )


def load(server: TokenServer, **given: object) -> OAuthBearerToken | str:
    """Load a token as a client does; return it, or the text of the failure."""
    config = parse(
        sasl_oauthbearer_token_endpoint_url=server.url,
        **{**CREDENTIALS, "sasl_login_retry_backoff_max_ms": 0, **given},
    )
    source = credentials_source(config, system_runtime(), NO_LOG_CONTEXT)
    assert source is not None
    source.request(lambda: None)
    wait_until(source.done, "the token endpoint has responded", 30)
    failure = source.failure()
    if failure is not None:
        assert "canary" not in repr(failure)
        return str(failure)
    token = source.current()
    assert isinstance(token, OAuthBearerToken)
    return token


def always(reply: Reply) -> Callable[[Received], Reply]:
    return lambda _: reply


@pytest.mark.parametrize(
    ("given", "user_and_secret", "scope", "extensions"),
    [
        ({}, "me:canary+:/%", None, {}),
        ({"sasl_oauthbearer_header_urlencode": True}, "me:canary%2B%3A%2F%25", None, {}),
        (
            {"sasl_oauthbearer_scope": "a b", "sasl_oauthbearer_extensions": "pool=p=1,cluster=c"},
            "me:canary+:/%",
            ["a b"],
            {"pool": "p=1", "cluster": "c"},
        ),
        (
            {
                **dict.fromkeys(CREDENTIALS),
                "sasl_jaas_config": f'{MODULE} required clientId="you" clientSecret="canary2"'
                ' scope="all" extension_logicalCluster="lkc-1";',
            },
            "you:canary2",
            ["all"],
            {"logicalCluster": "lkc-1"},
        ),
    ],
)
def test_request_has_the_client_credentials(
    given: dict[str, Any],
    user_and_secret: str,
    scope: list[str] | None,
    extensions: dict[str, str],
) -> None:
    with token_server(always(token_reply("t", expires_in=3600))) as server:
        token = load(server, **given)
    assert isinstance(token, OAuthBearerToken)
    assert token.value == Secret("t")
    assert token.extensions == extensions
    (received,) = server.received
    assert received.path == "/token"
    kind, _, encoded = received.headers["authorization"].partition(" ")
    assert (kind, base64.b64decode(encoded).decode()) == ("Basic", user_and_secret)
    assert received.form.pop("grant_type") == ["client_credentials"]
    assert received.form.pop("scope", None) == scope
    assert received.form == {}


def test_certificate_of_the_endpoint_is_verified(tmp_path: Path) -> None:
    authority = CertificateAuthority("authority of the test")
    trust = tmp_path / "ca.pem"
    trust.write_text(authority.pem)
    reply = always(token_reply("t", expires_in=3600))
    with token_server(reply, authority.issue("idp", ("localhost",))) as server:
        assert isinstance(load(server, https_ca_location=str(trust)), OAuthBearerToken)
        shown = load(server, sasl_login_retry_backoff_max_ms=60_000)
        assert "its certificate was not accepted: unable to get local issuer" in str(shown)
    with token_server(reply, authority.issue("idp", ("other.example",))) as server:
        shown = load(server, https_ca_location=str(trust))
        assert "its certificate was not accepted: Hostname mismatch" in str(shown)
    with pytest.raises(ConfigError, match="https_ca_location: got 'missing', which cannot be read"):
        load(server, https_ca_location="missing")


def test_redirects_are_not_followed() -> None:
    other = always(token_reply("canary", expires_in=3600))
    with token_server(other) as target:
        moved = always(Reply(307, b"", (("Location", target.url),)))
        with token_server(moved) as server:
            assert str(load(server)).endswith("responded 307")
    assert target.received == []


def test_large_and_slow_responses_are_refused() -> None:
    with token_server(always(Reply(200, bytes(MAX_RESPONSE + 1)))) as server:
        assert str(load(server)).endswith("request failed: ResponseTooLargeError")
    released = threading.Event()

    def wait(_: Received) -> Reply:
        assert released.wait(30)
        return token_reply("t", expires_in=1)

    with token_server(wait) as server:
        assert str(load(server, sasl_login_read_timeout_ms=200)).endswith("it timed out")
        released.set()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sasl_oauthbearer_token_endpoint_url": "http://idp.example/t"}, "in readable form"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://a:canary@b/t"}, "user, password and"),
        ({"sasl_oauthbearer_token_endpoint_url": "file:/canary"}, "expected an https URL"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://b:70000/t"}, "between 1 and 65535"),
        (
            {"sasl_oauthbearer_client_credentials_client_id": None},
            "sasl_oauthbearer_client_credentials_client_id: got nothing, expected it with",
        ),
        (
            {"sasl_oauthbearer_client_credentials_client_secret": None},
            "sasl_oauthbearer_client_credentials_client_secret: got nothing, expected it with",
        ),
        (
            {"sasl_jaas_config": f"{MODULE} required clientSecret=canary;"},
            "client_secret: got it with the same in sasl_jaas_config, expected one of them",
        ),
        (
            {"sasl_oauthbearer_token_endpoint_url": None, "sasl_token_provider": lambda: None},
            "client_id: got it without sasl_oauthbearer_token_endpoint_url, expected both or none",
        ),
        (
            {"sasl_token_provider": lambda: None},
            "sasl_token_provider: got it with OAUTHBEARER, exp",
        ),
        ({"sasl_oauthbearer_extensions": "auth=x"}, "sasl_oauthbearer_extensions: got 'auth=x'"),
        (
            {"sasl_login_callback_handler_class": "com.example.Handler"},
            "classes are not loaded by name here",
        ),
        (
            {"sasl_mechanism": "PLAIN", "sasl_username": "u", "sasl_password": "canary"},
            "sasl_oauthbearer_token_endpoint_url: got it with PLAIN, expected sasl_username and",
        ),
    ],
)
def test_options_fit_together(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**{**CREDENTIALS, **given})
    assert text in str(caught.value)
    assert "canary" not in str(caught.value)


def test_configuration_of_the_java_client_is_accepted() -> None:
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    config = parse(
        **{
            "sasl.login.callback.handler.class": handler,
            "sasl.jaas.config": f'{MODULE} required clientId="a" clientSecret="canary";',
        }
    )
    request = config.token_request
    assert request is not None
    assert (request.client_id, request.scope) == ("a", None)
    assert "canary" not in f"{config!r} {request!r}"
