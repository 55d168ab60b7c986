"""TODO."""

from filters.kind import KINDS, PERSONAL_KINDS

PUBLIC_AUDIENCE = "public"
"""The audience of what everyone may see; entries that only steer the server (revocation) have ``-``."""

FOLLOWERS_PREFIX, GROUP_PREFIX, USERS_PREFIX = "followers:", "group:", "users:"
"""How the other audiences begin: the followers of a user, the members of a group, and nobody but these users."""

INTERNAL_KINDS = ("revoke", "suspend", "reinstate", "rules", "rollback")
"""The kinds that steer the server instead of being delivered; a ``rollback`` says what the log has lost: a ``gap``."""

DELETION_KINDS = {"post": "delete", "comment": "uncomment"}
"""The kinds that bring something, each with the kind that takes it back and must reach whoever was shown it."""

CREATION_KINDS = {end: begin for begin, end in DELETION_KINDS.items()}

ALL_KINDS = (*KINDS, *PERSONAL_KINDS, *INTERNAL_KINDS)

CHANNELS = tuple(f"events:{kind}" for kind in ALL_KINDS)
"""One channel a kind, so that a plain Redis listener may SUBSCRIBE to one of them."""

KNOWN_KINDS = frozenset(ALL_KINDS)
