"""Tickets in the URL: each opens one stream with its token's scopes, ends with the token, and leaves no trace."""

from hashlib import sha256
from pathlib import Path

import pytest

from tests.end_to_end.api import Answer, Api, mint, with_brief_token
from tests.end_to_end.consumer import MEDIA, Consumer
from tests.end_to_end.server import Server

WAYS = ("/v1/stream?firehose=true", "/v1/stream/user", "/v1/events?firehose=true&wait=0")


async def ticket(api: Api, token: str) -> str:
    made = await api.done("POST", "/v1/streams/ticket", token=token)
    assert set(made) == {"ticket", "expires_in"}
    assert made["expires_in"] == 30
    assert len(made["ticket"]) == 43  # 256 random bits
    return str(made["ticket"])


async def shown(api: Api, path: str, given: str) -> Answer:
    """Request ``path`` with a ticket."""
    return await api.call("GET", f"{path}{'&' if '?' in path else '?'}ticket={given}")


async def opened(api: Api, token: str, **params: str) -> Consumer:
    """Open a stream with a new ticket, as a browser's EventSource does."""
    query = {**params, "ticket": await ticket(api, token)}
    answer = await api.session.get("/v1/stream", params=query, headers={"Accept": MEDIA["sse"]})
    assert answer.status == 200, await answer.text()
    return Consumer(answer, "sse")


async def test_a_ticket_opens_a_stream(api: Api) -> None:
    """The URL gives the filters, the ticket's user decides what is visible, and new posts arrive."""
    uid = await api.user()
    async with await opened(api, mint(uid), track="tickets") as stream:
        await stream.until(lambda s: s.messages)
        status = await api.post(uid, "of tickets")
        await stream.until(lambda s: s.events)
        assert stream.received == [("post", status["id"])]


@pytest.mark.parametrize("path", WAYS)
async def test_a_ticket_is_valid_once(api: Api, path: str) -> None:
    """A used ticket is refused like an unknown one, also for another path."""
    given = await ticket(api, mint(await api.user()))
    assert (await shown(api, "/v1/events?firehose=true&wait=0", given)).status == 200
    for one in (given, "never-issued", ""):
        refused = await shown(api, path, one)
        assert refused.error == (401, "invalid_token", "ticket")
        assert refused.headers["WWW-Authenticate"].startswith("Bearer ")


async def test_a_refused_stream_uses_its_ticket(api: Api) -> None:
    """A request without filters uses up the ticket too."""
    given = await ticket(api, mint(await api.user()))
    assert (await shown(api, "/v1/stream", given)).error == (400, "missing_parameter", "track")
    assert (await shown(api, "/v1/stream?track=x", given)).error == (401, "invalid_token", "ticket")


async def test_a_ticket_and_a_token_conflict(api: Api) -> None:
    """A request with both is refused, and so are two tickets. The ticket stays valid."""
    token = mint(await api.user())
    given = await ticket(api, token)
    path = "/v1/events?firehose=true&wait=0"
    both = await api.call("GET", f"{path}&ticket={given}", token=token)
    assert both.error == (400, "conflicting_parameters", "ticket")
    assert (await shown(api, f"{path}&ticket={given}", given)).error == (400, "conflicting_parameters", "ticket")
    assert (await shown(api, path, given)).status == 200


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("GET", "/v1/users/me", (400, "unknown_parameter", "ticket")),
        ("POST", "/v1/statuses", (400, "unknown_parameter", "ticket")),
        ("POST", "/v1/streams/ticket", (400, "unknown_parameter", "ticket")),
        ("POST", "/v1/stream", (401, "invalid_token", None)),
        ("POST", "/v1/events", (401, "invalid_token", None)),
    ],
)
async def test_a_ticket_opens_streams_only(
    api: Api, method: str, path: str, refusal: tuple[int, str, str | None]
) -> None:
    """A ticket cannot read or write anything else, get another ticket, or open a stream by a posted form."""
    given = await ticket(api, mint(await api.user()))
    assert (await api.call(method, f"{path}?ticket={given}")).error == refusal


