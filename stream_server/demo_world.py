"""The small world of ``serve --demo``: a few people, and one of each thing that people do to one another.

It is made once. On a data folder that was kept, the next start finds it by what is made last; a world whose making was
broken off is made to its end under the same request keys, so that nothing is in it twice.
"""

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from stream_server.client import ApiClient, Refused

Mint = Callable[[str, frozenset[str]], str]
"""Signs a token for a user id and scopes."""

LOGIN = "ada"
PASSWORD = "demo-demo"  # noqa: S105 - it opens an account for trying, which is printed on the screen

OTHERS = ("bob", "cyd", "dora", "eli", "fay")
"""Dora is protected: Ada follows her with consent, Eli has asked and waits."""

LIST = "Bakers"
LAST = "Close friends"
"""The private list; it is there if everything is."""
GROUP = "Sourdough club"

_SCOPES = frozenset({"read", "write"})


class World(NamedTuple):
    """What Ada had to be called; the ids of the people by the logins meant for them, of Ada's list and group."""

    login: str
    people: dict[str, str]
    list_id: str
    group_id: str


async def made(api: ApiClient, mint: Mint) -> World:
    """The world, made or found; raises ``ClientFailure``."""
    people = {login: await _person(api, login) for login in (LOGIN, *OTHERS)}
    stage = Stage(api, mint, people)
    me = await api.request("GET", "/v1/users/me", token=mint(people[LOGIN], _SCOPES))
    if LAST not in await stage.lists():
        await _play(stage, me["login"])
    return World(me["login"], people, (await stage.lists())[LIST], (await stage.groups())[GROUP])


class Stage:
    """Lets people do things over HTTP; ``people`` are ids by login. What is done has a request key by its number."""

    def __init__(self, api: ApiClient, mint: Mint, people: dict[str, str]) -> None:
        self._api = api
        self._tokens = {login: mint(uid, _SCOPES) for login, uid in people.items()}
        self._done = 0
        self.people = people

    async def does(self, login: str, method: str, path: str, **body: Any) -> Any:
        """One request of somebody; ``{login}`` in the path stands for an id. Its decoded answer."""
        self._done += 1
        where, key = f"/v1/{path.format(**self.people)}", f"demo-1-{self._done}"
        return await self._api.request(method, where, body=body or None, token=self._tokens[login], key=key)

    async def posts(self, login: str, message: str, **more: Any) -> str:
        """A status; its id."""
        return str((await self.does(login, "POST", "statuses", message=message, **more))["id"])

    async def lists(self) -> dict[str, str]:
        """Ada's lists: name to id."""
        return await self._named("lists", f"/v1/users/{self.people[LOGIN]}/lists")

    async def groups(self) -> dict[str, str]:
        """Ada's groups: name to id."""
        return await self._named("groups", "/v1/users/me/groups")

    async def _named(self, noun: str, path: str) -> dict[str, str]:
        answer = await self._api.request("GET", path, query={"count": "200"}, token=self._tokens[LOGIN])
        return {one["name"]: one["id"] for one in answer[noun]}


async def _person(api: ApiClient, login: str) -> str:
    """The id of somebody of this world: new, or kept from an earlier run on the same data."""
    name = login.title()
    try:
        return str((await api.sign_up(login, name, f"{login}@example.org", PASSWORD))["id"])
    except Refused as refused:
        if refused.status != 409:
            raise
    try:
        return str((await api.log_in(login, PASSWORD))["user"]["id"])
    except Refused:  # somebody else's name: nobody may be made to say what they did not say
        other = f"{login}_{secrets.token_hex(3)}"
        return str((await api.sign_up(other, name, f"{other}@example.org", PASSWORD))["id"])


async def _play(stage: Stage, login: str) -> None:
    """Everything, in the order in which it happened; ``login`` is Ada's."""
    await _follow(stage)
    await _converse(stage, login)
    await _gather(stage)
    await _talk(stage)
    await _list(stage)


async def _follow(stage: Stage) -> None:
    await stage.does("dora", "PATCH", "users/me", protected=True, bio="For friends only.")
    await stage.does("ada", "PATCH", "users/me", bio="Bread, trains and programs.", place="Lisbon")
    for who, whom in (("ada", "bob"), ("ada", "cyd"), ("bob", "ada"), ("cyd", "ada"), ("eli", "ada"), ("fay", "ada")):
        await stage.does(who, "PUT", f"users/me/following/{{{whom}}}")
    for who in ("ada", "eli"):
        await stage.does(who, "PUT", "users/me/following/{dora}")
    await stage.does("dora", "PUT", "users/me/requests/{ada}")


async def _converse(stage: Stage, login: str) -> None:
    question = await stage.posts("bob", f"Who bakes on Sunday? I have too much starter. @{login} #sourdough", lang="en")
    answer = await stage.posts("ada", "I do! Bring it, and some #coffee.", lang="en", in_reply_to=question)
    await stage.posts("bob", "Ten o'clock, then.", lang="en", in_reply_to=answer)
    await stage.posts("cyd", "", origin=answer)
    await stage.posts("eli", "This is how good weekends begin.", lang="en", origin=answer)
    await stage.posts("dora", "Only for you: the recipe is my grandmother's. #sourdough", lang="en")
    for who in ("bob", "fay"):
        await stage.does(who, "PUT", f"users/me/likes/{answer}")
    await stage.does("ada", "PUT", f"users/me/likes/{question}")
    await stage.does("ada", "PUT", f"users/me/favorites/{question}")
    await stage.does("cyd", "POST", f"statuses/{answer}/comments", message="Save me a slice.")


async def _gather(stage: Stage) -> None:
    club = (await stage.does("ada", "POST", "groups", name=GROUP, kind="public", description="We feed flour."))["id"]
    for who in ("bob", "cyd"):
        await stage.does(who, "PUT", f"groups/{club}/members/me")
    crumb = await stage.posts("bob", "Is this crumb open enough?", lang="en", group=club)
    await stage.posts("ada", "You could park a train in it.", lang="en", in_reply_to=crumb)
    await stage.does("cyd", "PUT", f"users/me/likes/{crumb}")


async def _talk(stage: Stage) -> None:
    talk = (await stage.does("bob", "POST", "talks", people=[stage.people["ada"]]))["id"]
    for who, said in (("bob", "Shall I bring the big oven?"), ("ada", "Please. Side door."), ("bob", "See you!")):
        await stage.does(who, "POST", f"talks/{talk}/messages", message=said)


async def _list(stage: Stage) -> None:
    for name, private, members in ((LIST, False, ("bob", "cyd")), (LAST, True, ("dora",))):
        made_list = (await stage.does("ada", "POST", "lists", name=name, private=private))["id"]
        for member in members:
            await stage.does("ada", "PUT", f"lists/{made_list}/members/{{{member}}}")
