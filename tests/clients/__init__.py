"""Third-party client libraries against the real server. Existing programs must work unchanged, except for the host."""
