"""Names in the document against each other and against those of languages for which people generate code."""

import builtins
import keyword
import re
import typing
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from stream_server.web import routes
from stream_server.web.openapi.document import build_document, portable_name


def _words(text: str) -> set[str]:
    return set(text.split())


PYTHON = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *typing.__all__, "BaseModel", "Field", "Enum", "UUID"}

JAVA = _words(
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends "
    "final finally float for goto if implements import instanceof int interface long native new package private "
    "protected public record return short static strictfp super switch synchronized this throw throws transient try "
    "var void volatile while yield true false null Object String Integer Long Short Byte Character Boolean Float "
    "Double Number Void Enum Record Class Exception Error Throwable Iterable Thread Override Deprecated List "
    "ArrayList Map HashMap Set HashSet Arrays Objects Collection Date Locale Optional URI UUID File OffsetDateTime "
    "LocalDate BigDecimal ApiClient ApiException ApiResponse Configuration JSON Pair"
)

GO = _words(
    "break case chan const continue default defer else fallthrough for func go goto if import interface map package "
    "range return select struct switch type var any bool byte error string rune true false nil iota append len make "
    "new APIClient APIKey APIResponse BasicAuth Configuration GenericOpenAPIError MappedNullable ServerConfiguration "
    "ServerConfigurations ServerVariable Client ClientOption ClientWithResponses HttpRequestDoer"
)

TYPESCRIPT = _words(
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof new null return super switch this throw true try typeof var void while with as "
    "implements interface let package private protected public static yield any boolean constructor declare get "
    "module require number set string symbol type from of unknown never object Array ArrayBuffer Blob Boolean Date "
    "Error File FormData Function Headers Map Number Object Omit Partial Pick Promise Readonly Record RegExp Request "
    "RequestInit Response Set String Symbol URL URLSearchParams BaseAPI Configuration RequestOpts InitOverrides"
)

CSHARP = _words(
    "abstract as base bool break byte case catch char checked class const continue decimal default delegate do double "
    "else enum event explicit extern false finally fixed float for foreach goto if implicit in int interface internal "
    "is lock long namespace new null object operator out override params private protected public readonly ref return "
    "sbyte sealed short sizeof stackalloc static string struct switch this throw true try typeof uint ulong unchecked "
    "unsafe ushort using virtual void volatile while Action Attribute Boolean Byte Char Collection DateTime "
    "DateTimeOffset Dictionary Double Enum Exception File Func Guid HashSet Int32 Int64 List Math Object Option Regex "
    "Stream String Task Thread Type Uri Version ApiClient ApiException ApiResponse Configuration"
)

RESERVED = {"Python": PYTHON, "Java": JAVA, "Go": GO, "TypeScript": TYPESCRIPT, "C#": CSHARP}

GO_FUNCTIONS = ("New{}", "New{}WithDefaults", "Nullable{}", "NewNullable{}")
"""What the Go generator of openapi-generator calls the functions and types that it makes for each schema."""

OPERATION_TYPES = ("{}Params", "{}Request", "{}Response", "{}JSONRequestBody", "{}Body", "Api{}Request", "{}Operation")
"""The types that generators make for each operation, by its id in Pascal case."""

TAG_TYPES = ("{}Api", "{}API", "{}APIService", "{}Service", "{}Client")
"""The classes that generators make for each tag."""


def _document() -> Any:
    return build_document(routes.ROUTE_TABLE)


def _pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))


def _folded(name: str) -> str:
    """Return what is left of a name, when a generator has put it into its language's case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _collisions(names: Iterable[str]) -> list[str]:
    uses = Counter(map(_folded, names))
    return sorted(name for name, count in uses.items() if count > 1)


def _operations() -> Iterator[Any]:
    for methods in _document()["paths"].values():
        yield from methods.values()


def test_no_schema_is_called_like_a_word_of_a_language() -> None:
    names = _document()["components"]["schemas"]
    found = {language: sorted(words & names.keys()) for language, words in RESERVED.items()}
    assert found == {language: [] for language in RESERVED}


def test_no_two_schemas_get_one_name_in_generated_code() -> None:
    names = [*_document()["components"]["schemas"]]
    assert _collisions(names) == []
    generated = [form.format(name) for name in names for form in GO_FUNCTIONS]
    assert {*names} & {*generated} == set()


def test_no_schema_is_called_like_what_is_generated_for_an_operation_or_a_tag() -> None:
    made, names = _document(), set(map(_folded, _document()["components"]["schemas"]))
    forms = [form.format(_pascal(each["operationId"])) for each in _operations() for form in ("{}", *OPERATION_TYPES)]
    forms += [form.format(_pascal(tag["name"])) for tag in made["tags"] for form in TAG_TYPES]
    assert names & set(map(_folded, forms)) == set()


def test_no_two_operations_of_a_tag_and_no_two_arguments_get_one_name() -> None:
    assert _collisions(each["operationId"] for each in _operations()) == []
    for each in _operations():
        assert _collisions(one["name"] for one in each.get("parameters", ())) == [], each["operationId"]


def test_no_two_members_of_a_schema_get_one_name() -> None:
    for name, schema in _document()["components"]["schemas"].items():
        assert _collisions(schema.get("properties", ())) == [], name


def test_the_names_tell_what_they_are() -> None:
    names = ("NewComment", "NewTalkMessage", "List", "ListPage", "Comment")
    assert [*map(portable_name, names)] == ["CommentBody", "TalkMessageBody", "UserList", "ListPage", "Comment"]
    made = _document()
    body = made["paths"]["/v1/lists"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/ListBody"}
    assert "name" in made["components"]["schemas"]["ListBody"]["properties"]
