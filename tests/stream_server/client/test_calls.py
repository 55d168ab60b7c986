"""The calls with one answer: the client repeats them only where that is safe, and tells what it cannot know."""

import asyncio

import msgspec
import pytest

from stream_server.client import Client, InvalidAddress, Malformed, OutcomeUnknown, Post, RequestRefused, Unreachable
from stream_server.client.errors import parse_refusal
from tests.stream_server.client.scripted_server import Answer, RecordedBackoff, error, message, scripted, status
from tests.waiting import PATIENCE

POSTED = Answer([msgspec.json.encode(status(1, "hi"))], 201)
UNAVAILABLE = Answer([error("unavailable")], 503)
CUT = Answer([b"{"], cut=True)
UNKNOWN = Answer([error("outcome_unknown")], 503, {"Retry-After": "1"})


async def test_a_write_is_repeated_with_its_idempotency_key() -> None:
    noted = RecordedBackoff()
    async with scripted(UNKNOWN, CUT, POSTED) as script, Client(script.url, "jwt", backoff=noted) as api:
        assert (await api.post("hi", lang="en")).id == "1"
        assert api.repeats == 2
    assert len({asked.headers["Idempotency-Key"] for asked in script.asked}) == 1
    assert [msgspec.json.decode(asked.body) for asked in script.asked] == [{"message": "hi", "lang": "en"}] * 3
    assert noted.waits == [(0, 1.0), (1, None)]


async def test_two_writes_have_two_keys() -> None:
    async with scripted(POSTED, POSTED, POSTED) as script, Client(script.url, "jwt") as api:
        await api.post("hi")
        await api.post("hi")
        await api.post("hi", key="mine", token="theirs")
    keys = [asked.headers["Idempotency-Key"] for asked in script.asked]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"
    assert script.asked[2].headers["Authorization"] == "Bearer theirs"


async def test_an_account_that_is_deleted_already_is_deleted() -> None:
    """The answer to the first attempt is lost. Another refusal is raised."""
    gone, wrong = Answer([error("account_deleted")], 401), Answer([error("wrong_password")], 403)
    async with scripted(CUT, gone, wrong) as script, Client(script.url, "jwt", backoff=RecordedBackoff()) as api:
        await api.delete_account("a password")
        with pytest.raises(RequestRefused, match="wrong_password"):
            await api.delete_account()
    assert [(asked.method, asked.path) for asked in script.asked] == [("DELETE", "/v1/users/me")] * 3
    assert [msgspec.json.decode(asked.body) for asked in script.asked] == [{"password": "a password"}] * 2 + [{}]


async def test_a_refused_request_is_not_repeated() -> None:
    answer = Answer([error("invalid_parameter", "empty", param="message")], 400)
    async with scripted(answer) as script, Client(script.url, "jwt") as api:
        with pytest.raises(RequestRefused) as refused:
            await api.post("")
    assert str(refused.value) == "400 invalid_parameter (message): empty"
    assert len(script.asked) == 1


async def test_a_mistake_in_a_rule_has_its_place() -> None:
    body = b'{"error":{"code":"invalid_parameter","message":"no","param":"rules[0].rule","column":5}}'
    async with scripted(Answer([body], 400)) as script, Client(script.url, "jwt") as api:
        with pytest.raises(RequestRefused) as refused:
            await api.save_rules(["tea ("])
    assert (refused.value.param, refused.value.column) == ("rules[0].rule", 5)


async def test_attempts_are_bounded() -> None:
    async with (
        scripted(*[UNAVAILABLE] * 3) as script,
        Client(script.url, "jwt", attempts=3, backoff=RecordedBackoff()) as api,
    ):
        with pytest.raises(RequestRefused, match="unavailable"):
            await api.post("hi")
    assert len(script.asked) == 3


async def test_a_long_delay_is_raised() -> None:
    """The call does not wait for hours without a word."""
    answer = Answer([error("rate_limited")], 429, {"Retry-After": "3600"})
    async with scripted(answer) as script, Client(script.url, "jwt", backoff=RecordedBackoff()) as api:
        with pytest.raises(RequestRefused) as refused:
            await api.follow("7")
    assert (refused.value.retry_after, len(script.asked)) == (3600, 1)


