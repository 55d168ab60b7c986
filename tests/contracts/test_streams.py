"""Streams keep the OpenAPI document: all that a real server sends, to the end of a stream, has the documented form."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from schemathesis import checks
from schemathesis.core.failures import FailureGroup

from stream_server.web import routes
from stream_server.web.openapi import document
from tests.contracts.populated import Populated
from tests.contracts.stream_messages import message_violations, violations
from tests.end_to_end.server import Server
from tests.end_to_end.sse import EventStream, Lines
from tests.waiting import PATIENCE

pytestmark = pytest.mark.extended

FILTERS = {"track": "hello", "explain": "true", "rule": "hello or tea"}
"""The rule has a word that looks like an operator, so the stream begins with a warning."""

PROMISES = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2") as running:
        yield running


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as kept:
        kept.trust_env = False
        yield kept


class Stream:
    """A stream from its begin to its end, which its own user makes. ``messages`` has what has come, by kind."""

    def __init__(
        self, server: Server, session: requests.Session, media_type: str, filters: dict[str, str] = FILTERS
    ) -> None:
        self._world = Populated(server.address, session, "/v1/stream")
        self._session, self._address = session, server.address
        self.messages: dict[str, dict[str, Any]] = {}
        self._acted: set[str] = set()
        headers = {**self._world.headers(), "Accept": media_type}
        self.answer = session.get(
            f"{server.address}/v1/stream", params=filters, headers=headers, stream=True, timeout=PATIENCE
        )
        parser = EventStream() if media_type == "text/event-stream" else Lines()
        chunks: list[bytes] = []
        for chunk in self.answer.iter_content(None):
            chunks.append(chunk)
            for message in parser.feed(chunk):
                self._react(message)
        self.answer._content = b"".join(chunks)  # requests has no other way to give a body that was read meanwhile

    def _react(self, message: dict[str, Any]) -> None:
        """Post, delete the post, and close the stream, each when what came before has been received."""
        self.messages[message["kind"]] = message
        acts: dict[str, Callable[[], tuple[str, str, Any]]] = {
            "hello": lambda: ("POST", "/v1/statuses", {"message": "hello @nobody #tea", "meta": {"a": 1}}),
            "post": lambda: ("DELETE", f"/v1/statuses/{message['status']['id']}", None),
            "heartbeat": lambda: ("DELETE", f"/v1/streams/{self.messages['hello']['connection']}", None),
        }
        is_early = message["kind"] == "heartbeat" and not {"delete", "count"} & self.messages.keys()
        if message["kind"] in acts and not is_early and message["kind"] not in self._acted:
            self._acted.add(message["kind"])  # a slow machine gets a second heartbeat before the goodbye
            method, path, body = acts[message["kind"]]()
            headers = self._world.headers()
            done = self._session.request(method, self._address + path, headers=headers, json=body, timeout=PATIENCE)
            assert done.status_code < 300, done.text


@pytest.mark.parametrize("media_type", ["text/event-stream", "application/x-ndjson"])
@pytest.mark.parametrize("version", ["3.2", "3.1"])
def test_a_stream_keeps_its_promises(
    server: Server, session: requests.Session, media_type: str, version: Any
) -> None:
    """Schemathesis takes the events of the answer one by one, and this test the messages within them."""
    stream = Stream(server, session, media_type)
    assert {"hello", "warning", "post", "delete", "heartbeat", "goodbye"} == stream.messages.keys()
    assert [wrong for each in stream.messages.values() for wrong in message_violations(each)] == []
    loaded = schemathesis.openapi.from_dict(document.build_document(routes.ROUTE_TABLE, version))
    loaded["/v1/stream"]["GET"].Case(query=FILTERS).validate_response(stream.answer, checks=PROMISES)


def test_the_counts_of_a_summary_keep_their_promises(server: Server, session: requests.Session) -> None:
    stream = Stream(server, session, "application/x-ndjson", {"rule": "hello", "summary": "1"})
    assert {"hello", "count", "heartbeat", "goodbye"} <= stream.messages.keys()
    assert [wrong for each in stream.messages.values() for wrong in message_violations(each)] == []


def test_a_wrong_event_is_found(server: Server, session: requests.Session) -> None:
    """By Schemathesis in the answer, and by this package in a message."""
    stream = Stream(server, session, "text/event-stream")
    post = stream.messages["post"]
    wrong: list[dict[str, Any]] = [
        {**post, "more": 1},
        {name: value for name, value in post.items() if name != "status"},
        {**post, "kind": "delete"},
        {**post, "at": "yesterday"},
    ]
    assert [bool(message_violations(each)) for each in wrong] == [True] * len(wrong)
    assert violations("StreamMessage", {**post, "kind": "unheard"})
    stream.answer._content = stream.answer.content.replace(b"event: post", b"event: unheard")
    loaded = schemathesis.openapi.from_dict(document.build_document(routes.ROUTE_TABLE))
    with pytest.raises(FailureGroup) as found:
        loaded["/v1/stream"]["GET"].Case(query=FILTERS).validate_response(stream.answer, checks=PROMISES)
    assert "unheard" in str(found.value.exceptions)
