"""The filters that narrow what the others select: ``kinds``, ``language``, and ``partition`` for the firehose."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import ClassVar, Self

from filters.base import Filter, Role, split_list
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Key, language_keys, wanted_language_keys
from filters.sample import stable_hash
from filters.suggestion import did_you_mean
from filters.tables import is_known, present_tag, suggest_tags

KINDS = (
    "post", "edit", "delete", "follow", "unfollow", "like", "unlike", "comment", "uncomment", "user_update",
    "user_delete", "protect", "unprotect",
)  # fmt: skip
"""The kinds of events that any stream can ask for."""

PERSONAL_KINDS = (
    "request", "unrequest", "block", "unblock", "mute", "unmute", "message", "notification", "list_create",
    "list_update", "list_delete", "list_add", "list_remove", "group_create", "group_update", "group_delete",
    "group_join", "group_leave",
)  # fmt: skip
"""Kinds that only the users concerned receive, on their own stream."""
DEFAULT_KINDS = "post,delete"  # for a stream without the parameter ``kinds``


class Kinds(Filter):
    """The filter ``kinds``: only events of the given kinds, such as ``post``."""

    __slots__ = ("canonical_form", "kinds")

    name: ClassVar[str] = "kinds"
    role: ClassVar[Role] = "narrowing"
    canonical_form: frozenset[str]
    help: ClassVar[str] = f"Kinds of events, comma-joined, of {', '.join(KINDS)}; `{DEFAULT_KINDS}` if absent."

    def __init__(self, kinds: Collection[str]) -> None:
        self.kinds = self.canonical_form = _share_kinds(frozenset(kinds))

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls.parse_known(value, KINDS)

    @classmethod
    def parse_known(cls, value: str, known: Collection[str]) -> Self:
        """Make the filter from a comma-separated list of kinds. Raises ParameterError for a kind outside ``known``."""
        kinds = split_list(value, param="kinds", max_items=len(known), noun="kinds")
        for kind in kinds:
            if kind not in known:
                message = f"kinds takes {', '.join(known)}, not {kind[:40]!r}{did_you_mean(kind, known)}"
                raise ParameterError(message, param="kinds")
        return cls(kinds)

    def matches(self, event: Event) -> bool:
        return event.kind in self.kinds


@lru_cache(256)
def _share_kinds(kinds: frozenset[str]) -> frozenset[str]:
    """Return an equal set that other filters use too, because one of all kinds takes 2 KB."""
    return kinds


MAX_LANGUAGES = 100  # of one filter

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


class Language(Filter):
    """The filter ``language``: only events in one of the given languages. ``en`` also matches ``en-GB`` (RFC 4647).

    A language matches by each of its codes (``iw`` and ``he``). A macro-language and the languages that are part of it
    match each other: ``no`` and ``nb``.
    """

    __slots__ = ("_keys", "canonical_form", "languages")

    name: ClassVar[str] = "language"
    role: ClassVar[Role] = "narrowing"
    canonical_form: frozenset[str]
    help: ClassVar[str] = "BCP 47 tags, comma-joined; `en` matches `en-GB` too, `und` matches an unknown language."

    def __init__(self, languages: Collection[str]) -> None:
        self.languages = self.canonical_form = frozenset(map(present_tag, languages))
        self._keys = frozenset[Key]().union(*map(wanted_language_keys, self.languages))

    @classmethod
    def parse(cls, value: str) -> Self:
        languages = split_list(value, param="language", max_items=MAX_LANGUAGES, noun="languages")
        for language in languages:
            if not is_language_tag(language):
                message = f"{language[:40]!r} is not a language; language takes {suggest_tags(language)}"
                raise ParameterError(message, param="language")
        return cls(languages)

    def matches(self, event: Event) -> bool:
        return not self._keys.isdisjoint(language_keys(event.lang))


def is_language_tag(text: str) -> bool:
    """Whether a text is a language tag of BCP 47 (RFC 5646) by which filters find texts."""
    return _TAG.fullmatch(text) is not None and is_known(text)


MAX_PARTITIONS = 64  # of the firehose

_PARTITION = re.compile(r"([1-9][0-9]?)/([1-9][0-9]?)")


class Partition(Filter):
    """The filter ``partition=k/n``: part ``k`` of ``n`` equal parts of the firehose, by a hash of the author's id."""

    __slots__ = ("canonical_form", "k", "n")

    name: ClassVar[str] = "partition"
    role: ClassVar[Role] = "narrowing"
    canonical_form: tuple[int, int]
    help: ClassVar[str] = "`k/n`, 1 ≤ k ≤ n ≤ 64: part k of n of the firehose, by author."
    requires: ClassVar[frozenset[str]] = frozenset({"firehose"})

    def __init__(self, k: int, n: int) -> None:
        self.k, self.n = self.canonical_form = k, n

    @classmethod
    def parse(cls, value: str) -> Self:
        found = _PARTITION.fullmatch(value)
        k, n = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= k <= n <= MAX_PARTITIONS:
            raise ParameterError(f"partition must be k/n with 1 ≤ k ≤ n ≤ {MAX_PARTITIONS}", param="partition")
        return cls(k, n)

    def matches(self, event: Event) -> bool:
        # The key must never change. It differs from that of ``sample``, so that the two are independent.
        return stable_hash(event.author or "", b"stream-server partition") % self.n == self.k - 1
