"""An app has its users at an identity provider, and puts this server beside itself."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Self

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.command_line import run
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

ISSUER, AUDIENCE = "https://login.example.org/", "https://api.example.org"


class Issuer:
    """A small OpenID-style issuer: it publishes a key set, and signs tokens in which it calls users by its own ids."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        document = msgspec.json.encode({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]})

        class Keys(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(document)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Keys)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def token(self, sub: str | None, **claims: Any) -> str:
        now = int(time.time())
        who = {} if sub is None else {"sub": sub}
        all_claims = {"iss": ISSUER, "aud": [AUDIENCE], "iat": now, "exp": now + 600, **who, **claims}
        return jwt.encode(all_claims, self.key, "RS256", headers={"kid": "k1"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.close()


def beside(issuer: Issuer, folder: Path, *more: str) -> Server:
    """Return a server, not yet started, whose users are those of the issuer."""
    options = (
        "--jwt-algorithm", "RS256", "--jwt-jwks-url", issuer.url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE,
        "--external-subjects", "on", "--claims", "login=nickname scopes=permissions",
        "--scope-rules",
        "read write stream; https://app/roles=staff:firehose; realm.groups=root:admin; sub=site|jobs:ingest",
    )  # fmt: skip
    return Server(folder, *options, *more, variables={"STREAM_SERVER_JWT_SECRET": ""})


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with beside(issuer, tmp_path_factory.mktemp("server")) as running:
        yield running


class Caller(Api):
    """Sends requests with the tokens of the issuer. Nobody can sign up."""

    async def __aenter__(self) -> Self:
        return self

    async def ingest(self, token: str, *lines: dict[str, Any]) -> list[dict[str, Any]]:
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        headers = {"Content-Type": "application/x-ndjson"}
        answer = await self.call("POST", "/v1/ingest", token=token, headers=headers, data=body)
        assert answer.status == 200, answer
        return [msgspec.json.decode(line) for line in answer.body.splitlines()]

    async def me(self, token: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.done("GET", "/v1/users/me", token=token)
        return found


@pytest.fixture
async def caller(server: Server) -> AsyncIterator[Caller]:
    async with Caller(server) as made:
        yield made


async def test_a_user_is_made_at_first_sight_and_found_again(caller: Caller, issuer: Issuer) -> None:
    claims = {"nickname": "ada.lovelace", "name": "Ada Lovelace", "email": "ada@example.org", "email_verified": True}
    first = await caller.me(issuer.token("auth0|ada", **claims))
    assert (first["login"], first["name"], first["email"]) == ("ada_lovelace", "Ada Lovelace", "ada@example.org")
    assert (await caller.me(issuer.token("auth0|ada", nickname="other")))["id"] == first["id"]
    posted = await caller.call("POST", "/v1/statuses", token=issuer.token("auth0|ada"), json={"message": "hello"})
    assert (posted.status, posted.json["uid"]) == (201, first["id"])


async def test_many_first_requests_at_once_make_one_user(caller: Caller, issuer: Issuer) -> None:
    found = await asyncio.gather(*(caller.me(issuer.token("auth0|race", nickname="race")) for _ in range(50)))
    assert len({user["id"] for user in found}) == 1


async def test_logins_and_addresses_of_others_are_not_taken_over(caller: Caller, issuer: Issuer) -> None:
    victim = await caller.me(issuer.token("a|1", nickname="victim", email="v@example.org", email_verified=True))
    thief = await caller.me(issuer.token("a|2", nickname="Victim", email="V@example.org", email_verified=True))
    unverified = await caller.me(issuer.token("a|3", nickname="x", email="free@example.org"))
    assert (victim["login"], thief["login"]) == ("victim", "Victim2")
    assert (victim["email"], thief["email"], unverified["email"]) == ("v@example.org", None, None)


async def test_an_id_of_the_issuer_is_never_an_id_of_this_server(caller: Caller, issuer: Issuer) -> None:
    victim = await caller.me(issuer.token("auth0|numbers", nickname="numbers"))
    other = await caller.me(issuer.token(victim["id"], nickname="numbers"))
    assert other["id"] != victim["id"]


async def test_another_issuer_makes_no_reader_tokens(caller: Caller, issuer: Issuer) -> None:
    for sub, limits in ((None, {}), (None, {"within": "tea"}), ("auth0|reader", {"within": "tea"})):
        token = issuer.token(sub, scope="stream", permissions="stream", jti="1", **limits)
        refused = await caller.call("GET", "/v1/events?track=tea&wait=0", token=token)
        assert refused.error[:2] == (401, "invalid_token")


async def test_a_token_without_usable_claims_gets_a_user_too(caller: Caller, issuer: Issuer) -> None:
    found = await caller.me(issuer.token("google-oauth2|108", nickname="\u202e!!", name="\u200b"))
    assert found["login"].startswith("u")
    assert found["name"] == found["login"]


async def test_scopes_come_from_a_claim_and_by_rule(caller: Caller, issuer: Issuer) -> None:
    tokens = {
        "plain": issuer.token("s|plain"),
        "claim": issuer.token("s|claim", permissions=["firehose", "unknown"]),
        "role": issuer.token("s|role", **{"https://app/roles": ["staff", "other"]}),
        "root": issuer.token("s|root", realm={"groups": ["root"]}),
        "forged": issuer.token("s|forged", scope="admin firehose", srv_session="x"),
    }
    may_firehose, may_administer = set(), set()
    for name, token in tokens.items():
        if (await caller.call("GET", "/v1/events?firehose=true&wait=0", token=token)).status == 200:
            may_firehose.add(name)
        if (await caller.call("GET", "/v1/admin/reports", token=token)).status == 200:
            may_administer.add(name)
    assert (may_firehose, may_administer) == ({"claim", "role"}, {"root"})


async def test_the_first_administrator_comes_by_the_command_line(
    caller: Caller, issuer: Issuer, server: Server
) -> None:
    token = issuer.token("s|first", nickname="first")
    await caller.me(token)
    assert (await caller.call("GET", "/v1/admin/audit", token=token)).status == 403
    done = await asyncio.to_thread(run, "admin", "first", "--data-dir", server.data)
    assert (done.code, done.out) == (0, "first is an administrator\n"), done
    answer = await caller.call("GET", "/v1/admin/audit", token=token)
    assert (answer.json["deeds"][0]["deed"], answer.json["deeds"][0]["by"]) == ("grant_admin", None)
    done = await asyncio.to_thread(run, "admin", "first", "--remove", "--data-dir", server.data)
    assert (await caller.call("GET", "/v1/admin/audit", token=token)).status == 403
    assert (await asyncio.to_thread(run, "admin", "nobody", "--data-dir", server.data)).code == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/users", {"login": "a", "name": "a", "email": "a@b.c", "password": "correct horse"}),
        ("GET", "/v1/users/available?login=a", None),
        ("POST", "/v1/sessions", {"login": "a", "password": "correct horse"}),
        ("POST", "/v1/sessions", {"refresh_token": "1.a.b.c"}),
    ],
)
async def test_what_is_switched_off_is_not_found(caller: Caller, method: str, path: str, body: Any) -> None:
    answer = await caller.call(method, path, **({} if body is None else {"json": body}))
    assert answer.error == (404, "not_found", None)


async def test_a_stream_of_an_external_user(caller: Caller, issuer: Issuer) -> None:
    token = issuer.token("s|stream", nickname="streamer")
    uid = (await caller.me(token))["id"]
    stream = await caller.stream({"follow": uid}, token=token)
    posted = await caller.call("POST", "/v1/statuses", token=token, json={"message": "live"})
    await stream.until(lambda s: s.received == [("post", posted.json["id"])])
    await stream.close()


def person(foreign_id: str, **members: Any) -> dict[str, Any]:
    return {"op": "user", "user": {"foreign_id": foreign_id, **members}}


async def test_who_is_ingested_is_who_logs_in_whichever_came_first(caller: Caller, issuer: Issuer) -> None:
    """The site names people by the `sub` of the issuer. Afterwards nobody can tell which way the user came first."""
    jobs = issuer.token("site|jobs")
    early = await caller.me(issuer.token("p|early", nickname="early"))
    profile = {"login": "Late", "name": "N", "bio": "tea"}
    (known, late) = await caller.ingest(jobs, person("p|early", **profile), person("p|late", **profile))
    assert (known["id"], known["outcome"], late["outcome"]) == (early["id"], "updated", "created")
    assert known["left_out"][0]["param"] == "user.login"
    found = [await caller.me(issuer.token(sub, nickname="other", name="Other")) for sub in ("p|early", "p|late")]
    assert [(user["id"], user["login"], user["foreign_id"]) for user in found] == [
        (early["id"], "early", "p|early"), (late["id"], "Late", "p|late"),
    ]  # fmt: skip
    own, other = [{**user, "id": "", "login": "", "signup": "", "foreign_id": ""} for user in found]
    assert own == other


async def test_an_ingested_user_reads_a_stream_with_the_tokens_of_the_site(caller: Caller, issuer: Issuer) -> None:
    jobs, reader = issuer.token("site|jobs"), issuer.token("p|reader")
    await caller.me(issuer.token("p|friend"))
    await caller.ingest(
        jobs, person("p|reader"), person("p|writer"), {"op": "follow", "source": "p|reader", "target": "p|writer"}
    )
    stream = await caller.stream({"follow": "@me,foreign:p|friend"}, token=reader)
    lines = [
        {"op": "post", "status": {"foreign_id": f"by:{sub}", "author": sub, "message": "hi"}}
        for sub in ("p|writer", "p|friend")
    ]
    posted = await caller.ingest(jobs, *lines)
    await stream.until(lambda s: s.received == [("post", answer["id"]) for answer in posted])
    (ended,) = await caller.ingest(jobs, {"op": "suspend", "user": "p|reader"})
    await stream.until_end()
    assert (await caller.call("GET", "/v1/users/me", token=reader)).error == (403, "suspended", None)
    assert ended["cursor"] > posted[-1]["cursor"]


@pytest.mark.extended
async def test_a_setting_keeps_foreign_ids_and_subjects_apart(issuer: Issuer, own_folder: Path) -> None:
    jobs = issuer.token("site|jobs")
    async with beside(issuer, own_folder, "--ingest-subjects", "off") as apart, Caller(apart) as caller:
        early = await caller.me(issuer.token("p|one"))
        (made,) = await caller.ingest(jobs, person("p|one"))
        assert (made["outcome"], made["id"] == early["id"]) == ("created", False)
        (posted,) = await caller.ingest(
            jobs, {"op": "post", "status": {"foreign_id": "s", "author": "p|one", "message": "hi"}}
        )
        found = await caller.call("GET", "/v1/events?follow=foreign:p|one&since=-1m&wait=0", token=jobs)
        assert [event["status"]["id"] for event in found.json["events"]] == [posted["id"]]
        assert (await caller.me(issuer.token("p|one")))["posts"] == 0


@pytest.mark.extended
def test_a_server_that_signs_tokens_takes_no_external_subjects(tmp_path: Path) -> None:
    done = run("serve", "--port", "0", "--external-subjects", "on")
    assert done.code == 2
    assert "--external-subjects" in done.err
