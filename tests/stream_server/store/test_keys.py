"""The table of Redis keys."""

import re

import pytest

from stream_server.config.settings import LIMIT_DEFAULTS, SETTINGS
from stream_server.store import keys


def test_keys_of_truth_have_the_core_tag() -> None:
    assert all(key.prefix.startswith("{core}:") for key in keys.CORE_KEYS)


def test_keys_of_derived_data_have_their_owners_tag() -> None:
    assert all(key.tail.startswith("{") and "}" in key.tail for key in keys.DERIVED_KEYS)


def test_every_key_has_a_bound_of_existing_settings() -> None:
    named = {name for key in keys.ALL_KEYS for name in re.findall("`([^`]+)`", key.bound)}
    assert all(key.bound for key in keys.ALL_KEYS)
    assert named <= {setting.name for setting in SETTINGS} | set(LIMIT_DEFAULTS)


def test_names_and_prefixes_are_unique() -> None:
    assert len({key.name for key in keys.ALL_KEYS}) == len(keys.ALL_KEYS)
    patterns = [key.pattern for key in keys.ALL_KEYS]
    assert len(set(patterns)) == len(patterns)


def test_scripts_get_the_keys_of_truth_only() -> None:
    names = keys.lua_key_names()
    assert names["KEY.status"] == "'{core}:status:'"
    assert "KEY.home" not in names


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (keys.key_for("user", "7"), "{core}:user:7"),
        (keys.key_for("status", "7"), "{core}:status:7"),
        (keys.key_for("profile", "7"), "{core}:profile:7"),
        (keys.key_for("following", "7"), "{core}:following:7"),
        (keys.key_for("followers", "7"), "{core}:followers:7"),
        (keys.key_for("request", "s:1"), "{core}:request:s:1"),
        (keys.key_for("revoked", "7", "{x}"), "{core}:revoked:7:{x}"),
        (keys.key_for("sessions", "42"), "{core}:sessions:42"),
    ],
)
def test_keys_are_made_from_the_table(made: str, expected: str) -> None:
    assert made == expected
