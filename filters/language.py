"""The filter ``language``: narrows the result to certain languages."""

import re
from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError, split_list
from filters.event import Event
from filters.index_keys import Key, language_keys, wanted_language_keys
from filters.language_codes import is_known, present_tag, suggest_tags

MAX_LANGUAGES = 100  # of one filter

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


class Language(Filter):
    """The filter ``language``: only events in one of the given languages. ``en`` also matches ``en-GB`` (RFC 4647).

    A language matches by each of its codes (``iw`` and ``he``). A macro-language and the languages that are part of it
    match each other: ``no`` and ``nb``.
    """

    __slots__ = ("_keys", "languages")

    name: ClassVar[str] = "language"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "BCP 47 tags, comma-joined; `en` matches `en-GB` too, `und` matches an unknown language."

    def __init__(self, languages: Collection[str]) -> None:
        self.languages = frozenset(map(present_tag, languages))
        self._keys = frozenset[Key]().union(*map(wanted_language_keys, self.languages))

    @classmethod
    def parse(cls, value: str) -> Self:
        languages = split_list(value, param="language", max_items=MAX_LANGUAGES, noun="languages")
        for language in languages:
            if not is_language_tag(language):
                message = f"{language[:40]!r} is not a language; language takes {suggest_tags(language)}"
                raise ParameterError(message, param="language")
        return cls(languages)

    @property
    def canonical_form(self) -> Hashable:
        return self.languages

    def matches(self, event: Event) -> bool:
        return not self._keys.isdisjoint(language_keys(event.lang))


def is_language_tag(text: str) -> bool:
    """Whether a text is a language tag of BCP 47 (RFC 5646) by which filters find texts."""
    return _TAG.fullmatch(text) is not None and is_known(text)
