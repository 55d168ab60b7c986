"""Programs of others against the real server: what people already have must work as it is."""
