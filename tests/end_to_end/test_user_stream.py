"""The parameters of ``/v1/stream/user`` and its resumption, on a real server."""

import pytest

from tests.end_to_end.api import Api, mint

PATH = "/v1/stream/user"


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"track": "a"}, (400, "unknown_parameter", "track")),
        ({"firehose": "true"}, (400, "unknown_parameter", "firehose")),
        ({"home": "1"}, (400, "unknown_parameter", "home")),
        ({"kinds": "post,revoke"}, (400, "invalid_parameter", "kinds")),
        ({"kinds": "suspend"}, (400, "invalid_parameter", "kinds")),
        ({"since": "nonsense"}, (400, "invalid_cursor", "since")),
    ],
)
async def test_other_parameters_are_refused(api: Api, params: dict[str, str], error: tuple[int, str, str]) -> None:
    """Any other parameter is refused by name, before the first byte."""
    answer = await api.call("GET", PATH, token=mint(api.admin), params=params)
    assert answer.error == error


async def test_the_user_stream_needs_the_stream_scope(api: Api) -> None:
    """A token without this scope is refused, as on every stream."""
    answer = await api.call("GET", PATH, token=mint(api.admin, "read write"))
    assert answer.error[:2] == (403, "insufficient_scope")


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
async def test_the_user_stream_resumes_from_its_cursor(api: Api, framing: str) -> None:
    """A follow between leaving and returning applies to later events. The events of the time away arrive once."""
    ann, bob, carl = [await api.user() for _ in range(3)]
    await api.follow(ann, bob)
    async with await api.stream({"kinds": "post,delete,message"}, uid=ann, path=PATH, framing=framing) as first:
        seen = await api.post(bob, "seen")
        await api.post(carl, "a stranger's")
        await first.until(lambda c: c.events)
        assert first.received == [("post", seen["id"])]
        cursor = first.cursor
    missed = await api.post(bob, "missed")
    await api.delete(bob, seen["id"])
    async with await api.stream(
        {"kinds": "post,delete", "since": cursor}, uid=ann, path=PATH, framing=framing
    ) as second:
        await second.until(lambda c: len(c.events) == 2)
        assert second.received == [("post", missed["id"]), ("delete", seen["id"])]
