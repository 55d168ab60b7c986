"""The client without ``async``, for scripts and notebooks: the same calls, and streams for an ordinary ``for``.

It runs the asynchronous client in a thread of its own. So it also works where an event loop is running already, as in a
notebook. Ctrl-C ends the wait for an answer or an event, and the client can be used on. Several threads may use one
client, also one stream: then each event goes to one of them.
"""

import asyncio
import concurrent.futures
import functools
import os
import selectors
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from stream_server.client.call import BlockingCaller
from stream_server.client.calls import Calls
from stream_server.client.client import Client as AsyncClient
from stream_server.client.client import Token
from stream_server.client.stream import Stream as AsyncStream
from stream_server.client.transport import ClientOptions
from stream_server.wire.messages import Event

P = ParamSpec("P")
R = TypeVar("R")

FORKED = "the client was opened before a fork, and belongs to the other process: make a new one in this process"

_inheritable: "weakref.WeakSet[LoopThread | Events | Client]" = weakref.WeakSet()
"""The objects of which a forked process gets copies. Their threads are not copied, and their locks stay as they are."""


def _leave_to_parent() -> None:
    """Make the copies in a forked process harmless: no call, no close and no exit waits for a missing thread."""
    for each in list(_inheritable):
        each.leave_to_parent()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_leave_to_parent)


