"""Moved to `responses`."""

from stream_server.web.http.responses import ErrorDetail as ErrorDetail
