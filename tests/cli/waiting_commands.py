"""Commands that wait for a broker, up to their ``--timeout``."""

COMMANDS = [
    ("topics", "list"),
    ("topics", "describe", "t"),
    ("topics", "create", "t"),
    ("topics", "delete", "t"),
    ("topics", "alter", "t", "--partitions", "2"),
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("groups", "delete", "g"),
    ("users", "list"),
    ("users", "describe", "u"),
    ("users", "add", "u", "--password-file", "-"),
    ("users", "alter", "u", "--password-file", "-"),
    ("users", "delete", "u"),
    ("acls", "list"),
    ("acls", "add", "--topic", "t", "--allow-principal", "User:u"),
    ("acls", "remove", "--topic", "t", "--force"),
    ("consume", "t"),
    ("consume", "t", "--group", "g"),
]