class LoopThread:
    """An event loop in a daemon thread, which runs coroutines for other threads."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        _inheritable.add(self)
        self._calls: set[asyncio.Task[Any]] = set()  # only the loop's thread uses it
        self._is_stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="stream-server client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def run(self, work: Awaitable[R]) -> R:
        """Run an awaitable in the loop, and return its result. Ctrl-C cancels it and waits up to 5 s for its end.

        Raises RuntimeError if it is called in the loop's own thread, which would wait for itself, and if another thread
        ends the wait by closing the stream or the client.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("a callback of the client cannot wait for the client; use another thread")
        ended = threading.Event()
        with self._lock:  # what comes after the stop would never run, and its caller would wait forever
            if self._is_stopping:
                raise RuntimeError("the client is closed")
            future = asyncio.run_coroutine_threadsafe(self._track(work, ended), self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError("another thread closed the stream or the client") from None
        except BaseException:  # also KeyboardInterrupt
            if not future.done():
                future.cancel()
                ended.wait(5.0)
            raise

    def leave_to_parent(self) -> None:
        """Let go, in a forked process, of the connections and of the kernel's list of them, which both processes share.

        What the garbage collector closes here would otherwise leave the list of the parent, or say goodbye to a server
        by TLS. The parent's close would not reach the server before the end of this process.
        """
        nothing = os.open(os.devnull, os.O_RDWR)
        shared = [key.fd for key in (self._selector.get_map() or {}).values()]
        if isinstance(self._selector, getattr(selectors, "EpollSelector", ())):
            shared.append(self._selector.fileno())
        for descriptor in shared:
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
        self._loop.set_exception_handler(lambda *_: None)  # no word of sessions that nobody closed

    def stop(self, client: AsyncClient) -> None:
        """End what runs for other threads, close the client, and stop the loop and the thread.

        In the loop's own thread, where the garbage collector may call it, it begins all this and does not wait.
        """
        with self._lock:
            self._is_stopping = True
        finished = asyncio.run_coroutine_threadsafe(self._finish(client), self._loop)
        if threading.current_thread() is self._thread:
            return
        try:
            finished.result()
        except BaseException:  # also KeyboardInterrupt
            finished.cancel()
            raise
        finally:
            self._thread.join()

    async def _finish(self, client: AsyncClient) -> None:
        try:
            for task in self._calls:
                task.cancel()
            if self._calls:
                await asyncio.wait(self._calls)
            await client.__aexit__(None, None, None)
            await self._loop.shutdown_asyncgens()
        finally:
            self._loop.call_soon(self._loop.stop)  # a turn later, after those who wait for this have been told

    async def _track(self, work: Awaitable[R], ended: threading.Event) -> R:
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            return await work
        finally:
            self._calls.discard(task)
            ended.set()


class Events:
    """The events of a stream or of long polling, for an ordinary ``for``.

    Events that arrived together wait here until the loop asks for them.
    """

    def __init__(self, source: AsyncStream, thread: Callable[[], LoopThread]) -> None:
        self._source = source
        self._thread = thread
        self._waiting: deque[Event] = deque()
        self._cursor = source.cursor
        self._fetching: asyncio.Task[Any] | None = None
        self._turn = threading.RLock()
        self._is_left = False
        _inheritable.add(self)

    @property
    def cursor(self) -> str | None:
        """Position after the last event that was yielded. Store it, and pass it as ``since`` to go on without loss."""
        return self._cursor if self._waiting else self._source.cursor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        with self._turn:
            if not self._waiting:
                self._thread().run(self._fetch())
            event = self._waiting.popleft()
            self._cursor = event.cursor
            return event

    def next_batch(self) -> list[Event]:
        """Return the events that arrive together, at least one, in order."""
        with self._turn:
            first = next(self)
            rest = [self._waiting.popleft() for _ in range(len(self._waiting))]
            return [first, *rest]

    def close(self) -> None:
        """Close the connection of the stream. Iterated again, it opens a new one.

        Another thread that waits for an event gets a RuntimeError.
        """
        if not self._is_left:
            self._thread().run(self._close())

    def leave_to_parent(self) -> None:
        """Leave the connection, in a forked process, to the other one."""
        self._turn = threading.RLock()
        self._is_left = True

    async def _close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._source.close()

    async def _fetch(self) -> None:
        """Wait for the next events and append them to ``_waiting``.

        They are not returned, because Ctrl-C could lose the result of a call.
        """
        self._fetching = asyncio.current_task()
        try:
            self._waiting.extend(await self._source.next_batch())
        finally:
            self._fetching = None


def _iterated(
    call: Callable[Concatenate[AsyncClient, P], AsyncStream],
) -> Callable[Concatenate["Client", P], Events]:
    """Return the method of the blocking client for one of the asynchronous one that returns events, with its arguments.

    The client calls ``on_connection_change`` in its own thread.
    """

    def iterate(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Events:
        return Events(call(self._client, *args, **kwargs), self._thread)

    functools.update_wrapper(iterate, call)
    return iterate


class Client(BlockingCaller, Calls):
    """A client of one server that blocks, with the arguments of the asynchronous :class:`~stream_server.client.Client`.

        with Client("http://127.0.0.1:8000", token=LogIn("ada", "a good password")) as client:
            client.post("good morning")
            for event in client.stream(track="redis,postgres"):
                print(event.kind, event.cursor)

    It opens with its first call, so a notebook can use it without ``with``, and call :meth:`close` at the end. A client
    that nobody closes is closed when nobody refers to it any more, or when the program ends.

    After a fork, an open client and its streams belong to the parent. In the child a call raises RuntimeError, and a
    close does nothing: two processes cannot share a connection or a log-in session.
    """

    def __init__(self, url: str, token: Token | None = None, **options: Unpack[ClientOptions]) -> None:
        self._client = AsyncClient(url, token, **options)
        self._opened: LoopThread | None = None
        self._finish: weakref.finalize[[AsyncClient], Client] | None = None
        self._is_closed = self._is_left = False
        self._lock = threading.Lock()
        _inheritable.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and the thread. The client cannot be used any more.

        Other threads that wait for it get a RuntimeError.
        """
        with self._lock:
            self._is_closed = True
            finish = self._finish
        if finish is not None:
            finish()

    def leave_to_parent(self) -> None:
        """Leave the connections and the log-in session, in a forked process, to the other one."""
        is_opening, self._lock = self._lock.locked(), threading.Lock()
        self._is_left = is_opening or self._opened is not None
        if self._finish is not None:
            self._finish.detach()

    def _thread(self) -> LoopThread:
        with self._lock:
            if self._is_left:
                raise RuntimeError(FORKED)
            if self._is_closed:
                raise RuntimeError("the client is closed")
            if self._opened is None:
                thread = LoopThread()
                thread.run(self._client.__aenter__())
                self._opened = thread
                self._finish = weakref.finalize(self, thread.stop, self._client)
            return self._opened

    def _wait_for(self, make: Callable[[AsyncClient], Awaitable[R]]) -> R:
        return self._thread().run(make(self._client))

    @property
    def url(self) -> str:
        """The server's base URL, without a slash at the end."""
        return self._client.url

    @property
    def repeats(self) -> int:
        """The number of requests that were sent again after a temporary failure."""
        return self._client.repeats

    stream = _iterated(AsyncClient.stream)
    user_stream = _iterated(AsyncClient.user_stream)
    poll = _iterated(AsyncClient.poll)
