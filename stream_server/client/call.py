"""A call of a client that has a single answer, declared by its route, its arguments and its answer.

An argument that the path names goes into the path. What is left of the arguments is the JSON body, without None. The
annotation of the result is the shape of the answer.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypedDict, TypeVar, cast, get_args, get_origin, overload
from urllib.parse import quote

import msgspec

from stream_server.client.transport import Transport, decode_answer

P = ParamSpec("P")
R = TypeVar("R")
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


class AsyncCaller:
    """Base of the client whose calls are coroutines."""

    _transport: Transport


class BlockingCaller:
    """Base of the client whose calls wait."""

    def _wait_for(self, make: Callable[[Any], Awaitable[R]]) -> R:
        """Return the result of what ``make`` makes of the asynchronous client."""
        raise NotImplementedError


class Call(Generic[P, R]):
    """A method of both clients: a coroutine function of the asynchronous one, a plain function of the other."""

    def __init__(self, run: Callable[Concatenate[Any, P], Awaitable[R]]) -> None:
        self._run = run

    @overload
    def __get__(self, client: AsyncCaller, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...

    @overload
    def __get__(self, client: BlockingCaller, owner: type) -> Callable[P, R]: ...

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Awaitable[R]]: ...

    def __get__(self, client: Any, owner: type) -> Any:
        if not isinstance(client, BlockingCaller):
            return self._run if client is None else functools.partial(self._run, client)
        return lambda *args, **kwargs: client._wait_for(lambda caller: self._run(caller, *args, **kwargs))  # noqa: SLF001 - the other half of this class


def call(
    method: str,
    path: str,
    member: str = "",
    *,
    body: Mapping[str, str] | None = None,
    token: str | None = None,
    is_read: bool = False,
) -> Callable[[Callable[Concatenate[Any, P], R]], Call[P, R]]:
    """Make a call of a declared method. Its route is ``method`` and ``/v1/`` + ``path``.

    ``member`` is the member of the answer that is the result, or the list of a page. ``body`` maps members of the body
    to arguments where the names differ. ``token`` and ``is_read`` are as in :class:`RequestOptions`.
    """

    def decorate(declared: Callable[Concatenate[Any, P], R]) -> Call[P, R]:
        signature = inspect.signature(declared)
        kind: Any = declared.__annotations__["return"]

        async def run(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(client, *args, **kwargs)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            given = dict(arguments)
            options = {"token": token, "is_read": is_read, **given.pop("options", {})}
            url = "/v1/" + path.format_map({name: quote(str(value), safe="") for name, value in given.items()})
            rest = {name: value for name, value in given.items() if value is not None and f"{{{name}}}" not in path}
            if "token" in rest:
                options["token"] = rest.pop("token")
            if get_origin(kind) is Page:
                page: Any = await _read_page(client._transport, kind, member, url, options)  # noqa: SLF001 - see Call
                return cast("R", page)
            if body is not None:
                rest = {name: rest[argument] for name, argument in body.items()}
            if rest:
                options["body"] = rest
            answer = await client._transport.request_raw(method, url, **options)  # noqa: SLF001 - see Call
            return cast("R", None if kind is None else decode_answer(answer, kind, member))

        functools.update_wrapper(run, declared)
        return Call(run)

    return decorate


async def _read_page(transport: Transport, kind: Any, noun: str, url: str, options: dict[str, Any]) -> Page[Any]:
    """Return the page of ``url``, whose items are in the member ``noun``."""
    token = options["token"]
    asked = {name: value for name, value in options.items() if name in PageOptions.__annotations__.keys() - {"token"}}
    query = {name: str(value) for name, value in asked.items() if value is not None}
    members = await transport.call(dict[str, msgspec.Raw], "GET", url, query=query, token=token)
    shapes = {"next": str | None, "prev": str | None, "unread": int | None}
    found = {name: decode_answer(bytes(members[name]), shape) for name, shape in shapes.items() if name in members}
    items = decode_answer(bytes(members.get(noun, b"null")), tuple[get_args(kind)[0], ...])  # type: ignore[misc]  # a type made at run time
    return Page(items, **found)
