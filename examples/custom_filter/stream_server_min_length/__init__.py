"""The parameter ``min_length`` for stream-server: only posts of at least this many characters."""
