"""Warning of a source tree without compiled modules that shadows a compiled installation.

Python puts the directory of a script, or the current directory, first on ``sys.path``. In a clone
of the project this imports the tree, even if kclient is also installed with compiled modules.
"""

import sys
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path


def warn_of_shadowed_install() -> None:
    """Warn if a later entry of ``sys.path`` has the compiled modules that this package lacks."""
    here = Path(__file__).parent
    for entry in sys.path:
        records = Path(entry, "kclient", "record")
        if records != here and any(
            (records / f"_speed{suffix}").exists() for suffix in EXTENSION_SUFFIXES
        ):
            warnings.warn(
                f"kclient is imported from {here.parents[1]}, which has no compiled modules, and "
                f"not from the compiled installation in {entry}; the slower pure Python "
                "implementation is used. Compile the source tree with 'pip install --editable .', "
                "or run the program from another directory",
                RuntimeWarning,
                stacklevel=3,
            )
            return
