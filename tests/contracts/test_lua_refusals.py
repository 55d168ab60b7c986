"""Refusals of Lua scripts: each has a message for people, and each message is in use."""

import re

import pytest
from redis.exceptions import ResponseError

from stream_server.errors import InternalError
from stream_server.store.redis.lua_library import read_library
from stream_server.store.redis.refusals import BAD_REQUEST_MESSAGES, NOT_YOURS_MESSAGES, TOO_MANY_MESSAGES, to_api_error

TEXT = "\n".join(read_library().values())

REFUSALS = sorted(set(re.findall(r"refuse\('([A-Z_]+ [\w-]+)", TEXT)) | {f"{word} id" for word in BAD_REQUEST_MESSAGES})
"""The word and the noun of every refusal in the scripts."""


@pytest.mark.parametrize("refusal", REFUSALS)
def test_each_refusal_has_a_message(refusal: str) -> None:
    error = to_api_error(ResponseError(f"REFUSED {refusal} script: 1f, on @user_script:1."))
    assert not isinstance(error, InternalError)
    assert error.message


def test_each_message_belongs_to_a_refusal() -> None:
    refused = {tuple(refusal.split(" ")) for refusal in re.findall(r"refuse\('([A-Z_]+ [\w-]+)", TEXT)}
    words = set(re.findall(r"refuse\('([A-Z_]+) ", TEXT))
    assert set(BAD_REQUEST_MESSAGES) <= words
    assert {("NOT_YOURS", noun) for noun in NOT_YOURS_MESSAGES} <= refused
    assert {("TOO_MANY", noun) for noun in TOO_MANY_MESSAGES} <= refused
