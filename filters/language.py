"""The filter ``language``: narrows the result to certain languages."""

import re
from collections.abc import Collection, Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError, split_list
from filters.event import Event

MAX_LANGUAGES = 100  # of one filter

UNDETERMINED = "und"  # the BCP 47 tag of an unknown language, also of events without text

LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")  # a BCP 47 language tag


class Language(Filter):
    """The filter ``language``: only events in one of the given languages. ``en`` also matches ``en-GB`` (RFC 4647)."""

    __slots__ = ("languages",)

    name: ClassVar[str] = "language"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "BCP 47 tags, comma-joined; `en` matches `en-GB` too, `und` matches an unknown language."

    def __init__(self, languages: Collection[str]) -> None:
        self.languages = frozenset(language.lower() for language in languages)

    @classmethod
    def parse(cls, value: str) -> Self:
        languages = split_list(value, param="language", max_items=MAX_LANGUAGES, noun="languages")
        for language in languages:
            if not LANGUAGE_TAG.fullmatch(language):
                message = f"language takes tags such as en or pt-BR, not {language[:40]!r}"
                raise ParameterError(message, param="language")
        return cls(languages)

    @property
    def canonical_form(self) -> Hashable:
        return self.languages

    def matches(self, event: Event) -> bool:
        tag = (event.lang or UNDETERMINED).lower()
        while tag not in self.languages:
            tag, hyphen, _ = tag.rpartition("-")
            if not hyphen:
                return False
        return True
