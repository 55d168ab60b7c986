"""The table of keys."""

import pytest

from stream_server.store import keys


def test_truth_carries_the_core_tag() -> None:
    """All truth lies on one shard, whatever the variable part says."""
    assert all(key.prefix.startswith("{core}:") for key in keys.CORE_KEYS)


def test_derived_data_carries_its_owners_tag() -> None:
    """Derived data spreads by its owner's id."""
    assert all(key.tail.startswith("{<") and key.tail.endswith(">}") for key in keys.DERIVED_KEYS)


def test_names_and_prefixes_are_unique() -> None:
    """No two rows could ever mean the same key."""
    assert len({key.name for key in keys.ALL_KEYS}) == len(keys.ALL_KEYS)
    patterns = [key.pattern for key in keys.ALL_KEYS]
    assert len(set(patterns)) == len(patterns)


def test_lua_sees_what_is_used() -> None:
    """A script knows the rows that it uses, and no other; derived data it never knows."""
    line = keys.lua_key_table({"status", "home"})
    assert line == "local KEY={status='{core}:status:'}"


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
        (keys.key_for("refresh", "ab"), "{core}:refresh:ab"),
    ],
)
def test_keys_are_made_from_the_table(made: str, expected: str) -> None:
    """Each key has its prefix, and its first tag is the core's whatever a client put into the rest."""
    assert made == expected
