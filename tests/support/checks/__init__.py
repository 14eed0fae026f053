"""Conditions, comparisons and checks that tests share."""
