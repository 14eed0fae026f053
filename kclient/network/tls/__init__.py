"""TLS: contexts, the transport layer, and the texts of its failures."""
