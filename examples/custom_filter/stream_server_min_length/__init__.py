"""The parameter ``min_length`` for stream-server: only posts of so many characters or more."""
