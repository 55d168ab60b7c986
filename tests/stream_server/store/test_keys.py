"""The table of Redis keys."""

import re

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


def test_scripts_get_the_keys_of_truth_only() -> None:
    names = keys.lua_key_names()
    assert names["KEY.status"] == "'{core}:status:'"
    assert "KEY.home" not in names
