"""Tokens, the keys that verify them, and password hashes.

The one decision: **the settings pin the algorithm and the key of tokens.** A token cannot choose how it is verified.

``tokens``     issues and verifies JSON Web Tokens
``hs256``      a short way to verify tokens of HS256
``verified_tokens``    remembers the claims of verified tokens
``bus_key``    the key that signs published entries
``external_identity``  users of another identity provider, and the scopes of their tokens
``signing_keys``       the keys of tokens: from the settings, a file, the data folder or a key set
``key_set``    fetches the public keys of another issuer (JWKS)
``passwords``  argon2id hashes, computed in a thread
"""
