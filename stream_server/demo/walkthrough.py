"""Runs ``serve --demo``: sets up the content, prints commands to paste, and keeps posting.

Everything goes through the HTTP API, as any other client would do it. The demo users have a known password. That opens
nothing, because anyone who can reach the server can sign up anyway.
"""

import asyncio
import io
import logging
import random
import sys
from collections.abc import Awaitable, Callable

from rich.console import Console
from rich.text import Text

from stream_server.client import Client, ClientFailure
from stream_server.demo import world as demo_world
from stream_server.demo.world import LOGIN, LOGINS, PASSWORD, DemoWorld, SignToken, demo_posts

logger = logging.getLogger(__name__)

POST_INTERVAL_SECONDS = 2.0

SCOPES = frozenset({"read", "write", "stream", "firehose"})  # of the token that the guide prints
CONSOLE_SCOPES = SCOPES | {"admin"}
"""Scopes of the session that the guide's link begins, so that the console also shows the view for operators."""

MakeLink = Callable[[str, frozenset[str]], Awaitable[str]]
"""Makes a link that signs a user, given by id, in to the console once, with these scopes."""


async def run_demo(
    base_url: str, sign_token: SignToken, make_link: MakeLink, print_text: Callable[[str], None]
) -> None:
    """Create or find the demo content, print the guide, and post until cancelled. If the setup fails, print why."""
    async with Client(base_url) as api:
        try:
            world = await demo_world.find_or_create_world(api, sign_token)
        except ClientFailure as error:
            print_text(f"The demo could not be set up: {error}")
            return
        print_text(_browser_line(await make_link(world.user_ids[LOGIN], CONSOLE_SCOPES)))
        print_text(usage_guide(base_url, sign_token(world.user_ids[LOGIN], SCOPES), world))
        await _keep_posting(api, world, sign_token)


def _browser_line(link: str) -> str:
    """Return the line with the link to the console. It comes before all commands, because it needs no terminal."""
    return f"\nOpen this in a browser: {link}"


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
    commands = [f"{f'see {_quote_path(path)}':<52} # {what}" for path, what in lines]
    return _render_guide(world.login, [*setup, *commands, _post_command(base_url)])


_CURL = """curl -sSN -w '\\n' -H "Authorization: Bearer $TOKEN\""""


def _quote_path(path: str) -> str:
    return f'"{path}"' if "?" in path else path


def _post_command(base_url: str) -> str:
    body = '{"message": "good morning, #redis and coffee", "lang": "en", "location": {"lon": -121.9, "lat": 36.6}}'
    return f"""{_CURL} -H "Content-Type: application/json" "{base_url}/v1/statuses" -d '{body}'"""


def _render_guide(login: str, lines: list[str]) -> str:
    """Format the guide, with colours on a terminal. Long lines are not wrapped, so that commands can be pasted."""
    # Comments after `#` must not contain characters that a shell interprets, because an interactive zsh passes them to
    # the command as arguments. The command ignores them.
    page = Console(file=io.StringIO(), force_terminal=sys.stdout.isatty(), soft_wrap=True, highlight=False)
    you = f'You are "{login}" with the password "{PASSWORD}".'
    heading = f"{you} Paste the first two lines, then any of the others (Ctrl-C ends a stream):"
    with page.capture() as captured:
        page.print(Text(f"\n{heading}\n", style="bold"))
        for line in lines:
            command, sign, what = line.partition(" # ")
            page.print(Text.assemble(command, (sign + what, "green")))
    return captured.get()


async def _keep_posting(api: Client, world: DemoWorld, sign_token: SignToken) -> None:
    """Post a status every :data:`POST_INTERVAL_SECONDS` as a random demo user. If a post fails, log it and go on."""
    chance = random.Random()
    for body in demo_posts(chance, world.login):
        token = sign_token(world.user_ids[chance.choice(LOGINS)], frozenset({"write"}))
        try:
            await api.request("POST", "/v1/statuses", body=body, token=token)
        except ClientFailure as error:
            logger.warning("a demo post failed: %s", error)
        await asyncio.sleep(POST_INTERVAL_SECONDS)
