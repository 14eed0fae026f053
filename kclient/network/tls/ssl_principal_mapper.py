"""Names of principals from subjects of client certificates (Kafka: SslPrincipalMapper)."""

import re
from typing import Final, NamedTuple

MAX_SUBJECT: Final = 1024
"""Longest subject that rules are applied to, in characters: a rule may backtrack."""

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,\s*|$)"
)
_REFERENCE = re.compile(r"\\(.)|\$(\d)|([^\\$]+)|(.)", re.DOTALL)


class _Rule(NamedTuple):
    """Rule; without a pattern it is DEFAULT."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str


class SslPrincipalMapper:
    """Rules of ``ssl.principal.mapping.rules`` (KIP-371); the first that fits is applied.

    Args:
        rules: ``RULE:PATTERN/REPLACEMENT/[LU]`` and ``DEFAULT``, separated by commas.

    Raises:
        ValueError: A rule has another form.
    """

    def __init__(self, rules: str) -> None:
        self._rules: list[_Rule] = []
        at = 0
        while at < len(rules):
            found = _RULE.match(rules, at)
            if found is None or found.end() == at:
                raise ValueError(f"no rule begins at character {at + 1}")
            self._rules.append(_rule_of(found))
            at = found.end()
        if not self._rules:
            raise ValueError("it has no rule")

    def name_of(self, subject: str) -> str | None:
        """Return the name of the principal of a subject, or None if no rule fits."""
        if len(subject) > MAX_SUBJECT:
            return None
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return subject
            found = pattern.fullmatch(subject)
            if found is not None:
                name = _expanded(replacement, found)
                return name.lower() if case == "L" else name.upper() if case == "U" else name
        return None


def _rule_of(found: re.Match[str]) -> _Rule:
    if found["default"]:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(found["pattern"])
    except re.error as error:
        raise ValueError(f"the pattern {found['pattern']!r:.80} is wrong: {error}") from None
    return _Rule(pattern, found["replacement"], found["case"])


def _expanded(replacement: str, found: re.Match[str]) -> str:
    """Return a replacement with the groups that ``$1`` to ``$9`` refer to."""
    parts = []
    for escaped, group, text, single in _REFERENCE.findall(replacement):
        if group and int(group) <= (found.re.groups):
            parts.append(found[int(group)] or "")
        else:
            parts.append(escaped or text or single or f"${group}")
    return "".join(parts)
