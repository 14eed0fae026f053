"""Membership in a group, rebalancing and commits (Kafka: AbstractCoordinator and what hangs on it).

`ConsumerCoordinator` ties the pieces together; each piece does one exchange with the broker in
charge of the group, found by `CoordinatorFinder`.
"""
