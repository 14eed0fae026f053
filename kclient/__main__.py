"""``python -m kclient``: the ``kclient`` command."""

import sys

from kclient.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