@pytest.mark.parametrize("first", [UNKNOWN, CUT, Answer([b"<html>"], 502), Answer([b"<html>"], 504)])
@pytest.mark.parametrize("last", [UNAVAILABLE, Answer([error("rate_limited")], 429), Answer([error("x")], 401)])
async def test_an_ambiguous_attempt_is_not_forgotten(first: Answer, last: Answer) -> None:
    """The last refusal says that this attempt wrote nothing. It says nothing of the attempt before."""
    async with (
        scripted(first, last) as script,
        Client(script.url, "jwt", attempts=2, backoff=RecordedBackoff()) as api,
    ):
        with pytest.raises(OutcomeUnknown) as unknown:
            await api.post("hi")
    assert unknown.value.key == script.asked[0].headers["Idempotency-Key"]
    assert isinstance(unknown.value.last, RequestRefused)
    assert unknown.value.last.status == last.status


async def test_a_wrong_request_has_not_happened_in_any_attempt() -> None:
    async with (
        scripted(CUT, Answer([error("invalid_parameter")], 400)) as script,
        Client(script.url, "jwt", backoff=RecordedBackoff()) as api,
    ):
        with pytest.raises(RequestRefused, match="invalid_parameter"):
            await api.post("hi")


async def test_a_read_is_never_ambiguous() -> None:
    async with scripted(CUT, CUT) as script, Client(script.url, attempts=2, backoff=RecordedBackoff()) as api:
        with pytest.raises(Unreachable):
            await api.me()


async def test_a_question_with_a_body_is_a_read_too() -> None:
    async with scripted(CUT, CUT) as script, Client(script.url, attempts=2, backoff=RecordedBackoff()) as api:
        with pytest.raises(Unreachable):
            await api.preview_rule("tea", 5)
    assert "Idempotency-Key" not in script.asked[0].headers


async def test_long_parameters_of_a_poll_are_sent_in_a_body() -> None:
    words = [f"word{n}" for n in range(400)]
    async with scripted(Answer([b'{"events":[],"cursor":"c"}'])) as script, Client(script.url) as api:
        assert await api.poll(track=words, wait=0).next_page() == []
    assert (script.asked[0].method, script.asked[0].query) == ("POST", {})
    assert msgspec.json.decode(script.asked[0].body)["track"] == ",".join(words)


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    """Nothing was sent, so a write certainly did not happen."""
    async with scripted() as script:
        url = script.url
    async with Client(url, attempts=2, backoff=RecordedBackoff()) as api:
        with pytest.raises(Unreachable, match="gave no answer"):
            await api.post("hi")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "localhost", "", "ws://localhost", "http://", "http://a:b", "http://h/#code=1", "http://u:p@h"]
)  # fmt: skip
def test_an_address_is_checked_before_anything_is_sent(url: str) -> None:
    """The message says how to write it. A password in it is not repeated."""
    with pytest.raises(InvalidAddress, match="http://") as refused:
        Client(url, "jwt")
    assert "u:p" not in str(refused.value)
    assert url.rpartition("@")[2] in str(refused.value)
    assert isinstance(refused.value, ValueError)


PAGES = {
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>" + b"<p>x</p>" * 999: "502 Bad Gateway",
    b"<!DOCTYPE html><h1 class='x'>Who &amp;\n <i>are</i> you?</h1>": "Who & are you?",
    b"<p>\x1b[31mno way</p><script>alert(1)</script>": "[31mno way alert(1)",
    b"upstream connect error or " + b"disconnect " * 99: "upstream connect error or disconnect",
    b"": "no reason given",
    b"\xff\xfe": "\N{REPLACEMENT CHARACTER}",
}
"""Bodies of other programs, and a part of the line that tells of each."""


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_of_another_program_is_a_line(page: bytes) -> None:
    """It is the title of the page or its first words: in a refusal, an answer, and in the place of a stream."""
    answers = [Answer([page], 403, {"Content-Type": "text/html"}), Answer([page], 200, {"Content-Type": "text/html"})]
    async with scripted(*answers, answers[1]) as script, Client(script.url, "jwt") as api:
        with pytest.raises(RequestRefused) as refused:
            await api.me()
        with pytest.raises(Malformed) as malformed:
            await api.me()
        with pytest.raises(Unreachable) as unreachable:
            await anext(api.stream(track="x"))
    for told in (refused, malformed, unreachable) if page else (refused,):
        text = str(told.value)
        assert PAGES[page] in text
        assert text.isprintable()
        assert len(text) < 250, text
        assert "<" not in text
    assert "text/html" in str(unreachable.value)


