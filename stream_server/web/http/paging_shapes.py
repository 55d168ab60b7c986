"""Moved to `paging`."""

from stream_server.web.http.paging import IdsQuery as IdsQuery
from stream_server.web.http.paging import NumberedPageQuery as NumberedPageQuery
from stream_server.web.http.paging import PageQuery as PageQuery
