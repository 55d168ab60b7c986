"""The small world of ``serve --demo``: a few people, and one of each thing that people do to one another.

It is made once. On a data folder that was kept, the next start finds it by what is made last; a world whose making was
broken off is made to its end under the same request keys, so that nothing is in it twice.
"""

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from stream_server.client import ApiClient, RequestRefused

SignToken = Callable[[str, frozenset[str]], str]
"""Signs a token for a user id and scopes."""

LOGIN = "ada"
PASSWORD = "demo-demo"  # noqa: S105 - it opens an account for trying, which is printed on the screen

OTHER_LOGINS = ("bob", "cyd", "dora", "eli", "fay")
"""Dora is protected: Ada follows her with consent, Eli has asked and waits."""

LIST_NAME = "Bakers"
LAST_LIST_NAME = "Close friends"
"""The private list; it is there if everything is."""
GROUP_NAME = "Sourdough club"

_SCOPES = frozenset({"read", "write"})


class DemoWorld(NamedTuple):
    """What Ada had to be called; the ids of the people by the logins meant for them, of Ada's list and group."""

    login: str
    user_ids: dict[str, str]
    list_id: str
    group_id: str


async def find_or_create_world(api: ApiClient, sign_token: SignToken) -> DemoWorld:
    """The world, made or found; raises ``ClientFailure``."""
    people = {login: await _find_or_create_user(api, login) for login in (LOGIN, *OTHER_LOGINS)}
    stage = DemoActions(api, sign_token, people)
    me = await api.request("GET", "/v1/users/me", token=sign_token(people[LOGIN], _SCOPES))
    if LAST_LIST_NAME not in await stage.list_ids():
        await _create_content(stage, me["login"])
    return DemoWorld(me["login"], people, (await stage.list_ids())[LIST_NAME], (await stage.group_ids())[GROUP_NAME])


class DemoActions:
    """Lets people do things over HTTP; ``user_ids`` are ids by login. What is done has a request key by its number."""

    def __init__(self, api: ApiClient, sign_token: SignToken, user_ids: dict[str, str]) -> None:
        self._api = api
        self._tokens = {login: sign_token(uid, _SCOPES) for login, uid in user_ids.items()}
        self._request_count = 0
        self.user_ids = user_ids

    async def request_as(self, login: str, method: str, path: str, **body: Any) -> Any:
        """One request of somebody; ``{login}`` in the path stands for an id. Its decoded answer."""
        self._request_count += 1
        where, key = f"/v1/{path.format(**self.user_ids)}", f"demo-1-{self._request_count}"
        return await self._api.request(method, where, body=body or None, token=self._tokens[login], key=key)

    async def post_as(self, login: str, message: str, **more: Any) -> str:
        """A status; its id."""
        return str((await self.request_as(login, "POST", "statuses", message=message, **more))["id"])

    async def list_ids(self) -> dict[str, str]:
        """Ada's lists: name to id."""
        return await self._ids_by_name("lists", f"/v1/users/{self.user_ids[LOGIN]}/lists")

    async def group_ids(self) -> dict[str, str]:
        """Ada's groups: name to id."""
        return await self._ids_by_name("groups", "/v1/users/me/groups")

    async def _ids_by_name(self, noun: str, path: str) -> dict[str, str]:
        answer = await self._api.request("GET", path, query={"count": "200"}, token=self._tokens[LOGIN])
        return {one["name"]: one["id"] for one in answer[noun]}


async def _find_or_create_user(api: ApiClient, login: str) -> str:
    """The id of somebody of this world: new, or kept from an earlier run on the same data."""
    name = login.title()
    try:
        return str((await api.sign_up(login, name, f"{login}@example.org", PASSWORD))["id"])
    except RequestRefused as refused:
        if refused.status != 409:
            raise
    try:
        return str((await api.log_in(login, PASSWORD))["user"]["id"])
    except RequestRefused:  # somebody else's name: nobody may be made to say what they did not say
        other = f"{login}_{secrets.token_hex(3)}"
        return str((await api.sign_up(other, name, f"{other}@example.org", PASSWORD))["id"])


async def _create_content(actions: DemoActions, login: str) -> None:
    """Everything, in the order in which it happened; ``login`` is Ada's."""
    await _create_follows(actions)
    await _create_conversation(actions, login)
    await _create_group(actions)
    await _create_talk(actions)
    await _create_lists(actions)


async def _create_follows(actions: DemoActions) -> None:
    await actions.request_as("dora", "PATCH", "users/me", protected=True, bio="For friends only.")
    await actions.request_as("ada", "PATCH", "users/me", bio="Bread, trains and programs.", place="Lisbon")
    for who, whom in (("ada", "bob"), ("ada", "cyd"), ("bob", "ada"), ("cyd", "ada"), ("eli", "ada"), ("fay", "ada")):
        await actions.request_as(who, "PUT", f"users/me/following/{{{whom}}}")
    for who in ("ada", "eli"):
        await actions.request_as(who, "PUT", "users/me/following/{dora}")
    await actions.request_as("dora", "PUT", "users/me/requests/{ada}")


async def _create_conversation(actions: DemoActions, login: str) -> None:
    question = await actions.post_as(
        "bob", f"Who bakes on Sunday? I have too much starter. @{login} #sourdough", lang="en"
    )
    answer = await actions.post_as("ada", "I do! Bring it, and some #coffee.", lang="en", in_reply_to=question)
    await actions.post_as("bob", "Ten o'clock, then.", lang="en", in_reply_to=answer)
    await actions.post_as("cyd", "", origin=answer)
    await actions.post_as("eli", "This is how good weekends begin.", lang="en", origin=answer)
    await actions.post_as("dora", "Only for you: the recipe is my grandmother's. #sourdough", lang="en")
    for who in ("bob", "fay"):
        await actions.request_as(who, "PUT", f"users/me/likes/{answer}")
    await actions.request_as("ada", "PUT", f"users/me/likes/{question}")
    await actions.request_as("ada", "PUT", f"users/me/favorites/{question}")
    await actions.request_as("cyd", "POST", f"statuses/{answer}/comments", message="Save me a slice.")


async def _create_group(actions: DemoActions) -> None:
    club = (
        await actions.request_as("ada", "POST", "groups", name=GROUP_NAME, kind="public", description="We feed flour.")
    )["id"]
    for who in ("bob", "cyd"):
        await actions.request_as(who, "PUT", f"groups/{club}/members/me")
    crumb = await actions.post_as("bob", "Is this crumb open enough?", lang="en", group=club)
    await actions.post_as("ada", "You could park a train in it.", lang="en", in_reply_to=crumb)
    await actions.request_as("cyd", "PUT", f"users/me/likes/{crumb}")


async def _create_talk(actions: DemoActions) -> None:
    talk = (await actions.request_as("bob", "POST", "talks", people=[actions.user_ids["ada"]]))["id"]
    for who, said in (("bob", "Shall I bring the big oven?"), ("ada", "Please. Side door."), ("bob", "See you!")):
        await actions.request_as(who, "POST", f"talks/{talk}/messages", message=said)


async def _create_lists(actions: DemoActions) -> None:
    for name, private, members in ((LIST_NAME, False, ("bob", "cyd")), (LAST_LIST_NAME, True, ("dora",))):
        made_list = (await actions.request_as("ada", "POST", "lists", name=name, private=private))["id"]
        for member in members:
            await actions.request_as("ada", "PUT", f"lists/{made_list}/members/{{{member}}}")
