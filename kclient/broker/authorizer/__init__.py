"""Authorization of requests by ACLs."""
