"""Kills drivers and executors of Spark at chosen points and counts what that did to the records."""
