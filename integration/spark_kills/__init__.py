"""Kills drivers and executors of Spark at given points, and counts lost and duplicate records."""
