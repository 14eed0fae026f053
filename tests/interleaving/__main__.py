"""Runner of seeds with preemption anywhere: ``python -m tests.interleaving --seeds 50``.

With ``--unguarded`` locks are removed, and seeds are expected to fail.
"""

import argparse
import logging
import sys
import traceback
from importlib import import_module

from tests.interleaving.preemption import install


def main() -> int:
    """Run the command; return the number of failed seeds, at most 100."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleaving", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--probability", type=float, default=0.02)
    parser.add_argument("--unguarded", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    preemption = install(options.probability)
    # Only now: modules imported before are not preempted.
    shared_producer = import_module("tests.interleaving.shared_producer")
    if options.unguarded:
        import_module("tests.interleaving.unguarded").remove_locks()
    failed = 0
    for seed in range(options.first, options.first + options.seeds):
        before = preemption.count
        try:
            shared_producer.play(seed, preemption)
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt):
                raise
            failed += 1
            lines = traceback.format_exception(problem)
            sys.stdout.write(f"seed {seed} failed\n{''.join(lines)}\n")
        else:
            sys.stdout.write(f"seed {seed}: {preemption.count - before} interruptions\n")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
