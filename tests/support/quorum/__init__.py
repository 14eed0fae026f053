"""Simulation of the quorum of the metadata log: message passing, crashes, and a checker.

``python -m tests.support.quorum --seeds 300`` runs many seeds; ``--plant N`` with a planted bug.
"""