async def test_users_are_created_in_batches_of_a_thousand() -> None:
    people = [(f"User{n}", f"User {n}") for n in range(2500)]
    batches = [people[:1000], people[1000:2000], people[2000:]]
    answers = [
        Answer([msgspec.json.encode({"users": [{"id": login[4:], "login": login} for login, _ in batch]})])
        for batch in batches
    ]
    async with scripted(*answers) as script, Client(script.url, "jwt") as api:
        ids = await api.create_users(people)
    assert ids == {f"user{n}": str(n) for n in range(2500)}
    assert [len(msgspec.json.decode(asked.body)["users"]) for asked in script.asked] == [1000, 1000, 500]


async def test_a_page_holds_typed_items() -> None:
    body = {"statuses": [status(2, "b"), {**status(1, "a"), "later": True}], "next": "n", "prev": None}
    async with scripted(Answer([msgspec.json.encode(body)])) as script, Client(script.url, "jwt") as api:
        page = await api.home(count=2, before="x")
    assert ([each.text for each in page.items], page.next, page.prev, page.unread) == (["b", "a"], "n", None, None)
    assert script.asked[0].query == {"count": "2", "before": "x"}


async def test_a_poll_yields_events_from_cursor_to_cursor() -> None:
    """A gap is yielded, and an empty answer moves the cursor."""
    events = [message("post", 9, status=status(9, "hi")), message("gap", 10, reason="trimmed"), message("warning", 10)]
    answers = [b'{"events":[%s],"cursor":"c10","more":false}' % b",".join(events), b'{"events":[],"cursor":"c11"}']
    async with (
        scripted(*(Answer([answer]) for answer in answers)) as script,
        Client(script.url, "jwt") as api,
    ):
        poll = api.poll(track=["hi", "ho"], since="c1", wait=0.5)
        first, cursor, second = await anext(poll), poll.cursor, await anext(poll)
        assert isinstance(first, Post)
        assert (first.status.message, cursor, second.kind, poll.cursor) == ("hi", first.cursor, "gap", "c10")
        with pytest.raises(RequestRefused, match="410"):
            await anext(poll)
        assert poll.cursor == "c11"
    assert script.asked[0].query == {"track": "hi,ho", "since": "c1", "wait": "0.5", "limit": "100"}
    assert [asked.query["since"] for asked in script.asked] == ["c1", "c10", "c11"]


async def test_a_poll_of_a_subscription_acknowledges_each_page_by_the_next() -> None:
    """It names no place of its own at first: the server knows it."""
    answers = [
        b'{"events":[%s],"cursor":"c9"}' % message("post", 9, status=status(9, "hi")),
        b'{"events":[],"cursor":"c11"}',
    ]
    async with (
        scripted(*(Answer([answer]) for answer in answers)) as script,
        Client(script.url, "jwt") as api,
    ):
        poll = api.poll(subscription="work", wait=0.5)
        assert (await anext(poll)).kind == "post"
        with pytest.raises(RequestRefused, match="410"):
            await anext(poll)
    places = [(asked.query.get("since"), asked.query.get("cursor")) for asked in script.asked]
    assert places == [(None, None), (None, "c9"), (None, "c11")]


async def test_a_second_task_that_polls_is_refused() -> None:
    """It would ask from the same cursor, and get the same events."""
    answer = Answer([b'{"events":[%s],"cursor":"c9"}' % message("post", 9, status=status(9, "hi"))])
    async with scripted(answer, answer) as script, Client(script.url, "jwt") as api:
        poll = api.poll(track="hi")
        first = asyncio.create_task(anext(poll))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task waits"):
            await anext(poll)
        assert (await first).kind == "post"
    assert len(script.asked) == 1


async def test_a_goodbye_delays_the_next_request_and_no_event() -> None:
    """Also if the wait is cancelled."""
    events = [message("post", 9, status=status(9, "hi")), message("goodbye", 9, code="shutdown", retry_after=3600)]
    answer = Answer([b'{"events":[%s],"cursor":"c9"}' % b",".join(events)])
    async with scripted(answer) as script, Client(script.url, "jwt") as api:
        poll = api.poll(track="hi")
        assert (await asyncio.wait_for(anext(poll), PATIENCE)).kind == "post"
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(poll), 0.02)
    assert len(script.asked) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error":"no"}', b'{"error":{}}', b"\xff"])
def test_any_error_page_is_a_refusal(body: bytes) -> None:
    refused = parse_refusal(502, None, body)
    assert (refused.status, refused.code, refused.retry_after) == (502, "", None)
    assert refused.is_temporary


async def test_a_subscription_begins_where_the_server_says() -> None:
    async with Client("http://127.0.0.1:1", token="t") as client:
        for begin in (client.stream, client.poll):
            with pytest.raises(ValueError, match="since"):
                begin(subscription="work", since="-1h")
