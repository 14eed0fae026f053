"""Tokens that a listener accepts and refuses."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kclient.common.errors import ConfigError, ProtocolError
from kclient.network.http_url import parse_http_url
from kclient.network.https_client import HttpsClient, HttpTimeouts
from kclient.network.sasl.json_web_token import ALGORITHMS, MAX_TOKEN, AcceptedToken, ClaimRules
from kclient.network.sasl.key_sets import KeySetFile, KeySetUrl
from kclient.network.sasl.token_validator import TokenValidator
from kclient.network.system_runtime import system_runtime
from kclient.network.tls.client_context import https_context
from tests.support.checks.waiting import wait_until
from tests.support.identity_provider import IdentityProvider, encoded
from tests.support.token_server import Received, Reply, TokenServer, token_server
from tests.support.virtual.virtual_home import VirtualHome

PROVIDER = IdentityProvider()
RULES = ClaimRules(["kafka", "other"], "https://issuer.test", 30, "sub")


class World:
    """A validator, its file, and its clock."""

    def __init__(self, directory: Path, rules: ClaimRules = RULES) -> None:
        self.path = directory / "jwks.json"
        self.write(PROVIDER)
        self.home = VirtualHome()
        clock = self.home.runtime.clock
        self.validator = TokenValidator("url", KeySetFile(str(self.path), clock), rules, clock)

    def write(self, provider: IdentityProvider) -> None:
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(provider.key_set()))
        os.replace(temporary, self.path)

    def claims(self, **others: Any) -> dict[str, Any]:
        now_s = self.home.runtime.clock.wall_ms() / 1000
        found = {
            "sub": "alice",
            "iss": "https://issuer.test",
            "aud": "kafka",
            "iat": now_s,
            "exp": now_s + 60,
            **others,
        }
        return {name: value for name, value in found.items() if value is not None}

    def now_s(self) -> float:
        return self.home.runtime.clock.wall_ms() / 1000


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_token_of_each_algorithm_is_accepted(world: World, algorithm: str) -> None:
    claims = world.claims()
    found = world.validator.validate(PROVIDER.token(claims, algorithm))
    assert found == AcceptedToken("alice", claims["exp"] * 1000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_changed_token_is_refused(world: World, algorithm: str) -> None:
    header, _, signature = PROVIDER.token(world.claims(), algorithm).split(".")
    claims = encoded(json.dumps(world.claims(sub="admin")).encode())
    for changed in (
        f"{header}.{claims}.{signature}",
        f"{header}.{claims}.{signature[4:]}",
        f"{header}.{claims}.AAAA",
    ):
        with pytest.raises(ProtocolError, match="signature is wrong"):
            world.validator.validate(changed)


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "HS256", "HS512", "PS512", "ES512", None, ["RS256"], ""]
)
def test_other_algorithms_are_refused(world: World, algorithm: object) -> None:
    _, claims, signature = PROVIDER.token(world.claims()).split(".")
    header = encoded(json.dumps({"alg": algorithm, "kid": "rsa"}).encode())
    with pytest.raises(ProtocolError, match="got the algorithm"):
        world.validator.validate(f"{header}.{claims}.{signature}")
    with pytest.raises(ProtocolError, match="no signed token"):
        world.validator.validate(f"{header}.{claims}.")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"kid": "other"}, "no key"),
        ({"kid": "ec256"}, "no key"),
        ({"kid": "secret"}, "no key"),
        ({"kid": 5}, "id of its key is malformed"),
        ({"kid": "k" * 257}, "id of its key is malformed"),
        ({"crit": ["exp"]}, "critical extensions"),
        ({"alg": "ES256"}, "no key"),
        ({"alg": "PS256"}, "signature is wrong"),
    ],
)
def test_other_keys_are_refused(world: World, header: dict[str, Any], problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        world.validator.validate(PROVIDER.token(world.claims(), **header))


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ({"exp": None}, "claim exp is no time"),
        ({"iat": None}, "claim iat is no time"),
        ({"exp": "later"}, "claim exp is no time"),
        ({"exp": True}, "claim exp is no time"),
        ({"exp": 10**400}, "claim exp is no time"),
        ({"exp": 1, "iat": 2}, "expires before"),
        ({"exp": 1, "iat": 0}, "expired"),
        ({"sub": None}, "claim sub is no name"),
        ({"sub": " "}, "claim sub is no name"),
        ({"sub": 5}, "claim sub is no name"),
        ({"sub": "a" * 257}, "claim sub is no name"),
        ({"sub": "\ud800"}, "claim sub is no name"),
        ({"aud": None}, "audience"),
        ({"aud": "third"}, "audience"),
        ({"aud": ["third", 5]}, "audience"),
        ({"iss": None}, "issuer"),
        ({"iss": "https://issuer.test/"}, "issuer"),
    ],
)
def test_claims_are_refused(world: World, claims: dict[str, Any], problem: str) -> None:
    given = world.claims()
    given = {name: value for name, value in {**given, **claims}.items() if value is not None}
    with pytest.raises(ProtocolError, match=problem):
        world.validator.validate(PROVIDER.token(given))


def test_claims_are_accepted(world: World) -> None:
    for claims in (
        world.claims(aud=["third", "other"]),
        world.claims(iat=world.now_s() + 50),
        world.claims(nbf=world.now_s() + 29),
        world.claims(iat=world.now_s() - 90, exp=world.now_s() - 29),
    ):
        assert world.validator.validate(PROVIDER.token(claims)).name == "alice"
    for claims in (
        world.claims(nbf=world.now_s() + 31),
        world.claims(iat=world.now_s() - 90, exp=world.now_s() - 31),
    ):
        with pytest.raises(ProtocolError):
            world.validator.validate(PROVIDER.token(claims))


def test_key_without_an_id_is_used_if_it_is_the_only_one(world: World) -> None:
    assert world.validator.validate(PROVIDER.token(world.claims(), kid=None)).name == "alice"


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b", "a.b.c.d", "a.b.c", "e30.e30.e30", "*.b.c", "a" * MAX_TOKEN + ".b.c"],
)
def test_malformed_tokens_are_refused(world: World, token: str) -> None:
    with pytest.raises(ProtocolError):
        world.validator.validate(token)


def test_deep_json_is_refused(world: World) -> None:
    deep = encoded(b"[" * 9000)
    with pytest.raises(ProtocolError, match="not JSON"):
        world.validator.validate(f"{deep}.e30.AAAA")


def test_changed_key_set_is_read_for_an_unknown_key(world: World) -> None:
    other = IdentityProvider()
    token = other.token(world.claims(), kid="new")
    keys = other.key_set()
    keys["keys"][0]["kid"] = "new"
    with pytest.raises(ProtocolError, match="no key"):
        world.validator.validate(token)
    world.path.write_text(json.dumps(keys))
    with pytest.raises(ProtocolError, match="no key"):
        world.validator.validate(token)  # read a moment ago
    world.home.clock.now_ms += 1000
    assert world.validator.validate(token).name == "alice"
    world.path.write_text("damaged")
    world.home.clock.now_ms += 1000
    with pytest.raises(ProtocolError, match="no key"):
        world.validator.validate(PROVIDER.token(world.claims()))
    assert world.validator.validate(token).name == "alice"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": 5}',
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "k": "AAAA"}]}',
        '{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}',
        '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"}]}',
        "[" * 100_000,
        " " * (1 << 20) + "{}",
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(text)
    clock = VirtualHome().runtime.clock
    with pytest.raises(ConfigError, match=r"url: got .*jwks.json', expected a JSON Web Key Set"):
        TokenValidator("url", KeySetFile(str(path), clock), RULES, clock)


class Endpoint:
    """Identity provider with a URL, and a listener's validator of its tokens."""

    def __init__(self, server: TokenServer, refresh_ms: float = 3_600_000) -> None:
        self.kid = "rsa"
        self.status = 200
        server.respond = self.respond
        runtime = system_runtime()
        self.clock = VirtualHome().clock
        runtime = runtime._replace(clock=self.clock)
        url = parse_http_url(server.url)
        context = https_context("https.ca.location", None)
        client = HttpsClient(url, context, HttpTimeouts(5000, 5000), runtime.clock)
        self.source = KeySetUrl(url, client, runtime, refresh_ms)
        self.validator = TokenValidator("url", self.source, RULES, runtime.clock)
        self.server = server

    def respond(self, _received: Received) -> Reply:
        keys = PROVIDER.key_set()
        keys["keys"][0]["kid"] = self.kid
        return Reply(self.status, json.dumps(keys).encode())

    def accepts(self, kid: str) -> bool:
        now_s = self.clock.wall_ms() / 1000
        claims = {"sub": "a", "iss": RULES.issuer, "aud": "kafka", "iat": now_s, "exp": now_s + 60}
        try:
            return self.validator.validate(PROVIDER.token(claims, kid=kid)).name == "a"
        except ProtocolError:
            return False


