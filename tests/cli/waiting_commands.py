"""Commands that wait for a broker, up to their ``--timeout``."""

COMMANDS = [
    ("topics", "list"),
    ("topics", "describe", "t"),
    ("topics", "create", "t"),
    ("topics", "delete", "t"),
    ("topics", "add-partitions", "t", "--total", "2"),
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("groups", "delete", "g"),
    ("consume", "t"),
    ("consume", "t", "--group", "g"),
]
