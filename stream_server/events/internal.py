"""The contents of entries that control the servers, and that no client gets."""

import msgspec


class Revocation(msgspec.Struct):
    """The content of a ``revoke``, ``suspend`` or ``reinstate`` entry: the rights of a user that begin or end.

    Attributes:
        uid: The user.
        jti: Id of a revoked token without a session.
        sessions: Ids of ended sessions.
        before: The tokens without a session that were issued up to this Unix time (s) are revoked.
        deleted: Whether a ``suspend`` is that of an account that was deleted, which no ``reinstate`` ends.
    """

    uid: str
    jti: str | None = None
    sessions: list[str] = []
    before: int | None = None
    deleted: bool = False


class CommandToken(msgspec.Struct):
    """The access token with which a stream goes on. Times are in seconds since 1970."""

    jti: str
    session: str
    issued_at: float
    expires_at: float


class StreamCommand(msgspec.Struct):
    """A command for one stream of the user ``uid``: ``close`` it with a code, or ``prolong`` it with a token.

    ``scopes`` are those of the token. A ``close`` has neither.
    """

    uid: str
    connection: str
    action: str
    code: str = ""
    token: CommandToken | None = None
    scopes: list[str] | None = None


class SavedRule(msgspec.Struct, frozen=True):
    """A filter rule that a user saved on the server. ``rule`` is its text, ``tag`` is the user's label for it."""

    id: str
    rule: str
    tag: str = ""


class SavedRulesChange(msgspec.Struct):
    """A change of one user's saved rules: the rules that were added, and the ids of those that were removed."""

    uid: str
    added: list[SavedRule] = []
    removed: list[str] = []


class LostRange(msgspec.Struct):
    """The part of the log that a ``rollback`` reports as lost: the entries after the cursor ``start``, up to ``to``."""

    start: str = msgspec.field(name="from")
    to: str
