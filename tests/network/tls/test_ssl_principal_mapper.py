"""Rules of ssl.principal.mapping.rules."""

import pytest

from kclient.network.tls.ssl_principal_mapper import MAX_SUBJECT, SslPrincipalMapper

SUBJECT = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "subject", "expected"),
    [
        ("DEFAULT", SUBJECT, SUBJECT),
        ("RULE:^CN=(.*?),.*$/$1/L,DEFAULT", SUBJECT, "duke"),
        ("RULE:^CN=(.*?),.*$/$1/U", SUBJECT, "DUKE"),
        ("RULE:CN=(.*?),OU=(.*?),.*/$1@$2/", SUBJECT, "Duke@ServiceUsers"),
        ("RULE:^cn=.*$/never/, RULE:^CN=.*$/second/ , DEFAULT", SUBJECT, "second"),
        ("RULE:^CN=Duke$/part/,DEFAULT", SUBJECT, SUBJECT),
        ("RULE:^O=.*$/no/", SUBJECT, None),
        (r"RULE:^CN=(.*?)\/(.*)$/$1\/$2/", "CN=a/b", "a/b"),
        (r"RULE:^CN=(.*)$/\$1 $9 $/", "CN=a", "$1 $9 $"),
        ("RULE:^CN=(x)?.*$/<$1>/", "CN=a", "<>"),
        ("RULE:^.*$/long/", "C" * (MAX_SUBJECT + 1), None),
    ],
)
def test_first_rule_that_fits_is_applied(rules: str, subject: str, expected: str | None) -> None:
    assert SslPrincipalMapper(rules).name_of(subject) == expected


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("", "it has no rule"),
        ("default", "no rule begins at character 1"),
        ("DEFAULT,RULE:a/b", "no rule begins at character 9"),
        ("RULE:a/b/X", "no rule begins at character 1"),
        ("RULE:(/b/", r"the pattern '\(' is wrong"),
    ],
)
def test_other_text_is_refused(rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SslPrincipalMapper(rules)
