"""A long run of writers and groups on a broker that is restarted repeatedly."""
