"""What scripts refuse with, and what people are told: each word is known, and no text waits for a word that is gone."""

import re
from importlib import resources

import pytest
from redis.exceptions import ResponseError

from stream_server.errors import InternalError
from stream_server.store.redis.refusals import BAD_REQUEST_MESSAGES, NOT_YOURS_MESSAGES, TOO_MANY_MESSAGES, to_api_error

LUA = resources.files("stream_server.store").joinpath("lua")

TEXT = "\n".join(
    file.read_text("utf-8")
    for folder in (LUA, LUA.joinpath("parts"))
    for file in folder.iterdir()
    if file.name.endswith(".lua")
)

REFUSALS = sorted(set(re.findall(r"refuse\('([A-Z_]+ [\w-]+)", TEXT)) | {f"{word} id" for word in BAD_REQUEST_MESSAGES})
"""The word and the noun of every refusal in the scripts."""


@pytest.mark.parametrize("refusal", REFUSALS)
def test_each_refusal_has_a_text_for_people(refusal: str) -> None:
    """A word that nobody knows would be a 500, and so would a noun without its bound."""
    error = to_api_error(ResponseError(refusal))
    assert not isinstance(error, InternalError)
    assert error.message


def test_no_text_is_for_a_refusal_that_is_gone() -> None:
    """Every text that may be told is told by a script."""
    told = {tuple(refusal.split(" ")) for refusal in re.findall(r"refuse\('([A-Z_]+ [\w-]+)", TEXT)}
    words = set(re.findall(r"refuse\('([A-Z_]+) ", TEXT))
    assert set(BAD_REQUEST_MESSAGES) <= words
    assert {("NOT_YOURS", noun) for noun in NOT_YOURS_MESSAGES} <= told
    assert {("TOO_MANY", noun) for noun in TOO_MANY_MESSAGES} <= told
