"""The audit log of administrators."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.web.http import paging
from stream_server.web.http.app_keys import STORE
from stream_server.web.http.fields import Id, Timestamp
from stream_server.web.http.responses import page_response

DeedKind = Literal["suspend", "reinstate", "decide", "create_users", "grant_admin", "revoke_admin", "ingest"]


class Deed(msgspec.Struct):
    """One deed of an administrator."""

    id: Id
    at: Timestamp
    by: Annotated[Id | None, Meta(description="the administrator; null for the command line")]
    deed: DeedKind
    on: Annotated[str, Meta(description="the id of the user or report, or the number of created users")]
    details: Annotated[str, Meta(description="the outcome of a decided report; a digest of the token that ingests")]


class DeedPage(paging.PageAnswer):
    """A page of the audit log."""

    deeds: list[Deed]


async def list_deeds(request: web.Request) -> web.Response:
    """``GET /v1/admin/audit``: list what administrators did, newest first."""
    page = paging.read_page_request(request)
    return page_response("deeds", *await request.app[STORE].audit.list_deeds(page))
