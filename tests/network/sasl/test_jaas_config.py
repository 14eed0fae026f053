"""Entries of sasl.jaas.config: what Java reads, and what errors show."""

import pytest

from kclient.network.sasl.credentials import KerberosLogin
from kclient.network.sasl.jaas_config import MAX_LENGTH, parse_jaas_config, parse_server_jaas_config

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    ("options", "username", "password"),
    [
        ('username="alice" password="secret"', "alice", "secret"),
        ("username='alice' password='secret'", "alice", "secret"),
        ("password=secret username=alice", "alice", "secret"),
        ('username = "alice"\n\tpassword\n=\n"secret"', "alice", "secret"),
        ('username="alice"password="secret"', "alice", "secret"),
        ("""username="a'b" password='a"b'""", "a'b", 'a"b'),
        (r"""username="a\"b" password='\'\\'""", 'a"b', "'\\"),
        (r'username="\t\n\r\f\v\b\a\q" password="\101\7\477\x"', "\t\n\r\f\v\b\aq", "A\x07'7x"),
        ('username="$ConnectionString" password="Endpoint=sb://a/;Key=b="', *(
            "$ConnectionString", "Endpoint=sb://a/;Key=b=",
        )),
        ("username=$ConnectionString password=a.b-c_1", "$ConnectionString", "a.b-c_1"),
        ('username="ä" password="/* # // ;=\u20ac"', "ä", "/* # // ;=\u20ac"),
        ("/* a;b */ username=alice // required\n password=secret", "alice", "secret"),
        ('username="password" password="username"', "password", "username"),
    ],
)  # fmt: skip
def test_values_are_those_of_java(options: str, username: str, password: str) -> None:
    found = parse_jaas_config(f"{PLAIN} required {options};")
    assert (found.username, found.password.reveal()) == (username, password)


@pytest.mark.parametrize(
    ("option", "is_token"), [("", False), ("tokenauth=true", True), ("tokenauth='FALSE'", False)]
)
def test_user_of_scram_may_be_a_delegation_token(option: str, is_token: bool) -> None:
    found = parse_jaas_config(f"{SCRAM} required username=a password=b {option};")
    assert found.tokenauth is is_token


def test_oauthbearer_has_client_credentials_and_extensions() -> None:
    found = parse_jaas_config(
        f'{OAUTHBEARER} required clientId="me" clientSecret=\'c a\' scope="a b" extension_pool=p;'
    )
    assert found.mechanisms == ("OAUTHBEARER",)
    assert (found.username, found.password.reveal(), found.scope) == ("me", "c a", "a b")
    assert found.extensions == {"pool": "p"}
    empty = parse_jaas_config(f"{OAUTHBEARER} required;")
    assert (empty.username, empty.password.reveal(), empty.scope) == ("", "", "")


@pytest.mark.parametrize(
    ("options", "login"),
    [
        ("useTicketCache=true serviceName=kafka", KerberosLogin("kafka", "", "", "")),
        (
            'useTicketCache=true ticketCache="/tmp/a" principal="a@B" renewTGT=false',
            KerberosLogin("", "", "/tmp/a", "a@B"),  # noqa: S108 (is not opened)
        ),
        (
            'useKeyTab=True storeKey=true doNotPrompt=true keyTab="/a.keytab" principal="a@B"',
            KerberosLogin("", "/a.keytab", "", "a@B"),
        ),
    ],
)
def test_kerberos_has_keytab_or_tickets(options: str, login: KerberosLogin) -> None:
    found = parse_jaas_config(f"{KERBEROS} required {options};")
    assert found.mechanisms == ("GSSAPI",)
    assert found.kerberos == login
    with pytest.raises(ValueError, match="listeners do not authenticate by Kerberos"):
        parse_server_jaas_config(f"{KERBEROS} required {options};")


