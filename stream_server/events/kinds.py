"""The kinds of entries, the channels on which Redis publishes them, and the audiences."""

from filters.narrowing import KINDS, PERSONAL_KINDS

PUBLIC_AUDIENCE = "public"
"""Audience of an entry that everyone may see. Entries that only control the server have the audience ``-``."""

FOLLOWERS_PREFIX, GROUP_PREFIX, USERS_PREFIX = "followers:", "group:", "users:"
"""Prefixes of the other audiences: the followers of a user, the members of a group, and only the named users."""

INTERNAL_KINDS = ("revoke", "suspend", "reinstate", "rules", "rollback", "stream")
"""Kinds that control the server and are not delivered. For a ``rollback`` of the log, streams get a ``gap``."""

RIGHTS_KINDS = frozenset({"revoke", "suspend", "reinstate", "rollback"})
"""Kinds of entries after which the rights of the user whom they name may be others; a ``rollback`` concerns all."""

DELETION_KINDS = {"post": "delete", "comment": "uncomment"}
"""Each kind that creates a status or comment, with the kind that deletes it for every client that received it."""

CREATION_KINDS = {end: begin for begin, end in DELETION_KINDS.items()}
"""Each deleting kind with the kind that creates what it deletes."""

PROTECTION_KINDS = frozenset({"protect", "unprotect"})
"""Kinds that say that a user's protection begins or ends. They show the user's card, which everybody may see."""

REACTION_KINDS = frozenset({"like", "unlike", "comment", "uncomment"})
"""Kinds of reactions to a status. One between two protected users is addressed to these two."""

ALL_KINDS = (*KINDS, *PERSONAL_KINDS, *INTERNAL_KINDS)
"""Every kind that the log may hold."""

CHANNELS = tuple(f"events:{kind}" for kind in ALL_KINDS)
"""One Redis channel per kind, so a plain Redis listener can SUBSCRIBE to a single kind."""

KNOWN_KINDS = frozenset(ALL_KINDS)
""":data:`ALL_KINDS` as a set."""
