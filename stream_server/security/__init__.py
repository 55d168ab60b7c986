"""Tokens, the keys that verify them, and password hashes.

The one decision: **the settings pin the algorithm and the key of tokens.** A token cannot choose how it is verified.

``claims``     what a valid token says: its user, or the limits of a reader
``tokens``     issues and verifies JSON Web Tokens, those of HS256 in a shorter way than the library
``clock_check``    notices a wrong clock, by the times of valid tokens and by Redis
``external_identity``  users of another identity provider, and the scopes of their tokens
``signing_keys``       the keys of tokens: from the settings, a file, the data folder or a key set
``key_set``    fetches the public keys of another issuer (JWKS)
``passwords``  argon2id hashes, computed in a thread
"""
