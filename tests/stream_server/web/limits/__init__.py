"""Limits of what one user or address may ask."""
