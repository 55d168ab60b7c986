"""Runs ``serve --demo``: sets up the content, prints commands to paste, and keeps posting.

Everything goes through the HTTP API, as any other client would do it. The demo users have a known password. That opens
nothing, because anyone who can reach the server can sign up anyway.
"""

import asyncio
import io
import logging
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.text import Text

from stream_server.client import Client, ClientFailure, RequestRefused
from stream_server.commands.server_access import open_server_access
from stream_server.config.settings import Config

logger = logging.getLogger(__name__)

POSTING_LOGINS = ("bob", "cyd", "eli", "fay")
"""Users who keep posting. Ada follows the first two, so her home timeline gets new posts."""

_OPENINGS = ("Good morning", "Small win today", "Note to self", "Just saw", "Anyone else", "Finally", "Overheard")

_SUBJECTS = (
    "coffee on the terrace", "a train that left on time", "the redis log, read from end to end",
    "green tea in the garden", "sourdough that did rise", "rain over the harbour", "espresso at the station",
    "a bug that was a feature after all", "東京タワー in the fog",
)  # fmt: skip

_TAGS = ("#coffee", "#trains", "#redis", "#baking", "#matcha", "#weather", "#python", "#tea")

_PLACES = (
    ("Monterey", -121.89, 36.60), ("Lisbon", -9.14, 38.72), ("New York", -73.85, 40.76), ("Kyoto", 135.77, 35.01),
    ("Nairobi", 36.82, -1.29),
)  # fmt: skip
"""Name, longitude and latitude."""


