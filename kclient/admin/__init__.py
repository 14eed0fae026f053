"""Topics, groups and the cluster, seen and changed."""
