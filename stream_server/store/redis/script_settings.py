"""The settings of the Lua scripts: what stands in their texts as constants, and the scripts with these settings."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, Self

from stream_server.config.settings import Config
from stream_server.events import bus_signature, visibility
from stream_server.store import keys, status_row
from stream_server.store.redis.lua_library import LuaLibrary, Script, make_scripts, read_library
from stream_server.store.redis.stored_form import STORED_FORM

JOB_GRACE_MS = 3000
"""Delay in milliseconds until a new job is due. Until then the request that added the job may do its first pass."""

JOB_LEASE_MS = 10_000
"""Time in milliseconds for which a worker holds a claimed job."""

REFILL_AUTHORS_PER_PASS = 50
"""Number of authors whose statuses one pass of a refill reads."""

REPEATED_REPLY = "repeated"
"""Stands in a script's reply in the place of the appended bytes, if Redis had made the write before."""


class SizeLimits(NamedTuple):
    """Sizes for Lua scripts: of the log, a timeline, a pass of a job, followed users and a message.

    A named subscription that was not used for ``subscription_idle_ms`` counts as removed; 0 keeps all.

    The script of a post or a delete changes fewer than ``step_timelines`` timelines itself, and leaves a job for more.
    It is 0 if the keys of timelines may be on other servers than the truth.

    One of ``adds_per_trim`` additions of a status to a timeline also trims the timeline. In between the timeline grows
    beyond its maximum, by more than 512 statuses with a probability below 10⁻⁷. Readers of a timeline use its newest
    statuses only, up to the maximum.

    Each write bounds the number of entries of the log by ``log_max_entries``. It is so high that age and bytes bound a
    log first, which the operator sets. A number is a poor bound: one entry may be a thousand times as large as another.
    """

    log_max_entries: int = 100_000_000
    timeline_max: int = 1000
    fanout_batch_size: int = 1000
    following_max: int = 20_000
    step_timelines: int = 100
    adds_per_trim: int = 32
    message_max_chars: int = 280
    subscription_idle_ms: int = 30 * 86_400_000

    @classmethod
    def of_settings(cls, config: Config) -> Self:
        """Return the sizes of a server, a job worker or another command with these settings."""
        return cls(
            timeline_max=config.timeline_max, fanout_batch_size=config.fanout_batch_size,
            message_max_chars=config.message_max_chars,
            subscription_idle_ms=round(config.subscription_idle_days * 86_400_000),
        )  # fmt: skip


class SiteRules(NamedTuple):
    """Rules of a site for its users, which Lua scripts apply.

    With ``ask_strangers``, a user is asked before another user, whom the user does not follow, adds the user to a group
    or a talk.

    With ``foreign_subjects``, the foreign id of a user (:mod:`stream_server.store.social.ingest`) is the ``sub`` by
    which an outside issuer names the user.
    """

    ask_strangers: bool = False
    foreign_subjects: bool = True

    @classmethod
    def of_settings(cls, config: Config) -> Self:
        """Return the rules of a server, a job worker or another command with these settings."""
        return cls(ask_strangers=config.consent == "on", foreign_subjects=config.ingest_subjects == "on")

    @property
    def foreign_users_key(self) -> str:
        """The Redis key of the hash with the own ids of users by foreign id."""
        return keys.key_for("subjects" if self.foreign_subjects else "foreign")


USUAL_RULES = SiteRules()
"""The rules of a site whose operator sets none."""


@cache
def load_scripts(size_limits: SizeLimits, rules: SiteRules = USUAL_RULES, bus_key: bytes = b"") -> Mapping[str, Script]:
    """Return all Lua scripts by name. Each text is complete: it has the key names, settings and functions it uses."""
    pads = bus_signature.lua_pads(bus_key) if bus_key else ("", "")
    return make_scripts(LuaLibrary(read_library().values(), lua_constants(size_limits, rules, pads)))


def lua_constants(
    size_limits: SizeLimits, rules: SiteRules = USUAL_RULES, pads: tuple[str, str] = ("", "")
) -> dict[str, str]:
    """Return the values of the constants of scripts, as texts of Lua, by name.

    ``pads`` are the pads of the signature of published entries; both are empty without a signature.
    """
    facts = {name: str(bit) for name, bit in vars(visibility.VisibilityFact).items() if name.isupper()}
    return (
        keys.lua_key_names()
        | status_row.LUA_CONSTANTS
        | facts
        | {each.name: str(each.value) for each in visibility.Visibility}
        | {
            "LOG_MAX_ENTRIES": f"'{size_limits.log_max_entries}'",
            "TIMELINE_MAX": str(size_limits.timeline_max),
            "FANOUT_BATCH_SIZE": str(size_limits.fanout_batch_size),
            "STEP_TIMELINES": str(size_limits.step_timelines),
            "ADDS_PER_TRIM": str(size_limits.adds_per_trim),
            "HOME_TIMELINE": f"'{keys.key_for('home')}'" if size_limits.step_timelines else "''",
            "LIST_TIMELINE": f"'{keys.key_for('timeline')}'" if size_limits.step_timelines else "''",
            "FOLLOWING_MAX": str(size_limits.following_max),
            "SUBSCRIPTION_IDLE_MS": str(size_limits.subscription_idle_ms),
            "ASK_STRANGERS": str(rules.ask_strangers).lower(),
            "NO_USER": f"'{keys.NO_USER.decode()}'",
            "STORED_FORM": f"'{STORED_FORM}'",
            "REPEATED_REPLY": f"'{REPEATED_REPLY}'",
            "FOREIGN_USERS": f"'{rules.foreign_users_key}'",
            "MAC_INNER_PAD": f"'{pads[0]}'",
            "MAC_OUTER_PAD": f"'{pads[1]}'",
            "JOB_GRACE_MS": str(JOB_GRACE_MS),
            "JOB_LEASE_MS": str(JOB_LEASE_MS),
            "REFILL_AUTHORS_PER_PASS": str(REFILL_AUTHORS_PER_PASS),
            "VISIBILITY_TABLE": f"('{visibility.visibility_table()}')",
        }
    )
