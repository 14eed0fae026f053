"""Cluster metadata: decisions, the log that keeps them, and the image everyone reads."""