async def test_a_posted_form_takes_no_ticket(api: Api) -> None:
    """Beside a token, `ticket` in a form is an unknown parameter."""
    token = mint(await api.user())
    refused = await api.call("POST", "/v1/stream", token=token, data={"track": "x", "ticket": "t"})
    assert refused.error == (400, "unknown_parameter", "ticket")


async def test_a_ticket_has_the_scopes_of_its_token(api: Api) -> None:
    """The firehose needs the scope in the token. A token without the scope for streams gets no ticket."""
    given = await ticket(api, mint(await api.user(), "stream"))
    assert (await shown(api, "/v1/stream?firehose=true", given)).error == (403, "insufficient_scope", None)
    refused = await api.call("POST", "/v1/streams/ticket", token=mint(await api.user(), "read write"))
    assert refused.error == (403, "insufficient_scope", None)


@pytest.mark.parametrize("code", ["token_expired", "token_revoked", "suspended"])
async def test_the_end_of_the_token_ends_the_stream(api: Api, code: str) -> None:
    """The expiry of the token, a log-out, and a suspension end every stream of the token, also that of a ticket."""
    uid = await api.user()
    token = mint(uid)

    async def heard(token: str) -> Consumer:
        return await (await opened(api, token, track="x")).until(lambda s: s.messages)

    async with await (with_brief_token(uid, heard) if code == "token_expired" else heard(token)) as stream:
        if code == "token_revoked":
            await api.call("DELETE", "/v1/sessions", token=token)
        elif code == "suspended":
            await api.done("PUT", f"/v1/admin/suspensions/{uid}", token=mint(api.admin, "admin"))
        await stream.until(lambda s: s.of("goodbye"))
        assert stream.messages[-1]["code"] == code


async def test_a_ticket_of_a_token_that_ended_opens_nothing(api: Api) -> None:
    """The token was revoked, or expired, after the ticket was made."""
    uid = await api.user()
    token = mint(uid)
    given = await ticket(api, token)
    await api.call("DELETE", "/v1/sessions", token=token)
    assert (await shown(api, "/v1/stream?track=x", given)).error == (401, "token_revoked", None)

    async def with_ticket(token: str) -> tuple[str, Consumer]:
        return await ticket(api, token), await opened(api, token, track="x")

    given, stream = await with_brief_token(uid, with_ticket)
    async with stream:
        await stream.until(lambda s: s.of("goodbye"))  # the server itself reports the expiry
    assert (await shown(api, "/v1/stream?track=x", given)).error == (401, "token_expired", "ticket")


async def test_a_ticket_is_in_no_log_and_no_file(tmp_path: Path) -> None:
    """No log, answer or key in Redis contains the text of a ticket, whatever happened to the ticket."""
    with Server(tmp_path, "--log-level", "debug") as server:
        async with Api(server) as api:
            token = mint(await api.user())
            given = await ticket(api, token)
            answers = [await api.call("GET", f"/v1/events?ticket={given}", token=token)]
            answers += [await shown(api, path, given) for path in ("/v1/users/me", "/v1/nothing", "/v1/events?x=y")]
            async with await opened(api, token, track="x") as stream:
                await stream.until(lambda s: s.messages)
                told = str(stream.messages)
            answers.append(await api.call("GET", f"/v1/stream?ticket={given}", headers={"X-Long": "x" * 9_000}))
            answers.append(await api.call("GET", f"/v1/stream?ticket={given}&x={'x' * 9_000}"))
            assert {one.status for one in answers} == {400, 401, 404}
        assert given not in told + "".join(str(one) for one in answers)
    assert _holding(tmp_path, sha256(given.encode()).hexdigest())  # the search covers the data of Redis
    assert not _holding(tmp_path, given)


def _holding(folder: Path, text: str) -> list[Path]:
    """Return the files that contain the text: logs and the data of Redis."""
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
