"""The base of the calls: typed answers, and pages of lists."""

from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

import msgspec

from stream_server.client.transport import Transport, decode_answer

T = TypeVar("T")


class WriteOptions(TypedDict, total=False):
    """The options of every write: another token, and an idempotency key: calls with the same key write once."""

    token: str | None
    key: str | None


class PageOptions(TypedDict, total=False):
    """The choice of a page of a list: ``before`` takes the ``next`` of another page, ``after`` its ``prev``."""

    count: int
    before: str | None
    after: str | None
    token: str | None


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list, the newest items first.

    Attributes:
        items: The items of this page.
        next: Pass it as ``before`` for the older items; None at the end.
        prev: Pass it as ``after`` for the newer items; None at the beginning.
        unread: On a page of notifications, how many are unread.
    """

    items: tuple[T, ...]
    next: str | None = None
    prev: str | None = None
    unread: int | None = None


class CallGroup:
    """Base of the classes with calls. It raises the exceptions of ``stream_server.client.errors``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def _page(self, kind: type[T], noun: str, path: str, options: PageOptions) -> Page[T]:
        """Return the page of ``path``, whose items are in the member ``noun``."""
        query = {name: str(value) for name, value in options.items() if name != "token" and value is not None}
        members = await self._transport.call(
            dict[str, msgspec.Raw], "GET", path, query=query, token=options.get("token")
        )  # fmt: skip
        found: dict[str, Any] = {
            name: decode_answer(bytes(members[name]), member_type)
            for name, member_type in (("next", str | None), ("prev", str | None), ("unread", int | None))
            if name in members
        }
        return Page(decode_answer(bytes(members.get(noun, b"null")), tuple[kind, ...]), **found)  # type: ignore[valid-type]  # a type made at run time


def path_of(template: str, *ids: str) -> str:
    """Return the path ``/v1/…``, in which each ``{}`` is one of the ids."""
    return "/v1/" + template.format(*(quote(each, safe="") for each in ids))


