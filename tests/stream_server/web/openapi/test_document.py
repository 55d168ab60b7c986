"""The OpenAPI document: valid, complete, and built from the URL table alone."""

import copy
import re
from functools import cache
from inspect import getclosurevars
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from schemathesis.specs.openapi.definitions import OPENAPI_31, OPENAPI_32
from yarl import URL

from filters.registry import Registry
from stream_server.errors import BadRequest
from stream_server.store.pagination import PageRequest as Asked
from stream_server.web import routes
from stream_server.web.api import people, rows
from stream_server.web.http import app_keys, paging, query
from stream_server.web.openapi import document as openapi
from stream_server.web.openapi.messages import Version
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, Route
from stream_server.wire.errors import STATUS_BY_CODE
from tests.stream_server.web.world import World

NAME = re.compile(r"[a-z_]+")

DESCRIBED = [row for row in routes.ROUTE_TABLE if row.dialect is None]
"""The rows of the document; dialects have their own documentation."""

by_path = pytest.mark.parametrize("row", DESCRIBED, ids=lambda row: f"{row.method} {row.path}")


VERSIONS: dict[Version, Any] = {"3.2": OPENAPI_32, "3.1": OPENAPI_31}
"""The schema of documents of each version, as the OpenAPI Initiative publishes it."""


@cache
def document(version: Version = "3.2") -> Any:
    """Return the document of the real URL table. Tests must not change it."""
    return openapi.build_document(routes.ROUTE_TABLE, version)


