"""Secrets are compared in constant time, by `hmac.compare_digest` alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("kclient/network/sasl", "kclient/broker", "kclient/common")
WORDS = ("proof", "password", "token", "signature", "secret", "stored_key", "server_key", "digest")
"""Parts of the names of secrets and of what is derived from them."""

EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def equalities(source: str) -> Iterator[str]:
    """Yield the comparisons of a module in which a secret is one of two values."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], EQUALITIES):
            sides = [node.left, *node.comparators]
            if not any(map(_is_literal, sides)) and any(map(_is_secret, sides)):
                yield ast.unparse(node)


def _is_literal(side: ast.expr) -> bool:
    """Return whether a value, or each of several, is one of the source text or a number."""
    if isinstance(side, ast.Tuple):
        return all(map(_is_literal, side.elts))
    is_count = isinstance(side, ast.Call) and ast.unparse(side.func) == "len"
    return isinstance(side, ast.Constant) or is_count


def _is_secret(side: ast.expr) -> bool:
    if isinstance(side, ast.Call):
        return _is_secret(side.func)
    if isinstance(side, ast.Subscript):
        return _is_secret(side.slice) or _is_secret(side.value)
    name = {ast.Name: "id", ast.Attribute: "attr", ast.Constant: "value"}.get(type(side), "")
    return any(word in str(getattr(side, name, "")) for word in WORDS)


def test_no_secret_is_compared_by_an_operator() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {comparison}"
        for place in PLACES
        for path in sorted((ROOT / place).rglob("*.py"))
        for comparison in equalities(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("proof == expected", 1),
        ("self._password != given", 1),
        ("found['signature'] == expected", 1),
        ("hmac.digest(a, b, c) == d", 1),
        ("token in known_tokens", 1),
        ("len(proof) != len(signature)", 0),
        ("password == ''", 0),
        ("hmac.compare_digest(proof, expected)", 0),
        ("nonce == expected", 0),
    ],
)
def test_equality_of_secrets_is_found(source: str, count: int) -> None:
    assert len(list(equalities(source))) == count
