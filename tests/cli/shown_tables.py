"""Tables that commands print."""

import re


def rows_of(shown: str) -> list[list[str]]:
    """Return the cells of each line of a table, the names of the columns first."""
    return [re.split(r" {2,}", line) for line in shown.splitlines()]
