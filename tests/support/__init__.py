"""Helpers of the tests, in folders by purpose."""
