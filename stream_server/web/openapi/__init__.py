"""The OpenAPI document of the HTTP API, built from the URL table.

The one decision: **nothing is described twice.** A route's row, its handler's docstring and its msgspec structs give
everything that the document says, so the document cannot differ from what the server does. The package is pure: rows
in, JSON out; `api/server.py` serves the result at `/openapi.json`.

``document``            the whole document: info, tags, paths, components
``messages``            the messages of streams, and bodies that have one item behind another
``operation``           one row of the table as an operation: parameters, body, answer, every possible error
``webhooks``            the requests that the server sends to the endpoints of users
"""
