"""Cluster metadata: the controller, its log, and the metadata image."""
