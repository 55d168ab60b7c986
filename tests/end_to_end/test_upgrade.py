"""The data folder of the last release, opened by this version, and then by the last release again."""

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from stream_server import __version__
from stream_server.client.sync import Client, Events
from stream_server.web.routes import ROUTE_TABLE
from stream_server.wire.messages import Post
from tests.contracts.populated import ALL, PASSWORD, Populated
from tests.end_to_end.api import mint
from tests.end_to_end.server import Server, environment
from tests.last_release import code
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.extended, pytest.mark.timeout(600)]

OF_THE_MOMENT = frozenset({
    "/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/v1/admin/operations", "/v1/events",
    "/v1/streams", "/v1/trends",
})  # fmt: skip
"""Routes whose answers say how the server is now, or which version it is."""

JOBS_WAIT = ("--job-workers", "0", "--fanout-batch-size", "4")
"""A server with these leaves the timelines of more than four followers to a job, and does no job."""

FOLLOWERS = 8

OLD_CLIENT = """
import sys
from stream_server import __version__
from stream_server.client.sync import Client

address, token, since = sys.argv[1:]
with Client(address, token=token) as client:
    client.post("the fourth harbour")
    event = next(client.stream(track="harbour", since=since))
    print(__version__, event.kind, event.status.text, sep="|")
"""


class Question(NamedTuple):
    """A request of the user ``uid``, and its answer before the upgrade."""

    uid: str
    path: str
    query: dict[str, str]
    answer: Any


def _questions(server: Server, session: requests.Session) -> list[Question]:
    """Create data for all routes that read, then ask each."""
    released = {fact.split()[2] for fact in code.FACTS.read_text("utf-8").splitlines() if fact.startswith("route GET ")}
    rows = (row for row in ROUTE_TABLE if row.method == "GET" and row.dialect is None and not row.is_streaming)
    paths = [row.path for row in rows if row.path in released - OF_THE_MOMENT and not row.path.startswith("/console")]
    usual, protected = (Populated(server.address, session, path) for path in ("", "/requests"))
    asked: list[tuple[str, str, dict[str, str]]] = []
    for path in paths:
        world = protected if "/requests" in path else usual
        world._path = path  # its values are those of the parts of a path
        filled = "/".join(world.real(part[1:-1])[0] if part[:1] == "{" else part for part in path.split("/"))
        for query in world.queries("GET"):
            texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in query.items()}
            asked.append((world.uid, filled, texts))
    return [Question(*each, _ask(server, session, *each)) for each in asked]


def _ask(server: Server, session: requests.Session, uid: str, path: str, query: dict[str, str]) -> Any:
    headers = {"Authorization": f"Bearer {mint(uid, ALL)}"}
    answer = session.get(server.address + path, params=query, headers=headers, timeout=PATIENCE)
    assert answer.ok, (path, answer.text)
    return answer.json()


def _changed(questions: list[Question], server: Server, session: requests.Session) -> list[Question]:
    return [each for each in questions if _lacks(_ask(server, session, *each[:3]), each.answer)]


def _lacks(now: Any, before: Any) -> bool:
    """Whether a member or an item of ``before`` is gone or different. Objects may have more members than before."""
    if isinstance(before, dict) and isinstance(now, dict):
        return any(name not in now or _lacks(now[name], before[name]) for name in before)
    if isinstance(before, list) and isinstance(now, list):
        return len(before) != len(now) or any(map(_lacks, now, before))
    return bool(before != now)


