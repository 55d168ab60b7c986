"""What scripts refuse with, and what people are told: each word is known, and no text waits for a word that is gone."""

import re
from importlib import resources

import pytest
from redis.exceptions import ResponseError

from stream_server.errors import Internal
from stream_server.store.refusals import NOT_YOURS, REFUSED, TOO_MANY, refused

LUA = resources.files("stream_server.store").joinpath("lua")

TEXT = "\n".join(
    file.read_text("utf-8")
    for folder in (LUA, LUA.joinpath("parts"))
    for file in folder.iterdir()
    if file.name.endswith(".lua")
)

REFUSALS = sorted(set(re.findall(r"refuse\('([A-Z_]+ [\w-]+)", TEXT)) | {f"{word} id" for word in REFUSED})
"""The word and the noun of every refusal in the scripts."""


@pytest.mark.parametrize("refusal", REFUSALS)
def test_each_refusal_has_a_text_for_people(refusal: str) -> None:
    """A word that nobody knows would be a 500, and so would a noun without its bound."""
    error = refused(ResponseError(refusal))
    assert not isinstance(error, Internal)
    assert error.message


def test_no_text_is_for_a_refusal_that_is_gone() -> None:
    """Every text that may be told is told by a script."""
    told = {tuple(refusal.split(" ")) for refusal in re.findall(r"refuse\('([A-Z_]+ [\w-]+)", TEXT)}
    words = set(re.findall(r"refuse\('([A-Z_]+) ", TEXT))
    assert set(REFUSED) <= words
    assert {("NOT_YOURS", noun) for noun in NOT_YOURS} <= told
    assert {("TOO_MANY", noun) for noun in TOO_MANY} <= told
