"""The commands, and the small nouns that they are made of."""
