"""An app has its users at an identity provider, and puts this server beside itself."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.command_line import run
from tests.end_to_end.api import Answer
from tests.end_to_end.consumer import MEDIA, Consumer
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

    def token(self, sub: str, **claims: Any) -> str:
        now = int(time.time())
        all_claims = {"iss": ISSUER, "aud": [AUDIENCE], "sub": sub, "iat": now, "exp": now + 600, **claims}
        return jwt.encode(all_claims, self.key, "RS256", headers={"kid": "k1"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def server(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = (
        "--jwt-algorithm", "RS256", "--jwt-jwks-url", issuer.url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE,
        "--external-subjects", "on", "--claim-login", "nickname", "--claim-scopes", "permissions",
        "--scope-rules", "https://app/roles=staff:firehose; realm.groups=root:admin",
    )  # fmt: skip
    variables = {"STREAM_SERVER_JWT_SECRET": ""}
    with Server(tmp_path_factory.mktemp("server"), *options, variables=variables) as running:
        yield running


class Caller:
    """Sends requests with the tokens of the issuer."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def call(self, method: str, path: str, token: str | None = None, **more: Any) -> Answer:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with self.session.request(method, path, headers=headers, **more) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def me(self, token: str) -> dict[str, Any]:
        answer = await self.call("GET", "/v1/users/me", token)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json
        return found


@pytest.fixture
async def caller(server: Server) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession(server.address) as session:
        yield Caller(session)


async def test_a_user_is_made_at_first_sight_and_found_again(caller: Caller, issuer: Issuer) -> None:
    claims = {"nickname": "ada.lovelace", "name": "Ada Lovelace", "email": "ada@example.org", "email_verified": True}
    first = await caller.me(issuer.token("auth0|ada", **claims))
    assert (first["login"], first["name"], first["email"]) == ("ada_lovelace", "Ada Lovelace", "ada@example.org")
    assert (await caller.me(issuer.token("auth0|ada", nickname="other")))["id"] == first["id"]
    posted = await caller.call("POST", "/v1/statuses", issuer.token("auth0|ada"), json={"message": "hello"})
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
        if (await caller.call("GET", "/v1/events?firehose=true&wait=0", token)).status == 200:
            may_firehose.add(name)
        if (await caller.call("GET", "/v1/admin/reports", token)).status == 200:
            may_administer.add(name)
    assert (may_firehose, may_administer) == ({"claim", "role"}, {"root"})


async def test_the_first_administrator_comes_by_the_command_line(
    caller: Caller, issuer: Issuer, server: Server
) -> None:
    token = issuer.token("s|first", nickname="first")
    await caller.me(token)
    assert (await caller.call("GET", "/v1/admin/audit", token)).status == 403
    done = await asyncio.to_thread(run, "admin", "first", "--data-dir", server.data)
    assert (done.code, done.out) == (0, "first is an administrator\n"), done
    answer = await caller.call("GET", "/v1/admin/audit", token)
    assert (answer.json["deeds"][0]["deed"], answer.json["deeds"][0]["by"]) == ("grant_admin", None)
    done = await asyncio.to_thread(run, "admin", "first", "--remove", "--data-dir", server.data)
    assert (await caller.call("GET", "/v1/admin/audit", token)).status == 403
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
    headers = {"Authorization": f"Bearer {token}", "Accept": MEDIA["ndjson"]}
    response = await caller.session.get("/v1/stream", params={"follow": uid}, headers=headers)
    stream = Consumer(response, "ndjson")
    posted = await caller.call("POST", "/v1/statuses", token, json={"message": "live"})
    await stream.until(lambda s: s.received == [("post", posted.json["id"])])
    await stream.close()


@pytest.mark.extended
def test_a_server_that_signs_tokens_takes_no_external_subjects(tmp_path: Path) -> None:
    done = run("serve", "--port", "0", "--external-subjects", "on")
    assert done.code == 2
    assert "--external-subjects" in done.err
