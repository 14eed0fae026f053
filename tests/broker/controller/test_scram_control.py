"""AlterUserScramCredentials."""

import hashlib
import hmac
from typing import Any

import pytest

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.protocol.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    controller_with,
    levels,
    outcome_of,
)

SALTED = b"canary" * 8


def upsertion(
    name: str, mechanism: int = 1, iterations: int = 4096, salted: bytes = SALTED
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    controller: QuorumController,
    deletions: list[ScramCredentialDeletion] | None = None,
    upsertions: list[ScramCredentialUpsertion] | None = None,
) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=deletions or [], upsertions=upsertions or []
    )
    results = outcome_of(controller, request).results
    codes = {each.user: each.error_code for each in results}
    assert len(codes) == len(results)
    for each in results:
        assert bool(each.error_message) == bool(each.error_code)
        assert "canary" not in str(each.error_message)
    return codes


def test_credentials_are_set_replaced_and_removed() -> None:
    controller, _ = controller_with()
    assert alter(controller) == {}
    assert alter(controller, upsertions=[upsertion("a"), upsertion("b", 2, 8192)]) == {
        "a": 0,
        "b": 0,
    }
    assert sorted(controller.image.scram) == [(1, "a"), (2, "b")]
    stored = controller.image.scram[2, "b"]
    client_key = hmac.digest(SALTED, b"Client Key", "sha512")
    assert stored.stored_key == hashlib.sha512(client_key).digest()
    assert stored.server_key == hmac.digest(SALTED, b"Server Key", "sha512")
    assert (stored.salt, stored.iterations) == (b"salt", 8192)
    assert alter(controller, upsertions=[upsertion("a", 1, 16_384)]) == {"a": 0}
    assert controller.image.scram[1, "a"].iterations == 16_384
    assert alter(controller, [deletion("b", 2)], [upsertion("c")]) == {"b": 0, "c": 0}
    assert sorted(controller.image.scram) == [(1, "a"), (1, "c")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"upsertions": [upsertion("")]}, {"": 93}),
        ({"deletions": [deletion("")]}, {"": 93}),
        ({"upsertions": [upsertion("x", 0, 1)]}, {"x": 33}),
        ({"upsertions": [upsertion("x", 3)]}, {"x": 33}),
        ({"deletions": [deletion("x", 3)]}, {"x": 33}),
        ({"upsertions": [upsertion("x", 1, 4095)]}, {"x": 93}),
        ({"upsertions": [upsertion("x", 1, -1)]}, {"x": 93}),
        ({"upsertions": [upsertion("x", 2, 16_385)]}, {"x": 93}),
        ({"upsertions": [upsertion("x", salted=b"")]}, {"x": 93}),
        ({"deletions": [deletion("x")]}, {"x": 91}),
        ({"deletions": [deletion("known", 2)]}, {"known": 91}),
        ({"upsertions": [upsertion("x"), upsertion("x")]}, {"x": 92}),
        ({"upsertions": [upsertion("x"), upsertion("x", 2)]}, {"x": 92}),
        ({"upsertions": [upsertion("x"), upsertion("x", 1, 1), upsertion("x")]}, {"x": 92}),
        ({"upsertions": [upsertion("x", 1, 1), upsertion("x")]}, {"x": 93}),
        ({"deletions": [deletion("known")] * 2}, {"known": 92}),
        ({"deletions": [deletion("known")], "upsertions": [upsertion("known", 2)]}, {"known": 92}),
        ({"deletions": [deletion("x")], "upsertions": [upsertion("x")]}, {"x": 91}),
    ],
)
def test_refused_changes(changes: dict[str, Any], expected: dict[str, int]) -> None:
    controller, _ = controller_with()
    alter(controller, upsertions=[upsertion("known")])
    before = controller.image.scram
    assert alter(controller, **changes) == expected
    assert controller.image.scram == before
    changes = {"deletions": [], "upsertions": [], **changes}
    changes["upsertions"] = [*changes["upsertions"], upsertion("other")]
    assert alter(controller, **changes) == {**expected, "other": 0}
    assert set(controller.image.scram) == {(1, "known"), (1, "other")}


@pytest.mark.parametrize(("level", "code"), [(10, 35), (11, 0)])
def test_level_of_metadata_version(level: int, code: int) -> None:
    quorum = MemoryQuorum()
    bootstrap = levels(metadata_version=level)
    controller = controller_of(quorum, 100, ManualClock(), bootstrap=bootstrap)
    quorum.elect(100)
    assert alter(controller, upsertions=[upsertion("a")]) == {"a": code}
    assert len(controller.image.scram) == (0 if code else 1)