def no_keys(_received: Received) -> Reply:
    return Reply(503, b"")


def test_keys_of_a_url_are_fetched_again_for_an_unknown_key() -> None:
    with token_server(no_keys) as server:
        endpoint = Endpoint(server)
        assert endpoint.accepts("rsa")
        endpoint.kid = "new"
        assert not endpoint.accepts("new")
        assert len(server.received) == 1  # fetched a moment ago
        endpoint.clock.now_ms += 10_000
        wait_until(lambda: endpoint.accepts("new"), "the new keys are known")
        assert not endpoint.accepts("rsa")
        assert len(server.received) == 2
        assert {each.path for each in server.received} == {"/token"}


def test_failing_url_leaves_the_keys_and_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with token_server(no_keys) as server:
        endpoint = Endpoint(server, refresh_ms=60_000)
        endpoint.status = 500
        endpoint.clock.now_ms += 60_000
        wait_until(
            lambda: endpoint.accepts("rsa") and "it responded 500" in caplog.text,
            "the failure is logged",
        )
        endpoint.status, count = 200, len(server.received)
        endpoint.clock.now_ms += 10_000
        wait_until(
            lambda: endpoint.accepts("rsa") and len(server.received) > count,
            "the keys are fetched again",
        )


def test_url_without_keys_is_refused() -> None:
    with token_server(no_keys) as server:
        url = parse_http_url(server.url)
        context = https_context("https.ca.location", None)
        runtime = system_runtime()
        client = HttpsClient(url, context, HttpTimeouts(5000, 5000), runtime.clock)
        source = KeySetUrl(url, client, runtime, 1000)
        with pytest.raises(ConfigError, match="it responded 503"):
            TokenValidator("url", source, RULES, runtime.clock)
