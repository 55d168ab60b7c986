"""A real browser: what only it can show of streams, their tickets and the pages that follow them."""
