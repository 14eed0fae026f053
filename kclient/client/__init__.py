"""Requests to a cluster: connections by node, requests in flight, versions, metadata."""
