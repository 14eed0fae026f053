"""Broker for measuring a client alone: it acknowledges at once and sends what it has kept.

Produce and Fetch are parsed by hand, the other requests by kclient's codecs. It is no broker to
test against: it has one node, no groups, no transactions and no replicas.
"""
