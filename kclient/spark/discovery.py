"""Whether Spark finds ``format("kclient")`` by itself, as it looks for data sources."""

from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

PACKAGE: Final = "pyspark_kclient"
"""The top-level package that Spark imports to look for the source."""

REGISTRATION: Final = Path(__file__).parent / "registration"
"""Where that package lies in a checkout; an installed wheel has it beside `kclient`."""


def is_found() -> bool:
    """Return whether Spark finds the data source in this process's environment as it is.

    Spark lists the modules on ``sys.path``. To look for one there is the same and many times
    quicker; finders of editable installs, which are not on it, are left out here, too.
    """
    return PathFinder.find_spec(PACKAGE) is not None
