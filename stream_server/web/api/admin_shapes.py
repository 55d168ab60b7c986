"""What an administrator asks."""

from typing import Annotated

import msgspec
from msgspec import Meta

from stream_server.web.http.fields import DisplayName, Id, Login, check_name

MAX_ACCOUNTS = 1000


class NewAccount(msgspec.Struct, forbid_unknown_fields=True):
    """One user of an admin's batch, without a password: nobody logs in as them until they are given one."""

    login: Login
    name: DisplayName

    def __post_init__(self) -> None:
        check_name(self.name)


class NewAccounts(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/admin/users``: 1 to 1,000 of them."""

    users: Annotated[list[NewAccount], Meta(min_length=1)]


class AccountResult(msgspec.Struct):
    """Who has the login now; ``created`` is false for whom there was before."""

    id: Id
    login: Login
    created: bool


class AccountResults(msgspec.Struct):
    """Each login of the batch, in its order."""

    users: list[AccountResult]
