"""Refusals say what would be taken, in words."""

import pytest

from stream_server.errors import ApiError
from stream_server.web.api.groups import NewGroup
from stream_server.web.api.statuses import NewStatus
from stream_server.web.api.talks import NewTalk
from stream_server.web.api.users import NewUser
from stream_server.web.http.validation import decode_body

USER = '{"login": "%s", "name": "Ada", "email": "%s", "password": "correct horse"}'


@pytest.mark.parametrize(
    ("kind", "body", "param", "message"),
    [
        (NewUser, USER % ("a b", "a@b.c"), "login", "not as it must be: 1 to 20 letters, digits or _"),
        (NewUser, USER % ("ada", "ab"), "email", "not as it must be: an address such as ada@example.org"),
        (NewTalk, '{"people": ["1", "bob"]}', "people[1]", "not as it must be: a decimal number"),
        (NewStatus, '{"message": "m", "lang": "a b"}', "lang", "not as it must be: BCP 47, such as en-GB"),
        (NewStatus, '{"place": {"country": "France"}}', "place.country", "not as it must be: ISO 3166-1 alpha-2"),
        (NewStatus, '{"media": [{"type": "x", "url": "http://a"}]}', "media[0].type",
         "one of audio, gif, image, video"),
        (NewStatus, '{"media": [{"type": "image", "url": "x"}]}', "media[0].url",
         "not as it must be: begins http:// or https://"),
        (NewGroup, '{"name": "n", "kind": "x"}', "kind", "one of announcement, private, public"),
        (NewUser, '{"login": 1}', "login", "Expected str, got int"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_would_be_taken(kind: type, body: str, param: str, message: str) -> None:
    """A pattern by what it is for, one of a few by which they are, and nothing of what was sent."""
    with pytest.raises(ApiError) as refused:
        decode_body(kind, body.encode())
    assert (refused.value.param, refused.value.message) == (param, message)
