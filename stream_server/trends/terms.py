"""The tags and words of a post, as trends count them."""

import re

import msgspec

from filters.language_codes import present_tag
from filters.tokens import blank_unspaced, fold, has_unspaced
from stream_server.trends.sketch import Term

MAX_TERM_CHARS = 30
"""Longest tag or word in code points. Longer ones are not counted."""

_ENTITIES = re.compile(r"https?://\S+|www\.\S+|[@#\uff03$]\w+")
_LETTER, _APOSTROPHES = r"[^\W\d_]", r"'\u2019"
_REST = rf"(?:{_LETTER}|[{_APOSTROPHES}](?={_LETTER})){{2,{MAX_TERM_CHARS - 1}}}"
_WORD = re.compile(rf"(?<![\w{_APOSTROPHES}]){_LETTER}{_REST}(?!\w)")


class _Tag(msgspec.Struct):
    text: str


class _Entities(msgspec.Struct):
    hashtags: list[_Tag] = []


class PostFields(msgspec.Struct):
    """The members of a status that trends use."""

    uid: str
    message: str = ""
    lang: str = "und"
    entities: _Entities = msgspec.field(default_factory=_Entities)


class _Wire(msgspec.Struct):
    status: PostFields


class _Body(msgspec.Struct):
    wire: _Wire


_decoder = msgspec.json.Decoder(_Body)


def decode_post(body: bytes) -> PostFields | None:
    """Return the members of the status in the entry of a post, or None if its JSON is invalid."""
    try:
        return _decoder.decode(body).wire.status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # the last one: nested very deeply
        return None


def terms_of(post: PostFields) -> set[Term]:
    """Return the tags and words of a post, folded.

    Words have three letters or more. Words of scripts without spaces are left out, because their ends are unknown.
    """
    language = primary_language(post.lang) or "und"
    tags = {("tag", language, text) for tag in post.entities.hashtags if len(text := fold(tag.text)) <= MAX_TERM_CHARS}
    folded = fold(_ENTITIES.sub(" ", post.message))
    if has_unspaced(folded):
        folded = blank_unspaced(folded)
    return tags | {("word", language, word) for word in _WORD.findall(folded)}


def primary_language(tag: str) -> str:
    """Return the present code of the language of a tag, in lower case: ``en`` for ``en-GB``, ``he`` for ``iw``."""
    return present_tag(tag).partition("-")[0]