def operation(row: Route) -> Any:
    return document()["paths"][row.path][row.method.lower()]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_document_is_valid_in_each_version(version: Version) -> None:
    made = document(version)
    errors = [str(error) for error in jsonschema_rs.validator_for(VERSIONS[version]).iter_errors(made)]
    assert errors == []
    for name, schema in made["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name


@pytest.mark.parametrize("version", VERSIONS)
def test_the_requests_of_webhooks_are_described_by_their_type(version: Version) -> None:
    operation = document(version)["webhooks"]["subscription"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema["discriminator"]["mapping"].keys() == {"events", "test", "challenge"}
    described = {name.rpartition("/")[2]: kind for kind, name in schema["discriminator"]["mapping"].items()}
    for name, kind in described.items():
        shape = document(version)["components"]["schemas"][name]
        assert shape["properties"]["type"]["enum"] == [kind]
        assert set(shape["required"]) == set(shape["properties"]) - {"part"}, "only shared subscriptions have parts"
    assert operation["responses"].keys() == {"2XX", "410", "default"}


def test_an_edit_has_the_new_version_or_ids() -> None:
    """Exactly one of the two: a choice of two forms, so that generated code knows which one it has."""
    edit = document()["components"]["schemas"]["Edit"]
    assert not {"status", "left"} & edit["properties"].keys()
    forms = jsonschema_rs.validator_for({"oneOf": [{"required": one["required"]} for one in edit["oneOf"]]})
    given: list[dict[str, int]] = [{"status": 1}, {"left": 1}, {}, {"status": 1, "left": 1}]
    assert [forms.is_valid(one) for one in given] == [True, True, False, False]


def test_arrays_of_fixed_length_are_readable_by_generators() -> None:
    made = document()
    assert "'items': False" not in str(made)
    indices = jsonschema_rs.validator_for(made["components"]["schemas"]["TagEntity"]["properties"]["indices"])
    assert [indices.is_valid(list(range(count))) for count in range(4)] == [False, False, True, False]


def test_the_routes_of_dialects_are_listed_and_not_described() -> None:
    dialects = [row for row in routes.ROUTE_TABLE if row.dialect is not None]
    listed = document()["x-dialects"]
    assert [(one["method"], one["path"]) for one in listed] == [(row.method, row.path) for row in dialects]
    assert all(one["summary"] for one in listed)
    assert not {row.path for row in dialects} & set(document()["paths"])


def test_the_operators_of_rules_are_listed_as_the_guide_has_them() -> None:
    listed = document()["x-operators"]
    assert {"operator": "#tag", "help": "the hashtag, exactly", "example": "#tea"} in listed
    assert {one["operator"] for one in listed} > {"word", "from:id or login", "meta.NAME:text or number", "track:value"}


def test_the_document_says_which_operations_take_a_reader_token() -> None:
    named = {row for row in DESCRIBED if "reader token" in operation(row).get("description", "")}
    assert named == {row for row in DESCRIBED if row.is_for_readers}
    assert "reader token" in document()["components"]["securitySchemes"]["bearer"]["description"]


def test_schemas_have_unique_names() -> None:
    assert [name for name in document()["components"]["schemas"] if not name.isalpha()] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_reference_exists_and_every_schema_is_referenced(version: Version) -> None:
    made = document(version)
    led = set(re.findall(r"'\$ref': '#/components/([^']*)'", str(made)))
    there = {f"{kind}/{name}" for kind in ("schemas", "responses") for name in made["components"][kind]}
    assert led <= there
    assert {one for one in there - led if one.startswith("schemas/")} == set()


def test_an_object_of_any_members_says_so() -> None:
    """Generators of code would take it for an object without members."""
    schemas = document()["components"]["schemas"]
    assert schemas["Post"]["properties"]["matched"]["items"] == {"type": "object", "additionalProperties": True}
    free = {"anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}]}
    assert schemas["Status"]["properties"]["meta"] == free


async def test_the_document_has_exactly_the_served_routes(world: World, app: web.Application) -> None:
    answer = await world.call("GET", "/openapi.json")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    described = {(method, path) for path, methods in answer.json["paths"].items() for method in methods}
    served = {(route.method.lower(), row.path) for route, row in app[app_keys.ROUTES].items() if row.dialect is None}
    assert described == {one for one in served if one[0] != "head"}
    assert answer.json == document()


async def test_the_document_is_there_in_the_version_that_is_asked_for(world: World) -> None:
    for version in VERSIONS:
        answer = await world.call("GET", f"/openapi.json?version={version}")
        assert answer.json == document(version)
        assert answer.json["openapi"].startswith(f"{version}.")
    refused = await world.call("GET", "/openapi.json?version=3.0")
    assert (refused.status, refused.json["error"]["param"]) == (400, "version")


def test_the_versions_differ_in_bodies_with_one_item_behind_another_alone() -> None:
    """OpenAPI 3.1 has the schema of an item for that of the body."""
    new, old = copy.deepcopy(document()), copy.deepcopy(document("3.1"))
    assert (new.pop("openapi"), old.pop("openapi")) == ("3.2.0", "3.1.0")
    for row in (row for row in DESCRIBED if row.lines or (row.is_streaming and row.response is None)):
        operations = [made["paths"][row.path][row.method.lower()] for made in (new, old)]
        bodies = [[one["responses"]["200"]["content"]] for one in operations]
        if row.lines:
            bodies = [[*found, one["requestBody"]["content"]] for found, one in zip(bodies, operations, strict=True)]
        for one, other in zip(*bodies, strict=True):
            assert {name for content in one.values() for name in content} == {"itemSchema"}
            for content in one.values():
                content["schema"] = content.pop("itemSchema")
            assert one == other
    assert new == old


def test_rows_without_a_handler_of_their_own_name_a_method_of_the_store(app: web.Application) -> None:
    made = [row for row in DESCRIBED if row.handler.__module__ == rows.__name__]
    assert len(made) > 40
    for row in made:
        assert callable(getclosurevars(row.handler).nonlocals["find_method"](app[app_keys.STORE])), row.name


def test_operation_ids_are_unique() -> None:
    names = [one["operationId"] for methods in document()["paths"].values() for one in methods.values()]
    assert len(set(names)) == len(names)
    assert [name for name in names if not NAME.fullmatch(name)] == []


@by_path
def test_each_operation_has_summary_tag_and_security(row: Route) -> None:
    described = operation(row)
    assert len(described["summary"]) > 5
    assert "``" not in str(described)
    assert described["tags"][0] in {tag["name"] for tag in document()["tags"]}
    scopes: Any = {NO_TOKEN: [], ANY_TOKEN: [{"bearer": []}]}.get(row.scope, [{"bearer": [row.scope]}])
    assert described["security"] == scopes + [{"ticket": []}] * row.accepts_ticket


@by_path
def test_each_operation_has_its_parameters_and_body(row: Route) -> None:
    described = operation(row)
    given = {(one["in"], one["name"]) for one in described.get("parameters", [])}
    assert {name for place, name in given if place == "path"} == set(re.findall(r"\{(\w+)\}", row.path))
    if row.query is not None:
        assert {name for place, name in given if place == "query"} == set(row.query.__struct_encode_fields__)
    assert (("header", "Idempotency-Key") in given) == row.accepts_idempotency_key
    assert ("requestBody" in described) == (row.body is not None or (row.is_streaming and row.method == "POST"))


@by_path
def test_each_operation_has_its_answers_and_errors(row: Route) -> None:
    described = operation(row)["responses"]
    statuses = {int(status) for status in described}
    assert {row.status, 400, 500} <= statuses
    assert (101 in statuses) is (row.websocket is not None)
    successes = {row.status, *row.other_statuses} | ({101} if row.websocket else set())
    assert statuses - successes <= set(STATUS_BY_CODE.values())
    assert (row.scope == NO_TOKEN) or {401, 403, 503} <= statuses
    assert ("content" in described[str(row.status)]) == (row.status != 204)
    shapes = document()["components"]["responses"]
    for status in statuses - successes:
        (media,) = shapes[str(status)]["content"].items()
        assert media == ("application/json", {"schema": {"$ref": "#/components/schemas/ErrorResponse"}})


def test_every_error_code_is_documented() -> None:
    made = document()["components"]
    assert made["schemas"]["ErrorDetail"]["properties"]["code"]["enum"] == list(STATUS_BY_CODE)
    for code, status in STATUS_BY_CODE.items():
        assert f"`{code}`" in made["responses"][str(status)]["description"]


def test_a_stream_has_a_parameter_for_each_installed_filter() -> None:
    described = {one["name"] for one in document()["paths"]["/v1/stream"]["get"]["parameters"]}
    own = {"since", "explain", "subscription", "worker", "summary", "Last-Event-ID"}
    assert described == {*Registry.from_entry_points().names(), *own}
    polled = {one["name"] for one in document()["paths"]["/v1/events"]["get"]["parameters"]}
    assert polled - described == {"cursor", "connection", "before", "wait", "limit"}


def test_requests_are_closed_and_answers_open_to_unknown_members() -> None:
    for row in routes.ROUTE_TABLE:
        if row.body is not None:
            assert row.body.__struct_config__.forbid_unknown_fields, row.path
        if row.query is not None:
            assert row.query.__struct_config__.forbid_unknown_fields, row.path
        if row.response is not None:
            assert not row.response.__struct_config__.forbid_unknown_fields, row.path


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"count": "null"}, "count"),
        ({"count": "5.0"}, "count"),
        ({"count": "0x5"}, "count"),
        ({"count": " 5"}, "count"),
        ({"count": "\u0665"}, "count"),
        ({"count": "9" * 5000}, "count"),
        ({"page": "0"}, "page"),
        ({"page": ""}, "page"),
        ({"page": "2", "before": "x"}, "page"),
        ({"before": "a", "after": "b"}, "after"),
    ],
)
async def test_invalid_numbers_and_pages_in_a_query_are_refused(asked: dict[str, str], refusal: str) -> None:
    request: Any = make_mocked_request("GET", str(URL("/").with_query(asked)))
    with pytest.raises(BadRequest) as refused:
        query.read_query(request, paging.NumberedPageQuery)
    assert refused.value.param == refusal


async def test_a_handler_can_only_read_the_query_type_of_its_route() -> None:
    request: Any = make_mocked_request("GET", "/?count=7&page=2")
    request[app_keys.QUERY] = query.read_query(request, paging.NumberedPageQuery)
    assert query.parsed_query(request, paging.PageQuery).page_request() == Asked(7, None, None, 2)
    with pytest.raises(TypeError, match="AvailabilityQuery"):
        query.parsed_query(request, people.AvailabilityQuery)
