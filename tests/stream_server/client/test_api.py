"""The calls with one answer: the client retries them only where that is safe."""

import msgspec
import pytest

from stream_server.client import ApiClient, Malformed, RequestRefused, Unreachable
from stream_server.client.errors import parse_refusal
from tests.stream_server.client.scripted_server import Answer, RecordedBackoff, error, message, scripted

POSTED = Answer([b'{"id":"1","message":"hi"}'], 201)


async def test_a_write_is_repeated_with_its_idempotency_key() -> None:
    noted = RecordedBackoff()
    unknown = Answer([error("outcome_unknown")], 503, {"Retry-After": "1"})
    answers = (unknown, Answer([b"{"], cut=True), POSTED)
    async with scripted(*answers) as script, ApiClient(script.url, "jwt", backoff=noted) as api:
        assert (await api.post("hi", lang="en"))["id"] == "1"
        assert api.repeats == 2
    assert len({asked.headers["Idempotency-Key"] for asked in script.asked}) == 1
    assert [msgspec.json.decode(asked.body) for asked in script.asked] == [{"message": "hi", "lang": "en"}] * 3
    assert noted.waits == [(0, 1.0), (1, None)]


async def test_two_writes_have_two_keys() -> None:
    async with scripted(POSTED, POSTED, POSTED) as script, ApiClient(script.url, "jwt") as api:
        await api.post("hi")
        await api.post("hi")
        await api.post("hi", key="mine", token="theirs")
    keys = [asked.headers["Idempotency-Key"] for asked in script.asked]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"
    assert script.asked[2].headers["Authorization"] == "Bearer theirs"


async def test_a_refused_request_is_not_repeated() -> None:
    answer = Answer([error("invalid_parameter", "empty", param="message")], 400)
    async with scripted(answer) as script, ApiClient(script.url, "jwt") as api:
        with pytest.raises(RequestRefused) as refused:
            await api.post("")
    assert str(refused.value) == "400 invalid_parameter (message): empty"
    assert len(script.asked) == 1


async def test_attempts_are_bounded() -> None:
    async with (
        scripted(*[Answer([error("unavailable")], 503)] * 3) as script,
        ApiClient(script.url, "jwt", attempts=3, backoff=RecordedBackoff()) as api,
    ):
        with pytest.raises(RequestRefused, match="unavailable"):
            await api.me()
    assert len(script.asked) == 3


async def test_a_server_that_does_not_answer_is_unreachable() -> None:
    async with scripted() as script:
        url = script.url
    async with ApiClient(url, attempts=2, backoff=RecordedBackoff()) as api:
        with pytest.raises(Unreachable, match="gave no answer"):
            await api.me()


async def test_users_are_created_in_batches_of_a_thousand() -> None:
    people = [(f"User{n}", f"User {n}") for n in range(2500)]
    batches = [people[:1000], people[1000:2000], people[2000:]]
    answers = [
        Answer([msgspec.json.encode({"users": [{"id": login[4:], "login": login} for login, _ in batch]})])
        for batch in batches
    ]
    async with scripted(*answers) as script, ApiClient(script.url, "jwt") as api:
        ids = await api.create_users(people)
    assert ids == {f"user{n}": str(n) for n in range(2500)}
    assert [len(msgspec.json.decode(asked.body)["users"]) for asked in script.asked] == [1000, 1000, 500]


async def test_a_long_poll_gives_messages_and_the_next_cursor() -> None:
    body = b'{"events":[%s],"cursor":"c9","more":false}' % message("post", 9, status={"message": "hi"})
    async with scripted(Answer([body])) as script, ApiClient(script.url, "jwt") as api:
        events, cursor = await api.poll_events({"track": "hi"}, since="c1", wait=0.5)
    assert ([event.status["message"] for event in events], cursor) == (["hi"], "c9")
    assert script.asked[0].query == {"track": "hi", "since": "c1", "wait": "0.5", "limit": "100"}


async def test_an_answer_without_json_is_malformed() -> None:
    async with scripted(Answer([b"<html>"])) as script, ApiClient(script.url, "jwt") as api:
        with pytest.raises(Malformed):
            await api.me()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error":"no"}', b'{"error":{}}', b"\xff"])
def test_any_error_page_is_a_refusal(body: bytes) -> None:
    refused = parse_refusal(502, "soon", body)
    assert (refused.status, refused.code, refused.retry_after) == (502, "", None)
    assert refused.is_temporary
