"""SCRAM: the vectors of RFC 7677, and servers that break the protocol."""

import base64
import hashlib
import hmac
import threading
from functools import partial

import pytest

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import CredentialsPendingError
from kclient.common.secret import Secret
from kclient.network.sasl.plain import PlainSaslClient
from kclient.network.sasl.scram import (
    MAX_IMMEDIATE_ITERATIONS,
    MAX_ITERATIONS,
    SCRAM_MECHANISMS,
    SaltedPasswords,
    ScramKeys,
    ScramSaslClient,
    salted_password,
)
from kclient.network.system_runtime import system_runtime
from tests.support.checks.shown_locals import shown_locals
from tests.support.checks.waiting import wait_until

NONCE = "rOprNGfwEbeRWgbNEkqO"
FULL_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
VECTORS = [
    (
        "SCRAM-SHA-256",
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
    (
        "SCRAM-SHA-512",
        "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
        "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
    ),
]


def client(name: str = "SCRAM-SHA-256", user: str = "user") -> ScramSaslClient:
    return ScramSaslClient(SCRAM_MECHANISMS[name], user, Secret("pencil"), new_nonce=lambda: NONCE)


def server_first(nonce: str = FULL_NONCE, salt: str = SALT, iterations: object = 4096) -> bytes:
    return f"r={nonce},s={salt},i={iterations}".encode()


@pytest.mark.parametrize(("name", "proof", "signature"), VECTORS)
def test_messages_are_those_of_the_vectors(name: str, proof: str, signature: str) -> None:
    session = client(name)
    assert session.initial_response() == f"n,,n=user,r={NONCE}".encode()
    final = session.evaluate_challenge(server_first())
    assert final == f"c=biws,r={FULL_NONCE},p={proof}".encode()
    assert session.evaluate_challenge(f"v={signature}".encode()) is None
    assert session.evaluate_challenge(b"") is None


def test_names_are_escaped_and_passwords_are_not() -> None:
    session = client(user="a=b,c")
    assert session.initial_response() == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()
    salt = base64.b64decode(SALT)
    assert salted_password("sha256", b"=,", salt, 4096) != salted_password(
        "sha256", b"=3D=2C", salt, 4096
    )


def test_delegation_token_is_marked_in_the_signed_message() -> None:
    mechanism = SCRAM_MECHANISMS["SCRAM-SHA-256"]
    session = ScramSaslClient(
        mechanism, "user", Secret("pencil"), new_nonce=lambda: NONCE, is_token=True
    )
    assert session.initial_response() == f"n,,n=user,r={NONCE},tokenauth=true".encode()
    _, proof, _ = VECTORS[0]
    final = session.evaluate_challenge(server_first())
    assert final is not None
    assert not final.endswith(f",p={proof}".encode())  # the extension is signed


def test_nonces_differ() -> None:
    mechanism = SCRAM_MECHANISMS["SCRAM-SHA-512"]
    firsts = {ScramSaslClient(mechanism, "u", Secret("p")).initial_response() for _ in range(100)}
    assert len(firsts) == 100


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "expected 'r=…,s=…,i=…'"),
        (b"m=ext," + server_first(), "expected 'r=…,s=…,i=…'"),
        (server_first(nonce=NONCE), "got a nonce from the server, expected this client's nonce"),
        (server_first(nonce="x" + FULL_NONCE), "got a nonce"),
        (server_first(nonce=NONCE + "y" * 2000), "got a nonce"),
        (server_first(salt=""), "expected 'r=…,s=…,i=…'"),
        (server_first(salt="*"), "got a salt of 1 bytes from the server, expected base64"),
        (server_first(iterations=0), "got '0' iterations from the server, expected at least 4096"),
        (server_first(iterations=4095), "expected at least 4096"),
        (server_first(iterations=-1), "got '-1' iterations"),
        (server_first(iterations="4096x"), "got '4096x' iterations"),
        (server_first(iterations="9" * 5000), "got '99999999999999999999' iterations"),
        (server_first(iterations=2**31 - 1), f"2147483647 iterations .*at most {MAX_ITERATIONS}"),
        (bytes(range(256)), "expected 'r=…,s=…,i=…'"),
    ],
)
def test_first_message_of_a_server_is_checked(message: bytes, text: str) -> None:
    session = client()
    session.initial_response()
    with pytest.raises(SaslAuthenticationError, match=text):
        session.evaluate_challenge(message)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "expected 'v=…'"),
        (b"v=", "expected 'v=…'"),
        (b"e=invalid-proof", "the server refused: 'invalid-proof'"),
        (b"v=" + base64.b64encode(bytes(32)), "could not prove .* it may be an impostor"),
        (b"v=" + VECTORS[0][2].encode()[:-4], "signature of 40 bytes|could not prove"),
        (b"v=\xff", "got a signature of 1 bytes from the server, expected base64"),
        (server_first(), "expected 'v=…'"),
    ],
)
def test_server_has_to_prove_its_knowledge(message: bytes, text: str) -> None:
    session = client()
    session.initial_response()
    session.evaluate_challenge(server_first())
    with pytest.raises(SaslAuthenticationError, match=text):
        session.evaluate_challenge(message)


def test_further_message_is_refused() -> None:
    session = client()
    session.initial_response()
    session.evaluate_challenge(server_first())
    session.evaluate_challenge(f"v={VECTORS[0][2]}".encode())
    with pytest.raises(SaslAuthenticationError, match="a further message of 1 bytes"):
        session.evaluate_challenge(b"x")


def test_stored_key_is_the_hash_of_the_client_key() -> None:
    salted = salted_password("sha512", b"pencil", base64.b64decode(SALT), 4096)
    keys = ScramKeys.of("sha512", salted)
    assert keys.client_key == hmac.digest(salted, b"Client Key", "sha512")
    assert keys.stored_key == hashlib.sha512(keys.client_key).digest()


def test_plain_sends_user_and_password_once() -> None:
    session = PlainSaslClient("alice", Secret("pass=,é"))
    assert session.initial_response() == b"\0alice\0pass=,\xc3\xa9"
    session.evaluate_challenge(b"")
    with pytest.raises(SaslAuthenticationError, match="PLAIN: got a token of 3 bytes"):
        session.evaluate_challenge(b"abc")


def test_many_iterations_are_computed_once_in_another_thread() -> None:
    threads: list[threading.Thread] = []
    released = threading.Event()

    def derive(_hash: str, _password: bytes, salt: bytes, _iterations: int) -> bytes:
        threads.append(threading.current_thread())
        assert released.wait(20)
        return salt

    passwords = SaltedPasswords(system_runtime().tasks, derive)
    count = MAX_IMMEDIATE_ITERATIONS + 1

    def found(salt: bytes = b"salt") -> bytes | None:
        try:
            return passwords.get("sha256", b"canary", salt, count)
        except CredentialsPendingError:
            return None

    computed = f"SCRAM: {count} iterations are computed before"
    with pytest.raises(CredentialsPendingError, match=computed) as caught:
        passwords.get("sha256", b"canary", b"salt", count)
    assert "canary" not in shown_locals(caught.value)
    for _ in range(3):
        assert found() is None
    released.set()
    assert wait_until(found, "the salted password is there", 20) == b"salt"
    assert found() == b"salt"
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
    for number in range(20):
        wait_until(partial(found, b"%d" % number), "another one is there", 20)
    assert len(threads) == 21
    assert found() is None  # only the last ones are kept
