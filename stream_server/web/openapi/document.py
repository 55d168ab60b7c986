"""Builds the OpenAPI document of all routes from the URL table."""

from collections import Counter
from functools import cache
from inspect import getmodule
from typing import Any

from aiohttp import hdrs

from filters.registry import installed_registry
from filters.rules.operators import usable_specs
from stream_server import __version__
from stream_server.events.one_line import encode_json
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.http.responses import JSON_HEADERS
from stream_server.web.http.static_files import StaticFile
from stream_server.web.openapi import operation
from stream_server.web.openapi.messages import SCHEMA_REF, Json, Version
from stream_server.web.openapi.webhooks import webhooks
from stream_server.web.route import Route

API_DESCRIPTION = (
    "A real-time streaming API: clients write over HTTP, and every stream with matching filters receives the event. "
    "The server refuses unknown parameters and members, and names them. Answers may gain members."
)

_SCHEMAS = SCHEMA_REF.format(name="")

TAG_TITLES = {
    "users": "Users: sign-up, look-up and changes; accounts that an administrator creates in bulk.",
    "accounts": "Accounts: users delete their own, and administrators those of others.",
    "follows": "Following users, and requests to follow protected users. Unfollowing also withdraws an open request.",
    "follow_requests": "Requests to follow protected users.",
    "relations": "The relationship of two users, and the users they have in common.",
    "blocks": "Blocks. A block hides two users from each other.",
    "mutes": "Mutes. A mute hides a user, who does not learn of it.",
    "comments": "Comments under statuses.",
    "likes": "Likes, which other users see.",
    "favorites": "Favorites, which only their user sees.",
    "timelines": "Timelines: lists of statuses. Each page has only the statuses that the caller may see.",
    "trends": "Trends: the tags and words that more people use than an hour ago.",
    "lists": "Lists of users, and their members.",
    "talks": "Talks: private conversations among a fixed set of users, and their messages.",
    "notifications": "Notifications: what others did that concerns the caller, and the caller's read mark.",
    "reports": "Reports of users and statuses, and what administrators decide about them.",
    "audit": "The audit log of administrators.",
    "suspensions": "Suspensions: an administrator suspends and reinstates users.",
    "operations": "The state of the server for its operator.",
    "tickets": "Tickets: a ticket opens one stream within 30 seconds. It is the only credential that a URL may carry.",
    "console": "The console: the pages that a browser shows of this server, with their scripts and styles.",
    "groups": "Groups of users, and their members. A status posted in a group has the id of the group as `group`.",
    "statuses": "Statuses: posting, reading and deleting them.",
    "streams": "The caller's open streams: list them, end one, and let one go on with a new token.",
    "server": "The server about itself: its description, health, metrics and the OpenAPI document.",
}
"""The titles of the tags whose routes share a module with those of other tags."""


PATCHES: dict[Version, str] = {"3.2": "3.2.0", "3.1": "3.1.0"}
"""The member ``openapi`` of the document in each version."""


SERVER_OF_DOCUMENT = "."
"""The address of the server, relative to that of its document: so it holds below a path of a proxy, too."""


def build_document(rows: tuple[Route, ...], version: Version = "3.2", url: str = SERVER_OF_DOCUMENT) -> Json:
    """Build the OpenAPI document of the routes in ``rows``, in a version of OpenAPI, for the server at ``url``.

    The routes of Twitter's protocols have their own parameters and errors. ``x-dialects`` lists them, and
    ``x-operators`` the operators of the rule language, which a schema cannot describe.
    """
    dialects = [row for row in rows if row.dialect is not None]
    rows = tuple(row for row in rows if row.dialect is None)
    components = operation.component_schemas(rows)
    names = _operation_ids(rows)
    paths: dict[str, Json] = {}
    for row in rows:
        described = operation.build_operation(row, names[row], components, version)
        paths.setdefault(row.path, {})[row.method.lower()] = described
    queries = {row.query.__name__ for row in rows if row.query is not None}
    who = "the token of a user; a reader token, which has no user, for the operations that name it"
    bearer = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": who}
    about = "a single-use ticket from `POST /v1/streams/ticket`"
    ticket = {"type": "apiKey", "in": "query", "name": TICKET_PARAMETER, "description": about}
    info = {"title": "stream-server", "version": __version__, "description": API_DESCRIPTION}
    made = {
        "openapi": PATCHES[version],
        "info": {**info, "license": {"name": "MIT"}},
        "servers": [{"url": url}],
        "tags": _tag_descriptions(rows),
        "paths": paths,
        "webhooks": webhooks(),
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "responses": operation.error_responses(),
            "securitySchemes": {"bearer": bearer, TICKET_PARAMETER: ticket},
        },
        "x-dialects": [
            {"method": row.method, "path": row.path, "summary": operation.operation_summary(row)} for row in dialects
        ],
        "x-operators": [
            {"operator": ":".join(filter(None, (spec.name, spec.value))), "help": spec.help, "example": spec.example}
            for spec in usable_specs(installed_registry())
        ],
    }
    named: Json = _with_portable_names(made)
    return named


@cache
def document_file(rows: tuple[Route, ...], version: Version, url: str = SERVER_OF_DOCUMENT) -> StaticFile:
    """Return the OpenAPI document of ``rows`` as a file. Cached, because the URL table does not change."""
    text = encode_json(build_document(rows, version, url))
    return StaticFile(text, JSON_HEADERS[hdrs.CONTENT_TYPE], JSON_HEADERS["Content-Security-Policy"])


def portable_name(name: str) -> str:
    """Return the name of a schema for a class of ours, so that generated code can have a type of this name.

    Go calls the constructor of ``Comment`` ``NewComment``, so the body of its request is ``CommentBody``. ``List`` is
    a type of Java, C# and Python's ``typing``.
    """
    if name.startswith("New"):
        return f"{name.removeprefix('New')}Body"
    return "UserList" if name == "List" else name


def _with_portable_names(part: Any, parent: str = "") -> Any:
    """Return a part of the document with portable names of schemas, both in ``schemas`` and in each ``$ref``."""
    if isinstance(part, list):
        return [_with_portable_names(each) for each in part]
    if isinstance(part, dict):
        names = {name: portable_name(name) if parent == "schemas" else name for name in part}
        return {names[name]: _with_portable_names(each, name) for name, each in part.items()}
    if parent == "$ref" and part.startswith(_SCHEMAS):
        return _SCHEMAS + portable_name(part.removeprefix(_SCHEMAS))
    return part


def _operation_ids(rows: tuple[Route, ...]) -> dict[Route, str]:
    """Return each row's operationId, such as ``statuses_create``. If rows share a handler, the method is appended."""
    plain = {
        row: row.name.replace(".", "_") or f"{operation.operation_tag(row)}_{row.handler.__name__}" for row in rows
    }
    uses = Counter(plain.values())
    return {row: f"{name}_{row.method.lower()}" if uses[name] > 1 else name for row, name in plain.items()}


def _tag_descriptions(rows: tuple[Route, ...]) -> list[dict[str, Any]]:
    """Return the OpenAPI tags of the rows. The title is that of the table, else the module's first docstring line."""
    modules = {operation.operation_tag(row): getmodule(row.handler) for row in rows}
    docs = {name: getattr(module, "__doc__", None) or "" for name, module in modules.items()}
    titles = {name: operation.portable_schema(doc.partition("\n")[0]) for name, doc in docs.items()} | {
        name: title for name, title in TAG_TITLES.items() if name in modules
    }
    return [{"name": name, "description": title} for name, title in titles.items()]