class Visitor:
    """A user who was logged in, wrote and listened before the upgrade, and goes on after it.

    Attributes:
        cursor: Position after the last post that the visitor has heard.
        missed: A post that was written after the visitor had left.
        followers: Ids of users whose home timelines get the posts by a job.
    """

    def __init__(self, server: Server) -> None:
        with Client(server.address) as anybody:
            self.uid = anybody.sign_up("visitor", "Visitor", "visitor@example.org", PASSWORD).id
            self.session, self.other_session = (anybody.log_in("visitor", PASSWORD) for _ in range(2))
            accounts = [(f"follower{at}", "Follower") for at in range(FOLLOWERS)]
            self.followers = [*anybody.create_users(accounts, token=mint(self.uid, "admin")).values()]
            for follower in self.followers:
                anybody.follow(self.uid, token=mint(follower))
        with Client(server.address, token=self.session.token) as client:
            with client.stream(track="harbour", control=True) as events:
                assert next(events).kind == "hello"
                self.cursor = _hear(events, client.post("the first harbour").id)
            self.missed = client.post("the second harbour", key="once").id
        assert self._homes_without(server), "no job waits for the upgrade"

    def goes_on(self, server: Server) -> None:
        """Use everything of the time before on this server; raises AssertionError."""
        with Client(server.address, token=self.session.token) as client:
            assert client.post("the second harbour", key="once").id == self.missed
            with client.stream(track="harbour", since=self.cursor) as events:
                _hear(events, self.missed)
                self.cursor = _hear(events, client.post("the third harbour").id)
            assert [one["current"] for one in client.request("GET", "/v1/sessions")["sessions"]].count(True) == 1
            body = {"refresh_token": self.other_session.refresh_token}
            assert client.request("POST", "/v1/sessions", body=body, token="")["user"]["id"] == self.uid

    def _homes_without(self, server: Server) -> list[str]:
        """Return the followers whose home timelines lack the missed post."""
        with Client(server.address) as anybody:
            homes = {uid: anybody.home(token=mint(uid)).items for uid in self.followers}
        return [uid for uid, items in homes.items() if self.missed not in [status.id for status in items]]

    async def is_in_all_homes(self, server: Server) -> None:
        await eventually(lambda: not self._homes_without(server), what="the job of the time before is done")


def _hear(events: Events, status_id: str) -> str:
    """Return the cursor of the next post, which must be this one."""
    event = next(each for each in events if isinstance(each, Post))
    assert event.status.id == status_id
    return event.cursor


def _said_by_old_client(server: Server, visitor: Visitor) -> str:
    """Let the Python client of the last release post and listen at this server. Return what it prints."""
    command = [sys.executable, "-c", OLD_CLIENT, server.address, visitor.session.token, visitor.cursor]
    env = environment() | code.variables(code.unpack())
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE).stdout


def _ticket(server: Server, uid: str, session: requests.Session) -> str:
    headers = {"Authorization": f"Bearer {mint(uid)}"}
    return str(session.post(f"{server.address}/v1/streams/ticket", headers=headers, timeout=PATIENCE).json()["ticket"])


async def test_the_data_folder_of_the_last_release_opens_and_closes_again(tmp_path: Path) -> None:
    """Every route answers as before. Tokens, sessions, tickets, cursors and kept replies are valid, and jobs go on."""
    site = tmp_path / "site"
    with requests.Session() as session:
        session.trust_env = False
        with code.server(site, *JOBS_WAIT) as old:
            assert code.version_of(old) == code.last_release().version
            visitor, questions = Visitor(old), _questions(old, session)
            ticket = _ticket(old, visitor.uid, session)
        assert len(questions) > 50
        with Server(site) as new:
            assert code.version_of(new) == __version__
            poll = {"track": "harbour", "wait": "0", "ticket": ticket}
            assert session.get(f"{new.address}/v1/events", params=poll, timeout=PATIENCE).status_code == 200
            visitor.goes_on(new)
            assert _said_by_old_client(new, visitor) == f"{code.last_release().version}|post|the fourth harbour\n"
            await visitor.is_in_all_homes(new)
            assert _changed(questions, new, session) == []
        with code.server(site) as back, Client(back.address, token=visitor.session.token) as client:
            assert _changed(questions, back, session) == []
            with client.stream(track="harbour", since=visitor.cursor) as events:
                by_old_client = next(events)
                assert isinstance(by_old_client, Post)
                assert by_old_client.status.text == "the fourth harbour"
                _hear(events, client.post("the fifth harbour").id)
