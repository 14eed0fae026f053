"""Definitions that all of `kclient.spark` uses: errors, offsets, the installed Spark."""
