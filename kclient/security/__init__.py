"""Secrets, and later the SASL mechanisms and TLS settings."""
