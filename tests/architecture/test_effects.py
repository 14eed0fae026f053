"""Sockets, threads, clocks, randomness and files are used only by the modules listed here."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "kclient"

# effect (module, or module.name, or builtin) -> where it may appear, as path prefixes
ALLOWED: dict[str, tuple[str, ...]] = {
    "socket": ("network/",),
    "selectors": ("network/", "testing/virtual/virtual_event_loop.py"),
    "ssl": ("network/",),
    "time": ("common/system_tasks.py", "cli/"),
    # In testing/ it is seeded, so that a fault comes again when it is asked for again.
    "random": ("common/runtime.py", "network/system_runtime.py", "testing/"),
    # Nonces and passwords must not be foreseen, in a simulation either.
    "secrets": ("network/sasl/", "testing/cluster_security.py", "cli/demo/"),
    "uuid": ("common/uuids.py",),
    # The resolver's threads may hang; nothing may wait for them as for a task.
    "threading.Thread": ("common/system_tasks.py", "network/name_resolver.py"),
    "concurrent": ("producer/compression_pool.py",),
    "multiprocessing": (),
    "subprocess": ("cli/processes.py", "spark/environment/machine.py"),
    "asyncio": ("aio/", "testing/embedded_cluster.py", "testing/virtual/virtual_event_loop.py"),
    "mmap": (),
    "fcntl": ("common/system_files.py",),
    "shutil": ("common/system_files.py", "spark/environment/machine.py"),
    # The TLS library loads private keys from files alone.
    "tempfile": ("testing/", "cli/", "network/tls/"),
    "os": (
        "common/interrupts.py",  # the main thread of the child of a fork
        "common/system_files.py",
        "common/system_tasks.py",
        "network/",
        "record/__init__.py",
        "spark/environment/machine.py",  # the environment variables that Spark reads
        "spark/options/secret_options.py",  # the environment variables that options name
        "testing/virtual/virtual_disk.py",  # the words of an errno
        "cli/",
    ),
    "pickle": (),
    "open()": ("cli/", "network/tls/"),
    "eval()": (),
}


def effects(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}", node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield f"{node.func.id}()", node.lineno


def forbidden(effect: str, place: str) -> bool:
    for name, places in ALLOWED.items():
        if effect == name or effect.startswith(f"{name}."):
            return not place.startswith(places)
    return False


def test_effects_are_used_only_in_their_modules() -> None:
    found = [
        f"{place}:{line} uses {effect}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for place in [str(path.relative_to(PACKAGE))]
        for effect, line in effects(ast.parse(path.read_text()))
        if forbidden(effect, place)
    ]
    assert not found, "\n".join(found)
