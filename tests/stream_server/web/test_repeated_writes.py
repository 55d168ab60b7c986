"""What a write answers that is repeated under its idempotency key after a change, compared with the docs."""

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from aiohttp import web

from stream_server.store.redis.script_settings import SiteRules, load_scripts
from stream_server.web import routes
from stream_server.web.http import app_keys
from stream_server.web.route import Route
from tests.contracts.populated import PASSWORD, Body, Populated
from tests.end_to_end.server import SECRET
from tests.stream_server.web.test_round_trips import paths_of
from tests.stream_server.web.test_write_charges import ENDINGS, WRITES
from tests.stream_server.web.world import World

PAGE = Path(__file__).parents[3] / "docs" / "api.md"

V2_RULES = "/2/tweets/search/stream/rules"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"jwt_secret": SECRET, "limits": "off"}


class Sent(NamedTuple):
    """A request, with or without a key."""

    method: str
    path: str
    body: Body | None = None
    key: str = ""


class Repeater:
    """Sends the possible writes of one route, changes what they show, and repeats them."""

    def __init__(self, url: str, session: requests.Session, raw: Any, row: Route) -> None:
        self.url, self.session, self.raw, self.row = url, session, raw, row
        self.world = Populated(url, session, row.path)
        self._numbers = itertools.count()
        login = "s" + self.world.login[:15]
        person = {"login": login, "name": login, "email": f"{login}@example.org", "password": PASSWORD}
        self._stranger = self.world.done("POST", "/v1/users", person)["id"]

    def differences(self) -> set[str]:
        """Return the members of answers that differ from those of the first answer. Each body is remembered once."""
        found = [self._first_difference(body) for body in self._bodies()]
        known = [each for each in found if each is not None]
        assert known, f"no write of {self.row.method} {self.row.path} is remembered"
        return set().union(*known)

    def _first_difference(self, body: Body | None) -> set[str] | None:
        """Return what differs after the first write that is remembered, and None if all writes change nothing."""
        for path in self._paths():
            if self.row.method == "DELETE" and self.row.path in ENDINGS:
                self.send(Sent("PUT", path))
            sent, kept = Sent(self.row.method, path, body, f"key-{next(self._numbers)}"), self._count_kept()
            first = self.send(sent)
            if self._count_kept() > kept:
                self._change(first)
                return _different_members(first, self.send(sent))
        return None

    def send(self, sent: "Sent", sub: str = "") -> requests.Response:
        """Send one request of the user ``sub``, by default that of the world."""
        headers = self.world.headers(sub) | ({"Idempotency-Key": sent.key} if sent.key else {})
        return self.session.request(sent.method, self.url + sent.path, json=sent.body, headers=headers)

    def _count_kept(self) -> int:
        return len(self.raw.keys("{core}:request:c:*"))

    def _paths(self) -> list[str]:
        """The paths of the route. The stranger is only invited to a group, and only asks for a talk."""
        if self.row.path.endswith("/acceptance"):
            talk = self.world.done("POST", "/v1/talks", {"people": [self.world.uid]}, sub=self._stranger)["id"]
            return [self.row.path.format(id=talk)]
        paths = paths_of(self.world, self.row)
        return [paths[0].rpartition("/")[0] + "/" + self._stranger, *paths] if "{uid}" in self.row.path else paths

    def _bodies(self) -> list[Body | None]:
        if self.row.path == V2_RULES:
            self.world.of("rules")
            return [{"add": [{"value": "tea milk"}]}, {"delete": {"values": ["tea milk"]}}]
        if self.row.path == "/v1/talks/{id}/read":
            path, other = f"/v1/talks/{self.world.of('talks')[0]}/messages", self.world.of("users")[0]
            return [{"id": self.world.done("POST", path, {"message": "read me"}, sub=other)["id"]}]
        return [body for body in self.world.bodies(self.row.method) if not body.get("dry_run")] or [None]

    def _change(self, answer: requests.Response) -> None:
        """Change all that an answer may show: the user, the things that the world has, and the one that was made."""
        ids = {noun: [*found] for noun, found in self.world.made.items()}
        made = answer.json().get("id", "") if answer.status_code == 201 else ""
        noun = self.row.path.rpartition("/")[2]
        ids[noun] = [*ids.get(noun, ()), *filter(None, [made])]
        me, stranger = self.world.uid, self._stranger
        self.send(Sent("PUT", f"/v1/users/me/following/{me}"), stranger)
        self.send(Sent("POST", "/v1/statuses", {"message": f"hello @{self.world.login}"}), stranger)
        self.send(Sent("POST", "/v1/rules", {"rules": [{"rule": f"changed{next(self._numbers)}"}]}))
        for user in (me, *ids.get("users", ())):
            self.send(Sent("PATCH", "/v1/users/me", {"name": "Changed"}), user)
            for talk in ids.get("talks", ()):
                self.send(Sent("POST", f"/v1/talks/{talk}/messages", {"message": "changed"}), user)
        for status in ids.get("statuses", ()):
            self.send(Sent("PUT", f"/v1/users/me/likes/{status}"), stranger)
        for report in ids.get("reports", ()):
            self.send(Sent("PATCH", f"/v1/admin/reports/{report}", {"outcome": "dismissed"}))
        for path in (f"/v1/{noun}/{one}" for noun in ("lists", "groups") for one in ids.get(noun, ())):
            self.send(Sent("PATCH", path, {"name": "changed"}))
        if made and noun in {"statuses", "comments"}:
            self.send(Sent("DELETE", f"/v1/{noun}/{made}"))