@pytest.mark.parametrize("flag", ["required", "requisite", "sufficient", "optional", "REQUIRED"])
def test_each_control_flag_is_accepted(flag: str) -> None:
    found = parse_jaas_config(f"\n {SCRAM}\n{flag} username=a password=b ; // end")
    assert found.mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it does not end with ';'"),
        ("canary", "it does not end with ';'"),
        (f"{PLAIN} required username=a password=canary", "it does not end with ';'"),
        (f"{PLAIN} required username=a password=canary; canary", "it does not end with ';'"),
        (f"{PLAIN} required username=a password='canary;", "its quote does not end"),
        (f"{PLAIN} required username=a password='can\nary';", "its quote does not end"),
        (f"{PLAIN} required username=a password=canary#;", "character 92 is not allowed outside"),
        (f"{PLAIN} required username=a password=7canary;", "not allowed outside of quotes"),
        (f"{PLAIN} required username=a password=canary/b;", "not allowed outside of quotes"),
        (f"{PLAIN} required username=a password=b;/* canary", "not allowed outside of quotes"),
        (f"{PLAIN} required username=a password=canary;;", "more than one entry"),
        (f"{PLAIN} required username=a password=b;{SCRAM} required;", "more than one entry"),
        (";", "its first word is none of org.apache.kafka"),
        ("canary;", "its first word is none of org.apache.kafka"),
        ("=;", "its first word is none of"),
        ("username='a' password='canary';", "its first word is none of org.apache.kafka"),
        ("a.OtherLoginModule required;", f"the module a.OtherLoginModule is none of {PLAIN}"),
        (f"{OAUTHBEARER} required username=canary;", "is none of clientId, clientSecret, scope"),
        (f"{OAUTHBEARER} required scope=a scope=canary;", "it has scope twice"),
        (f"{OAUTHBEARER} required extension_b=a extension_b=c;", "it has extension_ twice"),
        (f"{OAUTHBEARER} required extension_auth=canary;", "an option extension_NAME, or its val"),
        (
            f"{OAUTHBEARER} required extension_canary='a\\1';",
            "an option extension_NAME, or its val",
        ),
        (f"{PLAIN};", "no control flag after the module: one of required, requisite, suff"),
        (f"{PLAIN} username=a password=canary;", "no control flag after the module"),
        (f"{PLAIN} = a;", "no control flag after the module"),
        (f"{PLAIN} canary username=a password=b;", "no control flag after the module"),
        (f"{PLAIN} required username a password=canary;", "character 66 does not begin an option"),
        (f"{PLAIN} required password=;", "character 66 does not begin an option NAME=VALUE"),
        (f"{PLAIN} required username=a password=canary canary;", "does not begin an option"),
        (f"{PLAIN} required username=a password==canary;", "does not begin an option"),
        (f"{PLAIN} required username=a canary=b;", "at character 77 is none of username, p"),
        (f"{PLAIN} required username=a user_canary=b;", "at character 77 is none of username, p"),
        (f"{PLAIN} required clientId=canary;", "the option clientId; it is an option of OAUTHB"),
        (f"{PLAIN} required tokenauth=true;", "it has the option tokenauth; it is an option of SC"),
        (
            f"{SCRAM} required username=a password=b tokenauth=canary;",
            "its tokenauth is neither true nor false",
        ),
        (f"{PLAIN} required user=canary;", "it has the option user; the option is named username"),
        (f"{PLAIN} required username=a password=b password=canary;", "it has password twice"),
        (f"{PLAIN} required password=canary;", "it has no username"),
        (f"{PLAIN} required username=canary;", "it has no password"),
        (f"{PLAIN} required username=canary password='';", "it has no password"),
        (f"{PLAIN} required;", "it has no username"),
        (f"{KERBEROS} required;", "it has neither or both of useKeyTab=true and"),
        (f"{KERBEROS} required useKeyTab=canary;", "its useKeyTab is neither true nor false"),
        (f"{KERBEROS} required useKeyTab=true;", "it has one of useKeyTab=true and keyTab"),
        (
            f"{KERBEROS} required useTicketCache=true keyTab=canary;",
            "it has one of useKeyTab=true and keyTab",
        ),
        (
            f"{KERBEROS} required useKeyTab=true keyTab=a ticketCache=canary;",
            "it has ticketCache without useTicketCache=true",
        ),
        (f"{KERBEROS} required renewTGT=true;", "it has the option renewTGT; tickets are not ren"),
        (
            f"{KERBEROS} required canary=a;",
            "is none of serviceName, keyTab, ticketCache, principal",
        ),
        (" " * MAX_LENGTH + "canary", "it is longer than 65536 characters"),
    ],
)
def test_errors_show_no_part_of_the_value(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^(it|character|no|the|its) ") as caught:
        parse_jaas_config(text)
    assert problem in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("part", ["'\\", "/*", '"a', "=", " ", "//", "a=", ";"])
def test_long_values_are_read_in_linear_time(part: str) -> None:
    with pytest.raises(ValueError, match=r"^(it|character|no|the|its) "):
        parse_jaas_config(part * (MAX_LENGTH // len(part)))
