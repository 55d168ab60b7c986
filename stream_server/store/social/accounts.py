"""Accounts: how users delete theirs, and how administrators delete those of others.

One step hides the user, ends the sessions, and leaves a job that removes the rest (``lua/account.lua``).
"""

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.noun import Noun

_BY_ADMIN = "-"
"""Stands in the place of the hash of the user's password, which no administrator knows."""


class Accounts(Noun):
    """Deletes accounts."""

    async def delete_own(self, uid: str, password_hash: str, idempotency_key: IdempotencyKey) -> None:
        """Delete the account of ``uid``. ``password_hash`` is the hash of the password that was checked, or empty.

        Raises Forbidden ``wrong_password`` if the account has another password now.
        """
        await self._scripts.write("account_delete", idempotency_key, actor=uid, uid=uid, password=password_hash)

    async def delete(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> None:
        """Delete the account of another user. A repetition changes nothing.

        Raises NotFound for an unknown user, and BadRequest if administrators delete themselves.
        """
        await self._scripts.write("account_delete", idempotency_key, actor=admin, uid=uid, password=_BY_ADMIN)
