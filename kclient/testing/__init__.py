"""Tools for users' tests."""

from kclient.testing.embedded_cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
