"""Classic group protocol: JoinGroup, SyncGroup and Heartbeat, with assignment by the leader."""
