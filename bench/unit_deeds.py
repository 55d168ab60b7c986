"""The deeds whose costs are measured: posts, deletes, follows and pages."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from bench.poster import TOPICS, Connection
from bench.unit_site import FOLLOWS_AT_ONCE, UnitSite

TEXT_CHARS = 100
"""Length of a post in characters, with the mention."""

PAGE = 30
"""Statuses of a page."""

FOLLOWERS = (0, 10, 1000)
"""Followers of the authors."""

POSTS_OF_AN_AUTHOR = 30
"""Posts of each kind that one author writes, at least a page."""

Call = Callable[[Connection, int], Awaitable[Any]]


class Deed(NamedTuple):
    """A deed: its name, how many are done one at a time and then many at a time, and the request with a number."""

    name: str
    alone: int
    times: int
    call: Call


class Community:
    """The people of a run, and the deeds that they do.

    ``size`` is the number of most deeds, besides those that are done one at a time: a third as many. Those of an
    author with 1,000 followers are a tenth.
    """

    def __init__(self, site: UnitSite, size: int) -> None:
        self._site, self._size = site, size
        self._authors = max(1, size // POSTS_OF_AN_AUTHOR)
        self._named = site.site.users("named", 100)
        self._posted: dict[str, list[tuple[str, str]]] = {}
        self.authors = {count: self._authors_with(count) for count in FOLLOWERS}

    async def gather(self) -> None:
        """Let the followers follow their authors, and fill their home timelines."""
        for count, authors in self.authors.items():
            readers = self.readers(count)
            await self._site.follow(readers, authors)
            await asyncio.to_thread(self._site.fill_homes, readers)

    def sign_ups(self) -> list[Deed]:
        """Return new users, whom an administrator creates."""
        token = self._site.site.token(self._site.site.admin, "admin")

        async def create(connection: Connection, number: int) -> None:
            users = [{"login": f"newcomer{number}", "name": f"Newcomer {number}"}]
            await connection.call("POST", "/v1/admin/users", token, {"users": users})

        return [self._deed("user", self._size, create)]

    def posts(self) -> list[Deed]:
        """Return posts without and with a mention, of authors with different numbers of followers."""
        return [self._post(followers, mention=mention) for followers in FOLLOWERS for mention in (False, True)]

    def pages(self) -> list[Deed]:
        """Return pages of 30 statuses: home timelines of readers, and profiles of authors."""
        tokens = self._site.tokens(self.readers(10), "read")
        authors = self.authors[10]

        async def home(connection: Connection, number: int) -> None:
            await connection.call("GET", f"/v1/timelines/home?count={PAGE}", tokens[number % len(tokens)])

        async def profile(connection: Connection, number: int) -> None:
            path = f"/v1/users/{authors[number % len(authors)]}/statuses?count={PAGE}"
            await connection.call("GET", path, tokens[number % len(tokens)])

        return [self._deed("home page", self._size, home), self._deed("profile page", self._size, profile)]

    def deletes(self) -> list[Deed]:
        """Return deletes of posts of authors with ten followers."""
        return [self._delete(post_name(10, mention=mention)) for mention in (False, True)]

    def follows(self) -> list[Deed]:
        """Return follows of authors with a page of posts, by users who follow nobody yet, and the opposite."""
        tokens = self._site.tokens(self._site.site.users("walker", 2 * self._size), "write")
        authors = self.authors[0]

        def path(number: int) -> str:
            return f"/v1/users/me/following/{authors[number % len(authors)]}"

        async def follow(connection: Connection, number: int) -> None:
            await connection.call("PUT", path(number), tokens[number])

        async def unfollow(connection: Connection, number: int) -> None:
            await connection.call("DELETE", path(number), tokens[number])

        return [self._deed("follow", self._size, follow), self._deed("unfollow", self._size, unfollow)]

    def _post(self, followers: int, *, mention: bool) -> Deed:
        name = post_name(followers, mention=mention)
        tokens = self._site.tokens(self.authors[followers], "write")
        count = self._size if followers <= FOLLOWS_AT_ONCE else max(1, self._size // 10)
        posted = self._posted.setdefault(name, [])

        async def post(connection: Connection, number: int) -> None:
            token = tokens[number % len(tokens)]
            text = text_of(number, f" @named{number % len(self._named)}" if mention else "")
            status = await connection.call("POST", "/v1/statuses", token, {"message": text})
            posted.append((token, status["id"]))

        return self._deed(name, count, post)

    def _delete(self, name: str) -> Deed:
        posted = self._posted[name]

        async def delete(connection: Connection, number: int) -> None:
            token, status = posted[number]
            await connection.call("DELETE", f"/v1/statuses/{status}", token)

        alone = len(posted) // 4
        return Deed(f"delete of a {name}", alone, len(posted) - alone, delete)

    def _deed(self, name: str, times: int, call: Call) -> Deed:
        return Deed(name, max(1, times // 3), times, call)

    def _authors_with(self, followers: int) -> list[str]:
        return self._site.site.users(f"author{followers}x", self._authors if followers <= FOLLOWS_AT_ONCE else 1)

    def readers(self, followers: int) -> list[str]:
        return self._site.site.users(f"reader{followers}x", followers)


def post_name(followers: int, *, mention: bool) -> str:
    """Return the name of a post of an author with so many followers."""
    return f"post, {followers} followers{', mention' if mention else ''}"


def text_of(number: int, ending: str = "") -> str:
    """Return the text of a post. It has one of ten topics as a word."""
    start = f"topic{number % TOPICS} flight {number} is delayed again and everyone at the gate talks about it while "
    return (start + "they wait for the next call to board")[: TEXT_CHARS - len(ending)] + ending
