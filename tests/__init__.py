"""Tests of the project; a package, so that what they share can be imported."""
