"""Secrets do not appear in texts, pickles and copies."""

import copy
import pickle

import pytest

from kclient.common.secret import Secret

CANARY = "canary"


def test_only_reveal_returns_the_text() -> None:
    secret = Secret(CANARY)
    assert secret.reveal() == CANARY
    for shown in (repr(secret), str(secret), f"{secret}", f"{[secret]}"):
        assert CANARY not in shown


def test_equal_by_value_and_without_hash() -> None:
    assert Secret(CANARY) == Secret(CANARY)
    assert Secret(CANARY) != Secret("other")
    assert Secret(CANARY) != CANARY
    with pytest.raises(TypeError):
        hash(Secret(CANARY))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(copied: object) -> None:
    assert callable(copied)
    with pytest.raises(TypeError, match="a secret cannot be pickled or copied"):
        copied(Secret(CANARY))
