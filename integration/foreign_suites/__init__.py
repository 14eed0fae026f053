"""Other projects' own tests, run against the companion broker.

Nothing of theirs is kept here: the source distribution of the installed version is fetched from
the package index, unpacked in a temporary directory, and run there by its own means.
"""
