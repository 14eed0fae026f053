"""Credentials that functions return: called in time, once at a time, and without their errors."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import pytest

from kclient.client.client_config import ClientConfig
from kclient.common.config_def import ConfigDef
from kclient.common.errors import AuthenticationError, ConfigError
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.common.secret import Secret
from kclient.network.sasl.credentials import (
    CredentialsSource,
    FixedCredentials,
    LoadedCredentials,
    OAuthBearerToken,
    UserCredentials,
)
from kclient.network.sasl.credentials_loading import credentials_source
from kclient.network.sasl.oauthbearer import OAuthBearerSaslClient
from kclient.network.system_runtime import system_runtime
from tests.support.checks.waiting import wait_until
from tests.support.virtual.virtual_home import VirtualHome

CLIENT = ConfigDef("test", ClientConfig)
PASSWORDS = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-256"}
TOKENS = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}


def parse(**given: object) -> ClientConfig:
    return CLIENT.parse({"bootstrap_servers": "a:1", **given})


def source_of(home: VirtualHome, **given: object) -> CredentialsSource:
    source = credentials_source(parse(**given), home.runtime, NO_LOG_CONTEXT)
    assert source is not None
    return source


def loaded(home: VirtualHome, source: CredentialsSource) -> None:
    ended: list[bool] = []
    source.request(lambda: ended.append(True))
    while not source.done():
        home.sleep(1)


def failure_of(**given: object) -> str:
    home = VirtualHome()
    source = source_of(home, **given)
    loaded(home, source)
    failure = source.failure()
    assert isinstance(failure, AuthenticationError)
    with pytest.raises(AuthenticationError):
        source.current()
    assert failure.__cause__ is None
    return str(failure)


def test_values_are_there_at_once() -> None:
    source = source_of(VirtualHome(), **PASSWORDS, sasl_username="u", sasl_password="p")
    assert isinstance(source, FixedCredentials)
    assert source.current() == UserCredentials("u", Secret("p"))
    assert credentials_source(parse(), VirtualHome().runtime, NO_LOG_CONTEXT) is None


def test_password_is_asked_for_each_connection() -> None:
    home = VirtualHome()
    passwords = iter(["first", "second"])
    source = source_of(home, **PASSWORDS, sasl_username="u", sasl_password=lambda: next(passwords))
    for expected in ("first", "second"):
        loaded(home, source)
        assert source.current() == UserCredentials("u", Secret(expected))


def test_token_is_kept_for_most_of_its_life() -> None:
    home = VirtualHome()
    calls: list[float] = []

    def provide() -> tuple[str, float]:
        now_s = home.runtime.clock.wall_ms() / 1000
        calls.append(now_s)
        return f"token-{len(calls)}", now_s + 1000

    source = source_of(home, **TOKENS, sasl_token_provider=provide)
    for _ in range(5):
        loaded(home, source)
    assert len(calls) == 1
    home.sleep(790_000)
    loaded(home, source)
    assert len(calls) == 1
    home.sleep(11_000)
    loaded(home, source)
    token = source.current()
    assert isinstance(token, OAuthBearerToken)
    assert token.value == Secret("token-2")


@pytest.mark.fault("C18")
def test_valid_token_outlives_a_failure_to_get_another(caplog: pytest.LogCaptureFixture) -> None:
    home = VirtualHome()
    outcomes: list[Callable[[], tuple[str, float]]] = [
        lambda: ("first", home.runtime.clock.wall_ms() / 1000 + 1000)
    ]

    def provide() -> tuple[str, float]:
        if not outcomes:
            raise ConnectionError("canary")
        return outcomes.pop()()

    source = source_of(home, **TOKENS, sasl_token_provider=provide)
    loaded(home, source)
    home.sleep(900_000)
    loaded(home, source)
    assert source.failure() is None
    assert "raised ConnectionError" in caplog.text
    assert "canary" not in caplog.text
    home.sleep(50_000)
    loaded(home, source)
    assert str(source.failure()) == "sasl_token_provider: the function raised ConnectionError"


@pytest.mark.fault("C18")
def test_function_runs_once_at_a_time_and_not_in_the_callers_thread() -> None:
    release, threads = threading.Event(), []

    def load() -> UserCredentials:
        threads.append(threading.current_thread())
        assert release.wait(20)
        return UserCredentials("u", Secret("p"))

    source = LoadedCredentials(load, system_runtime(), NO_LOG_CONTEXT)
    ended: list[str] = []
    first, second = partial(ended.append, "first"), partial(ended.append, "second")
    for on_done in (first, second, first, second):
        source.request(on_done)
        assert not source.done()
    release.set()
    wait_until(lambda: len(ended) == 2, "all requests have ended", 20)
    assert ended == ["first", "second"]
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


def test_failure_to_start_a_thread_is_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = system_runtime()

    def refuse(_name: str, _step: Callable[[], bool]) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(runtime.tasks, "spawn", refuse)
    source = LoadedCredentials(lambda: UserCredentials("u", Secret("p")), runtime, NO_LOG_CONTEXT)
    ended: list[bool] = []
    source.request(lambda: ended.append(True))
    assert ended == [True]
    assert str(source.failure()) == "credentials: can't start new thread"


def raising() -> str:
    raise ValueError("canary")


def exiting() -> str:
    raise SystemExit("canary")


class Provider:
    """Object with extensions."""

    def __init__(self, extensions: object) -> None:
        self.extensions = extensions

    def token(self) -> tuple[str, float]:
        return "t", 2e9


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({**PASSWORDS, "sasl_password": raising}, "sasl_password: the function raised ValueError"),
        ({**PASSWORDS, "sasl_password": exiting}, "sasl_password: the function raised SystemExit"),
        ({**PASSWORDS, "sasl_password": lambda: b"canary"}, "sasl_password: got a bytes from"),
        ({**PASSWORDS, "sasl_password": lambda: ""}, "expected a non-empty str without NUL"),
        ({**PASSWORDS, "sasl_username": lambda: "é"}, "expected ASCII with SCRAM-SHA-256"),
        ({**TOKENS, "sasl_token_provider": raising}, "the function raised ValueError"),
        ({**TOKENS, "sasl_token_provider": lambda: "canary"}, "got a str, expected a tuple (token"),
        ({**TOKENS, "sasl_token_provider": lambda: ("canary canary", 1)}, "of visible ASCII chara"),
        ({**TOKENS, "sasl_token_provider": lambda: (b"canary", 1)}, "got a token of type bytes"),
        ({**TOKENS, "sasl_token_provider": lambda: ("c", "soon")}, "got 'soon' (str) as expiry"),
        ({**TOKENS, "sasl_token_provider": Provider(5)}, "extensions: got a int, expected a dict"),
        ({**TOKENS, "sasl_token_provider": Provider({"auth": "x"})}, "extensions: got 'auth'"),
        ({**TOKENS, "sasl_token_provider": Provider({"a": "\1"})}, "extensions: got 'a'"),
    ],
)
def test_wrong_results_are_named_without_their_values(given: dict[str, Any], text: str) -> None:
    if given["sasl_mechanism"] != "OAUTHBEARER":
        given = {"sasl_username": "u", "sasl_password": "p", **given}
    shown = failure_of(**given)
    assert text in shown
    assert "canary" not in shown


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (TOKENS, "sasl_token_provider: got nothing, expected it with OAUTHBEARER"),
        ({**TOKENS, "sasl_token_provider": "t"}, "sasl_token_provider: got a secret value"),
        (
            {**TOKENS, "sasl_token_provider": Provider({}), "sasl_username": "u"},
            "sasl_username: got it with OAUTHBEARER, expected sasl_token_provider",
        ),
        (
            {**PASSWORDS, "sasl_username": "u", "sasl_token_provider": Provider({})},
            "sasl_password: got nothing, expected it with SCRAM-SHA-256",
        ),
    ],
)
def test_mechanism_and_credentials_fit_together(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parse(**given)


def test_messages_of_oauthbearer() -> None:
    token = OAuthBearerToken(Secret("abc"), 2e9, {"logicalCluster": "lkc-1", "pool": "p"})
    client = OAuthBearerSaslClient(token)
    first = b"n,,\1auth=Bearer abc\1logicalCluster=lkc-1\1pool=p\1\1"
    assert client.initial_response() == first
    assert client.evaluate_challenge(b"") is None
    assert client.evaluate_challenge(b'{"status":"invalid_token"}') == b"\1"
    with pytest.raises(AuthenticationError, match="a further token of 1 bytes"):
        client.evaluate_challenge(b"x")
    bare = OAuthBearerSaslClient(OAuthBearerToken(Secret("abc"), 2e9, {}))
    assert bare.initial_response() == b"n,,\1auth=Bearer abc\1\1"
