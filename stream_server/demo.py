"""What ``serve --demo`` shows: a few people, things to paste, and posts that keep coming.

Everything goes through the HTTP API, as a stranger's program would do it. The demo's own user has a known
password; whoever can reach the server could sign up all the same, so it opens nothing.
"""

import asyncio
import io
import logging
import random
import secrets
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from stream_server.client import ApiClient, ClientFailure, Refused

logger = logging.getLogger(__name__)

LOGIN = "demo"
PASSWORD = "demo-demo"  # noqa: S105 - it opens an account for trying, which is printed on the screen

PEOPLE = (("lena_bakes", "Lena"), ("tom_on_rails", "Tom"), ("mei_codes", "Mei"), ("night_owl", "Olu"))
"""Who posts: login and name."""

FOLLOWED = 2
"""The demo user follows the first so many of them, so that ``follow=@me`` has something to show."""

EVERY_SECONDS = 2.0

PLACES = (
    ("Monterey", -121.89, 36.60),
    ("Lisbon", -9.14, 38.72),
    ("Kyoto", 135.77, 35.01),
    ("Nairobi", 36.82, -1.29),
)

OPENINGS = ("Good morning", "Small win today", "Note to self", "Just saw", "Anyone else", "Finally", "Overheard")
SUBJECTS = (
    "coffee on the terrace",
    "a train that left on time",
    "the redis log, read from end to end",
    "sourdough that did rise",
    "rain over the harbour",
    "a bug that was a feature after all",
)
TAGS = ("#coffee", "#trains", "#redis", "#baking", "#weather", "#python")

Mint = Callable[[str, frozenset[str]], str]
Announce = Callable[[str], None]


class Cast(NamedTuple):
    """The demo's people: the id of its user, and of those who post by login."""

    user_id: str
    others: dict[str, str]


async def run(base_url: str, mint: Mint, announce: Announce) -> None:
    """Make the people, print what to try, and post until cancelled.

    ``mint`` signs a token for a user id and scopes; ``announce`` prints a text. A demo that cannot be set up is told,
    and leaves the server as it is.
    """
    async with ApiClient(base_url) as api:
        try:
            cast = await _cast(api, mint)
        except ClientFailure as error:
            announce(f"The demo could not be set up: {error}")
            return
        announce(guide(base_url, mint(cast.user_id, frozenset({"read", "write", "stream", "firehose"}))))
        await _keep_posting(api, cast, mint)


def guide(base_url: str, token: str) -> str:
    """What to paste: one command for a post, one for each kind of stream."""
    curl = f'curl -N -H "Authorization: Bearer $TOKEN" "{base_url}/v1'
    streams = {
        "posts with a word, or a tag, or two words": "/stream?track=coffee,%23redis,good morning",
        "posts of those whom you follow": "/stream?follow=@me",
        "posts from a part of the world": "/stream?locations=-180,0,0,90",
        "a tenth of everything": "/stream?sample=10",
        "everything": "/stream?firehose=true",
        "everything, from a minute ago": "/stream?firehose=true&since=-1m",
        "one answer at a time (long polling)": "/events?firehose=true&wait=25",
    }
    lines = [("", f"export TOKEN={token}")]
    lines += [(what, curl + path.replace(" ", "%20") + '"') for what, path in streams.items()]
    lines += [("post something, in another terminal (export TOKEN there too)", _post(base_url))]
    return _rendered(lines, f'You are "{LOGIN}". Paste this first, then any of the others (Ctrl-C ends a stream):')


def _post(base_url: str) -> str:
    body = '{"message": "good morning, #redis and coffee", "lang": "en", "location": {"lon": -121.9, "lat": 36.6}}'
    return (
        f"""curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" "{base_url}/v1/statuses" """
        f"""-d '{body}'"""
    )


def _rendered(lines: list[tuple[str, str]], heading: str) -> str:
    """The text, coloured on a terminal; never wrapped, since a broken line cannot be pasted."""
    page = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty(), soft_wrap=True, highlight=False)
    with page.capture() as captured:
        page.print(Text(f"\n{heading}\n", style="bold"))
        for what, command in lines:
            if what:
                page.print(Text(f"# {what}", style="green"))
            page.print(Text(command))
    return captured.get()


async def _cast(api: ApiClient, mint: Mint) -> Cast:
    user_id = await _demo_user(api)
    others = await api.add_users(PEOPLE, token=mint(user_id, frozenset({"admin"})))
    writes = mint(user_id, frozenset({"write"}))
    for login, _ in PEOPLE[:FOLLOWED]:
        await api.request("PUT", f"/v1/users/me/following/{others[login]}", token=writes)
    return Cast(user_id, others)


async def _demo_user(api: ApiClient) -> str:
    """The id of the demo's user: new, or kept from an earlier run on the same data."""
    try:
        return str((await api.sign_up(LOGIN, "Demo", f"{LOGIN}@example.org", PASSWORD))["id"])
    except Refused as refused:
        if refused.status != 409:
            raise
    try:
        return str((await api.log_in(LOGIN, PASSWORD))["user"]["id"])
    except Refused:  # somebody else's "demo"
        login = f"{LOGIN}_{secrets.token_hex(3)}"
        return str((await api.sign_up(login, "Demo", f"{login}@example.org", secrets.token_urlsafe(16)))["id"])


async def _keep_posting(api: ApiClient, cast: Cast, mint: Mint) -> None:
    """A post every :data:`EVERY_SECONDS`; what goes wrong with one is logged, and the next one tried."""
    chance = random.Random()
    while True:
        author = chance.choice(sorted(cast.others))
        try:
            await api.post(**made_up(chance), token=mint(cast.others[author], frozenset({"write"})))
        except ClientFailure as error:
            logger.warning("a demo post failed: %s", error)
        await asyncio.sleep(EVERY_SECONDS)


def made_up(chance: random.Random) -> dict[str, Any]:
    """The body of a post about nothing."""
    words = [chance.choice(OPENINGS) + ":", chance.choice(SUBJECTS), chance.choice(TAGS)]
    if chance.random() < 0.2:
        words.insert(0, f"@{LOGIN}")
    body: dict[str, Any] = {"message": " ".join(words), "lang": "en"}
    if chance.random() < 0.4:
        place, lon, lat = chance.choice(PLACES)
        body["location"] = {"lon": round(lon + chance.uniform(-0.1, 0.1), 4), "lat": round(lat, 4)}
        body["place"] = {"name": place}
    return body