def _different_members(first: requests.Response, again: requests.Response) -> set[str]:
    if (first.status_code, first.headers.get("Location")) != (again.status_code, again.headers.get("Location")):
        return {f"status {first.status_code} {again.status_code} {again.text}"}
    if first.content == again.content:
        return set()
    one, other = first.json(), again.json()
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _documented(text: str) -> dict[str, set[str]]:
    """The routes of the docs that answer with the present state, each with its members, or none for all of them."""
    rows = re.findall(r"^\| `([A-Z]+ /\S+)` \| ([^|]+) \|", text, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", members)) for name, members in rows}


def _ignoring(text: str) -> set[str]:
    """The routes of the docs that ignore the key."""
    (sentence,) = re.findall(r"These writes ignore the header:([^.]+)\. ", text)
    return set(re.findall(r"`([A-Z]+\s/\S+)`", sentence))


def _section() -> str:
    return PAGE.read_text("utf-8").partition("### Repeated writes\n")[2].partition("\n## ")[0]


KEYED = [row for row in routes.ROUTE_TABLE if row.accepts_idempotency_key]


def _differences(url: str, session: requests.Session, raw: Any, row: Route) -> set[str]:
    return Repeater(url, session, raw, row).differences()


@pytest.mark.extended
async def test_a_repeated_write_gets_its_first_answer_or_the_docs_say_what_differs(
    url: str, session: requests.Session, app: web.Application, world: World
) -> None:
    """Users are asked before strangers add them to groups."""
    scripts = app[app_keys.STORE]._scripts
    scripts._scripts = load_scripts(scripts.size_limits, SiteRules(ask_strangers=True))
    await scripts.install()
    found = {}
    for row in KEYED:
        if different := await asyncio.to_thread(_differences, url, session, world.redis, row):
            found[f"{row.method} {row.path}"] = different
    documented = _documented(_section())
    assert found == {name: members or found.get(name) for name, members in documented.items()}


def test_the_docs_name_the_writes_that_ignore_a_key() -> None:
    ignoring = {f"{row.method} {row.path}" for row in WRITES if not row.accepts_idempotency_key and row.is_write}
    assert _ignoring(_section()) == ignoring