def demo_posts(chance: random.Random, login: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON bodies of posts without end. Half have a location, the others ``meta``. Some mention ``login``.

    The parts of the sentences come in turn, so that each word and each place occurs in every ten posts. Their numbers
    have no common divisor, so the sentences differ.
    """
    sets: tuple[tuple[Any, ...], ...] = (_OPENINGS, _SUBJECTS, _TAGS, _PLACES)
    openings, subjects, tags, places = (islice(cycle(each), chance.randrange(len(each)), None) for each in sets)
    for n in count():
        mention = f"@{login} " if n % 5 == 0 else ""
        body = {"message": f"{mention}{next(openings)}: {next(subjects)} {next(tags)}", "lang": "en"}
        item = {"price": 10 + n % 40, "colours": ["blue", "white"]}
        yield body | (_located(chance, *next(places)) if n % 2 == 0 else {"meta": {"site": "market", "item": item}})


def _located(chance: random.Random, name: str, lon: float, lat: float) -> dict[str, Any]:
    """Return the members of a post from a point near the place."""
    point = {"lon": round(lon + chance.uniform(-0.1, 0.1), 4), "lat": round(lat, 4)}
    return {"location": point, "place": {"name": name}}


SignToken = Callable[[str, frozenset[str]], str]
"""Signs a token for a user id and scopes."""
MAIN_LOGIN = "ada"  # of the demo's main user, Ada
PASSWORD = "demo-demo"  # noqa: S105 - of all demo users; it opens accounts for trying, and the screen shows it
OTHER_LOGINS = ("bob", "cyd", "dora", "eli", "fay")
"""The other users. Dora is protected: she has approved Ada as a follower; Eli's request still waits."""
LIST_NAME = "Bakers"  # Ada's public list
LAST_LIST_NAME = "Close friends"  # Ada's private list, which is created last: if it exists, everything exists
FIRST_POSTS = 32  # that are there from the beginning
GROUP_NAME = "Sourdough club"  # Ada's group

_SCOPES = frozenset({"read", "write"})


class DemoWorld(NamedTuple):
    """The users, the list and the group that the demo has created.

    Attributes:
        login: Login of Ada, the demo's main user. It is ``ada``, or a longer login if another user has that one.
        user_ids: Dict from the planned login of each demo user, such as ``bob``, to the user's id.
    """

    login: str
    user_ids: dict[str, str]
    list_id: str
    group_id: str


async def find_or_create_world(api: Client, sign_token: SignToken) -> DemoWorld:
    """Create the demo content unless it exists, and return its ids. Raises ClientFailure if a request fails."""
    user_ids = {login: await _find_or_create_user(api, login) for login in (MAIN_LOGIN, *OTHER_LOGINS)}
    actions = DemoActions(api, sign_token, user_ids)
    me = await api.me(token=sign_token(user_ids[MAIN_LOGIN], _SCOPES))
    if LAST_LIST_NAME not in await actions.ids_by_name("lists"):
        await _create_content(actions, me.login)
    lists, groups = await actions.ids_by_name("lists"), await actions.ids_by_name("groups")
    return DemoWorld(me.login, user_ids, lists[LIST_NAME], groups[GROUP_NAME])


class DemoActions:
    """Sends requests as the demo users. Each has a fixed idempotency key, so a repeated setup creates nothing twice."""

    def __init__(self, api: Client, sign_token: SignToken, user_ids: dict[str, str]) -> None:
        self._api = api
        self._tokens = {login: sign_token(uid, _SCOPES) for login, uid in user_ids.items()}
        self._request_count = 0
        self.user_ids = user_ids

    async def request_as(self, login: str, method: str, path: str, **body: Any) -> Any:
        """Send a request as the demo user ``login``; return the answer's JSON. ``{bob}`` in the path is Bob's id."""
        self._request_count += 1
        full_path, key = f"/v1/{path.format(**self.user_ids)}", f"demo-1-{self._request_count}"
        return await self._api.request(method, full_path, body=body or None, token=self._tokens[login], key=key)

    async def post_as(self, login: str, message: str, **more: Any) -> str:
        """Post a status as the user ``login`` and return the status id."""
        return str((await self.request_as(login, "POST", "statuses", message=message, **more))["id"])

    async def ids_by_name(self, noun: Literal["lists", "groups"]) -> dict[str, str]:
        """Return a dict from name to id of the lists or the groups of Ada, the demo's main user."""
        path = f"/v1/users/{self.user_ids[MAIN_LOGIN]}/lists" if noun == "lists" else "/v1/users/me/groups"
        answer = await self._api.request("GET", path, query={"count": "200"}, token=self._tokens[MAIN_LOGIN])
        return {found["name"]: found["id"] for found in answer[noun]}


async def _find_or_create_user(api: Client, login: str) -> str:
    """Return the id of a demo user. If another person has the login, the demo user has a longer one.

    A later start logs in, because an address may sign up some times an hour only.
    """
    for each in (login, f"{login}_demo", f"{login}_{secrets.token_hex(3)}"):
        with suppress(RequestRefused):
            return (await api.log_in(each, PASSWORD)).user.id
        try:
            return (await api.sign_up(each, login.title(), f"{each}@example.org", PASSWORD)).id
        except RequestRefused as refused:
            if refused.status != HTTPStatus.CONFLICT:  # the login belongs to another person
                raise
            taken = refused
    raise taken


async def _create_content(actions: DemoActions, login: str) -> None:
    """Create what the demo users have done. A repeated setup sends the same requests. ``login`` is that of Ada."""
    send, post = actions.request_as, actions.post_as
    # They follow each other. Two ask to follow Dora, who is protected; she approves one of the requests.
    await send("dora", "PATCH", "users/me", protected=True, bio="For friends only.")
    await send("ada", "PATCH", "users/me", bio="Bread, trains and programs.", place="Lisbon")
    for followed in ("bob", "cyd"):
        await send("ada", "PUT", f"users/me/following/{{{followed}}}")
    for follower in ("bob", "cyd", "eli", "fay"):
        await send(follower, "PUT", "users/me/following/{ada}")
    for follower in ("ada", "eli"):
        await send(follower, "PUT", "users/me/following/{dora}")
    await send("dora", "PUT", "users/me/requests/{ada}")

    # Every stream and preview finds some posts at once.
    first = demo_posts(random.Random(0), login)
    for author in POSTING_LOGINS * (FIRST_POSTS // len(POSTING_LOGINS)):
        await post(author, **next(first))

    # A conversation
    request = f"Who bakes on Sunday? I have too much starter. @{login} #sourdough"
    question = await post("bob", request, lang="en")
    answer = await post("ada", "I do! Bring it, and some #coffee.", lang="en", in_reply_to=question)
    await post("bob", "Ten o'clock, then.", lang="en", in_reply_to=answer)
    await post("cyd", "", origin=answer)
    await post("eli", "This is how good weekends begin.", lang="en", origin=answer)
    await post("dora", "Only for you: the recipe is my grandmother's. #sourdough", lang="en")
    for fan in ("bob", "fay"):
        await send(fan, "PUT", f"users/me/likes/{answer}")
    await send("ada", "PUT", f"users/me/likes/{question}")
    await send("ada", "PUT", f"users/me/favorites/{question}")
    await send("cyd", "POST", f"statuses/{answer}/comments", message="Save me a slice.")

    # A group
    about = {"name": GROUP_NAME, "kind": "public", "description": "We feed flour."}
    club = (await send("ada", "POST", "groups", **about))["id"]
    for member in ("bob", "cyd"):
        await send(member, "PUT", f"groups/{club}/members/me")
    crumb = await post("bob", "Is this crumb open enough?", lang="en", group=club)
    await post("ada", "You could park a train in it.", lang="en", in_reply_to=crumb)
    await send("cyd", "PUT", f"users/me/likes/{crumb}")

    # A talk
    talk = (await send("bob", "POST", "talks", people=[actions.user_ids["ada"]]))["id"]
    for sender, text in (("bob", "Shall I bring the big oven?"), ("ada", "Please. Side door."), ("bob", "See you!")):
        await send(sender, "POST", f"talks/{talk}/messages", message=text)

    # Two lists of Ada, first the public one. The private one means: setup complete.
    for name, private, members in ((LIST_NAME, False, ("bob", "cyd")), (LAST_LIST_NAME, True, ("dora",))):
        list_id = (await send("ada", "POST", "lists", name=name, private=private))["id"]
        for member in members:
            await send("ada", "PUT", f"lists/{list_id}/members/{{{member}}}")


POST_INTERVAL_SECONDS = 2.0

GUIDE_SCOPES = frozenset({"read", "write", "stream", "firehose"})  # of the token that the guide prints


async def run_demo(settings: Config, base_url: str, print_text: Callable[[str], None]) -> None:
    """Create or find the demo content, print the guide, and post until cancelled. If the setup fails, print why.

    ``settings`` are those of the server, with its Redis and its key of tokens.
    """
    async with Client(base_url) as api, open_server_access(settings) as access:

        def sign_token(user_id: str, scopes: frozenset[str]) -> str:
            return access.sign_token(user_id, scopes, 86_400)  # valid for a day

        try:
            world = await find_or_create_world(api, sign_token)
        except ClientFailure as error:
            print_text(f"The demo could not be set up: {error}")
            return
        # The session may administrate, so that the console also shows the view for operators.
        address = settings.public_url or base_url
        link = await access.make_sign_in_link(world.user_ids[MAIN_LOGIN], GUIDE_SCOPES | {"admin"}, address)
        print_text(f"\nOpen this in a browser: {link}")  # first, because it needs no terminal
        print_text(usage_guide(base_url, sign_token(world.user_ids[MAIN_LOGIN], GUIDE_SCOPES), world))
        await _keep_posting(api, world, sign_token)


def usage_guide(base_url: str, token: str, world: DemoWorld) -> str:
    """Return shell commands to paste: they set ``TOKEN``, define the function ``see``, and show each feature."""
    lines = [
        ("stream/user", "live: everything that concerns you"),
        ("timelines/home", "your home timeline"),
        (f"lists/{world.list_id}/statuses", "your list of bakers"),
        (f"groups/{world.group_id}/statuses", "your group"),
        ("notifications", "your notifications"),
        ("talks", "your talks"),
        ("stream?track=coffee,%23redis,good%20morning", "live: posts with a word, a tag, or two words"),
        ("stream?follow=@me", "live: posts of the users you follow"),
        ("stream?rule=(coffee%20OR%20tea)%20-is:reply&explain=true", "live: posts that match a rule, and why"),
        ("stream?locations=-180,0,0,90", "live: posts from a part of the world"),
        ("stream?sample=10", "live: a tenth of everything"),
        ("stream?firehose=true&since=-1m", "live: everything public, from a minute ago"),
        ("events?firehose=true&wait=25", "long polling: one answer for each request"),
    ]
    setup = [f"export TOKEN={token}", f"""see() {{ {_CURL} "{base_url}/v1/$1"; }}"""]
    shown = ((f'"{path}"' if "?" in path else path, what) for path, what in lines)
    commands = [f"{f'see {path}':<52} # {what}" for path, what in shown]
    body = '{"message": "good morning, #redis and coffee", "lang": "en", "location": {"lon": -121.9, "lat": 36.6}}'
    post = f"""{_CURL} -H "Content-Type: application/json" "{base_url}/v1/statuses" -d '{body}'"""
    # A comment behind this command would be arguments in an interactive zsh. `see` ignores them, and this does not.
    tail = f"{program_name()} tail --user {world.login} --track coffee"
    return _render_guide(world.login, [*setup, *commands, post, tail])


def program_name() -> str:
    """Return the command ``stream-server`` as it was called, such as with the path of a virtual environment."""
    return sys.argv[0] if Path(sys.argv[0]).name == "stream-server" else "stream-server"


_CURL = """curl -sSN -w '\\n' -H "Authorization: Bearer $TOKEN\""""


def _render_guide(login: str, lines: list[str]) -> str:
    """Format the guide, with colours on a terminal. Long lines are not wrapped, so that commands can be pasted."""
    # Comments after `#` must not contain characters that a shell interprets, because an interactive zsh passes them to
    # the command as arguments. The command ignores them.
    page = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty(), soft_wrap=True, highlight=False)
    you = f'You are "{login}" with the password "{PASSWORD}".'
    heading = f"{you} Paste the first two lines, then any of the others (Ctrl-C ends a stream):"
    with page.capture() as captured:
        page.print(Text(f"{heading}\n", style="bold"))
        for line in lines:
            command, sign, what = line.partition(" # ")
            page.print(Text.assemble(command, (sign + what, "green")))
    return captured.get()


async def _keep_posting(api: Client, world: DemoWorld, sign_token: SignToken) -> None:
    """Post a status every :data:`POST_INTERVAL_SECONDS` as a random demo user. If a post fails, log it and go on."""
    chance = random.Random()
    for body in demo_posts(chance, world.login):
        token = sign_token(world.user_ids[chance.choice(POSTING_LOGINS)], frozenset({"write"}))
        try:
            await api.request("POST", "/v1/statuses", body=body, token=token)
        except ClientFailure as error:
            logger.warning("a demo post failed: %s", error)
        await asyncio.sleep(POST_INTERVAL_SECONDS)
