"""Server of SCRAM: its messages, and what it refuses."""

import base64
import re

import pytest

from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import ProtocolError
from kclient.common.secret import Secret
from kclient.network.sasl.scram import (
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramKeys,
    ScramMechanism,
    ScramSaslClient,
    random_salt,
    salted_password,
)
from kclient.network.sasl.scram_server import ScramCredentials, ScramSaslServer
from tests.network.sasl.test_scram import FULL_NONCE, NONCE, SALT, VECTORS

SERVER_NONCE = FULL_NONCE.removeprefix(NONCE)
SHA_256 = SCRAM_MECHANISMS["SCRAM-SHA-256"]


def stored(mechanism: ScramMechanism, password: str) -> ScramCredential:
    salt = base64.b64decode(SALT)
    keys = ScramKeys.of(
        mechanism.hash_name, salted_password(mechanism.hash_name, password.encode(), salt, 4096)
    )
    return ScramCredential(salt, keys.stored_key, keys.server_key, 4096)


def lookup(mechanism: ScramMechanism, user: str) -> ScramCredential | None:
    users = {"user": "pencil", "a=b,c": "d"}
    return stored(mechanism, users[user]) if user in users else None


CREDENTIALS = ScramCredentials(lookup, b"secret of the broker")


def server(name: str = "SCRAM-SHA-256") -> ScramSaslServer:
    return ScramSaslServer(SCRAM_MECHANISMS[name], CREDENTIALS, lambda: SERVER_NONCE)


def first(user: str = "user", header: str = "n,,", rest: str = "") -> bytes:
    return f"{header}n={user},r={NONCE}{rest}".encode()


@pytest.mark.parametrize(("name", "proof", "signature"), VECTORS)
def test_messages_are_those_of_the_vectors(name: str, proof: str, signature: str) -> None:
    session = server(name)
    message = session.evaluate_response(first())
    assert message == f"r={FULL_NONCE},s={SALT},i=4096".encode()
    final = session.evaluate_response(f"c=biws,r={FULL_NONCE},p={proof}".encode())
    assert final == f"v={signature}".encode()
    assert session.authorization_id == "user"
    with pytest.raises(ProtocolError, match="after the last one"):
        session.evaluate_response(b"")


@pytest.mark.parametrize("name", SCRAM_MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("user", "pencil"), ("a=b,c", "d")])
def test_client_and_server_authenticate_each_other(name: str, user: str, password: str) -> None:
    client = ScramSaslClient(SCRAM_MECHANISMS[name], user, Secret(password))
    session = ScramSaslServer(SCRAM_MECHANISMS[name], CREDENTIALS)
    following = client.evaluate_challenge(session.evaluate_response(client.initial_response()))
    assert following is not None
    assert client.evaluate_challenge(session.evaluate_response(following)) is None
    assert session.authorization_id == user


def exchange(user: str, password: str) -> tuple[bytes, str]:
    """Return the first message of the server, and the error of the final one."""
    client = ScramSaslClient(SHA_256, user, Secret(password), new_nonce=lambda: NONCE)
    session = server()
    message = session.evaluate_response(client.initial_response())
    final = client.evaluate_challenge(message)
    assert final is not None
    with pytest.raises(ProtocolError) as caught:
        session.evaluate_response(final)
    assert not session.complete
    assert not session.authorization_id
    return message, str(caught.value)


def test_unknown_user_is_refused_like_a_wrong_password() -> None:
    known, unknown = exchange("user", "wrong"), exchange("mallory", "wrong")
    assert known[1] == unknown[1]
    assert unknown[0].endswith(b",i=4096")


def test_salts_of_unknown_users_have_the_form_of_new_ones() -> None:
    count = 2000
    false = [CREDENTIALS.find(SHA_256, f"user-{number}").salt for number in range(count)]
    for salts in (false, [random_salt() for _ in range(count)]):
        assert len(set(salts)) == count
        assert all(re.fullmatch(rb"[0-9a-z]{20,26}", salt) for salt in salts)
        longest = sum(len(salt) == 26 for salt in salts) / count
        assert 0.33 < longest < 0.48  # of 130 bits in base 36: 0.406
    shown = exchange("user-0", "wrong")[0].split(b"s=")[1].split(b",")[0]
    assert base64.b64decode(shown) == false[0]


def test_unknown_user_has_the_same_salt_each_time() -> None:
    assert exchange("mallory", "a")[0] == exchange("mallory", "b")[0] != exchange("trudy", "a")[0]
    other = ScramCredentials(lookup, b"secret of another broker")
    salts = {each.find(SHA_256, "mallory").salt for each in (CREDENTIALS, other)}
    assert len(salts) == 2


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=user",
        first(header="y,,"),
        first(header="p=tls-unique,,"),
        first(header="n,"),
        first(user=""),
        first(user="us=er"),
        first(user="us,er"),
        first(user="ä"),
        first(rest=",=x"),
        first().replace(b",r=", b",m=x,r="),
        first() + b"\0",
        f"n,,n=user,r={'a' * 1025}".encode(),
    ],
)
def test_malformed_first_messages(message: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed first message"):
        server().evaluate_response(message)


def test_extensions_are_ignored_and_delegation_tokens_refused() -> None:
    assert server().evaluate_response(first(rest=",a=b,c=d"))
    with pytest.raises(ProtocolError, match="delegation tokens"):
        server().evaluate_response(first(rest=",tokenauth=true"))


@pytest.mark.fault("A6")
def test_other_authorization_id_is_refused_before_the_user_is_looked_up() -> None:
    assert server().evaluate_response(first(header="n,a=user,"))
    for user in ("user", "mallory"):
        with pytest.raises(SaslAuthenticationError, match="different from username"):
            server().evaluate_response(first(user, header="n,a=bob,"))


@pytest.mark.parametrize(
    "final",
    [
        b"",
        f"c=biws,r={FULL_NONCE}".encode(),
        f"c=biws,r={FULL_NONCE},p=".encode(),
        f"c=biws,r={FULL_NONCE},p=****".encode(),
        f"c=biws,r={FULL_NONCE},p=YQ==".encode(),
        f"c=biws,r={FULL_NONCE},p={VECTORS[0][1]},x=y".encode(),
        f"c=biws,r={FULL_NONCE}x,p={VECTORS[0][1]}".encode(),
        f"c=biws,r={SERVER_NONCE},p={VECTORS[0][1]}".encode(),
        f"c=biws,r=x{FULL_NONCE},p={VECTORS[0][1]}".encode(),
        f"c=eSws,r={FULL_NONCE},p={VECTORS[0][1]}".encode(),
        f"c=biws,r={FULL_NONCE},p={base64.b64encode(bytes(32)).decode()}".encode(),
    ],
)
def test_refused_final_messages(final: bytes) -> None:
    session = server()
    session.evaluate_response(first())
    with pytest.raises(ProtocolError, match=r"malformed|another header or nonce|proof is wrong"):
        session.evaluate_response(final)
    assert not session.complete
