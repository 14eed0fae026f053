"""Arguments of the storage tool for SCRAM credentials."""

import hashlib

import pytest

from kclient.broker.metadata.scram_parser import parse_scram_credentials
from kclient.common.errors import ConfigError
from kclient.network.sasl.scram import ScramKeys

SALT = "c2FsdA=="


@pytest.mark.parametrize(
    "text",
    [
        f"name=alice,password=a b=]c,salt={SALT}",
        f'name="alice",password="a b=]c",salt="{SALT}"',
        f" password = a b=]c , name = alice , iterations=4096, salt = {SALT} ",
    ],
)
def test_keys_of_a_password(text: str) -> None:
    (record,) = parse_scram_credentials([f" SCRAM-SHA-256=[{text}] "])
    salted = hashlib.pbkdf2_hmac("sha256", b"a b=]c", b"salt", 4096)
    keys = ScramKeys.of("sha256", salted)
    assert (record.name, record.mechanism, record.iterations) == ("alice", 1, 4096)
    assert (record.salt, record.stored_key, record.server_key) == (
        b"salt",
        keys.stored_key,
        keys.server_key,
    )


def test_keys_of_a_salted_password() -> None:
    text = f"SCRAM-SHA-512=[name=alice,saltedpassword=c2FsdGVk,salt={SALT},iterations=16384]"
    (record,) = parse_scram_credentials([text])
    keys = ScramKeys.of("sha512", b"salted")
    assert (record.mechanism, record.iterations) == (2, 16_384)
    assert (record.stored_key, record.server_key) == (keys.stored_key, keys.server_key)


def test_salts_are_random() -> None:
    arguments = [f"SCRAM-SHA-256=[name={name},password=x]" for name in ("alice", "bob")]
    arguments.append("SCRAM-SHA-512=[name=alice,password=x]")
    records = parse_scram_credentials(arguments)
    assert len({record.salt for record in records}) == 3
    assert all(len(record.salt) >= 16 for record in records)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SCRAM-SHA-256", "got an argument of another form than MECHANISM="),
        ("SCRAM-SHA-256=name=a,password=canary", "got an argument of another form"),
        ("SCRAM-SHA-256=[name=a,password=canary", "got an argument of another form"),
        ("SCRAM-SHA-1=[name=a,password=canary]", "got mechanism 'SCRAM-SHA-1', expected SCRAM"),
        ("scram-sha-256=[name=a,password=canary]", "got mechanism 'scram-sha-256'"),
        ("SCRAM-SHA-256=[]", "got a part that is no KEY=VALUE"),
        ('SCRAM-SHA-256=[name=a,password="x,canary"]', "got a part that is no KEY=VALUE"),
        ("SCRAM-SHA-256=[name=a,password=x,canary=1]", "got a part that is no KEY=VALUE"),
        ("SCRAM-SHA-256=[name=a,name=b,password=canary]", "got name twice"),
        ("SCRAM-SHA-256=[password=canary]", "got no name"),
        ('SCRAM-SHA-256=[name="",password=canary]', "got no name"),
        ("SCRAM-SHA-256=[name=a]", "user 'a': got both or none of password and saltedpassword"),
        ("SCRAM-SHA-256=[name=a,password=canary,saltedpassword=eA==]", "got both or none of"),
        ('SCRAM-SHA-256=[name=a,password=""]', "got an empty password"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=eA==]", "got saltedpassword without salt"),
        ("SCRAM-SHA-256=[name=a,password=canary,salt=!!]", "got salt of 2 characters, expected b"),
        ("SCRAM-SHA-256=[name=a,password=canary,salt=]", "got salt of 0 characters"),
        (f"SCRAM-SHA-256=[name=a,saltedpassword=canary,salt={SALT}]", "got saltedpassword of 6"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=4095]", "expected 4096 to 16384"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=16385]", "got iterations '16385'"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=00000040960]", "got iterations '0000"),
        ("SCRAM-SHA-256=[name=a,password=canary,iterations=-1]", "got iterations '-1'"),
    ],
)
def test_refusals_show_no_secret(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_scram_credentials([text])
    assert problem in str(caught.value)
    assert "canary" not in str(caught.value)


def test_user_is_given_once_for_each_mechanism() -> None:
    text = "SCRAM-SHA-256=[name=a,password=canary]"
    with pytest.raises(ConfigError, match="got user 'a' twice with the same mechanism"):
        parse_scram_credentials([text, text])
