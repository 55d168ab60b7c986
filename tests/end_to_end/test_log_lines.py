"""The page of log lines: it has all lines and all members, and what it says of requests is so."""

import json
import logging
import re
import runpy
import signal
from pathlib import Path
from typing import Any

import pytest

from stream_server.runtime.logs import MAX_LINES_PER_WINDOW, MAX_LOG_LINE_BYTES, THROTTLE_SECONDS, JsonLineFormatter
from stream_server.runtime.output_thread import MAX_UNWRITTEN_BYTES
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import ROOT, Server
from tests.waiting import eventually

PAGE = (ROOT / "docs" / "reference" / "logs.md").read_text(encoding="utf-8")
MODULE = runpy.run_path(str(ROOT / "docs" / "log_lines.py"))
MEMBERS = set(re.findall(r"^\| `(\w+)` \|", PAGE.partition("| member |")[2].partition("\n\n")[0], re.MULTILINE))


def test_each_line_of_the_code_has_a_meaning_and_each_meaning_a_line() -> None:
    """That the page has them is checked with the other tables."""
    assert {line.message for line in MODULE["log_lines"]()} == MODULE["MEANINGS"].keys()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f():\n logger.info('took %.1f s, %d %%: %s', 1, 2, 3)", [("info", "took … s, … %: …")]),
        ("def f():\n logger.exception(f'{x} ended')", [("error", "… ended")]),
        ("T = 'late'\ndef f():\n if x:\n  self.logger.warning(T)", [("warning", "late")]),
        ("async def f():\n logger.log(A if b else C, 'no %r')", [("warning or debug", "no …")]),
        ("def f():\n self._report(f'{w} ends')\n self._report(1, 2)\n print('x')", [("warning", "… ends")]),
        ("class A:\n def f(self):\n  return lambda: logger.debug('a')", [("debug", "a")]),
    ],
)
def test_lines_are_found_in_code(code: str, found: list[tuple[str, str]], tmp_path: Path) -> None:
    lines_of = MODULE["_lines_of"]
    lines_of.__globals__["ROOT"], before = tmp_path, lines_of.__globals__["ROOT"]
    try:
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "module.py").write_text(code)
        assert sorted({(line.level, line.message) for line in lines_of(tmp_path / "package")}) == found
    finally:
        lines_of.__globals__["ROOT"] = before


def test_a_line_that_the_page_cannot_name_is_refused() -> None:
    with pytest.raises(ValueError, match="has to be a literal"):
        MODULE["_text"](MODULE["ast"].parse("a.b").body[0].value, ())


def test_the_page_has_the_members_and_numbers_of_a_line() -> None:
    record = logging.makeLogRecord({"msg": "x", "request_id": "r", "suppressed": 3})
    record.exc_info = (ValueError, ValueError("a trace"), None)
    assert set(json.loads(JsonLineFormatter(1).format(record))) == MEMBERS
    assert set(json.loads(re.findall(r"```json\n(.*?)\n```", PAGE)[0])) <= MEMBERS
    text = " ".join(PAGE.split())
    assert f"at most {MAX_LOG_LINE_BYTES // 1024} KiB" in text
    assert f"at most {MAX_LINES_PER_WINDOW} lines in {THROTTLE_SECONDS:g} seconds" in text
    assert f"keeps {MAX_UNWRITTEN_BYTES // 2**20} MiB of lines" in text


async def test_requests_are_not_logged(tmp_path: Path) -> None:
    """Not even at the least severe level, whether they are answered or refused. A reload is: it shows the end."""
    server = Server(tmp_path, "--log-level", "debug")
    with server:
        async with Api(server) as api:
            uid = await api.user()
            await api.post(uid, "zanzibar of the night")
            ticket = (await api.done("POST", "/v1/streams/ticket", token=mint(uid)))["ticket"]
            asked: list[tuple[str, str, dict[str, Any]]] = [
                ("GET", f"/v1/events?track=zanzibar&wait=0&ticket={ticket}", {}),
                ("GET", f"/v1/stream?track=zanzibar&ticket={ticket}", {}),
                ("GET", "/v1/statuses/zanzibar", {"token": mint(uid)}),
                ("GET", "/zanzibar", {}),
                ("POST", "/v1/sessions", {"json": {"login": "zanzibar", "password": "hidden zanzibar"}}),
                ("POST", "/v1/statuses", {"token": mint(uid), "json": {"message": "zanzibar" * 100}}),
                ("GET", "/v1/users/me", {"token": "eyJ0.zanzibar.x"}),
            ]
            statuses = [(await api.call(method, path, **more)).status for method, path, more in asked]
        assert statuses == [200, 401, 400, 404, 401, 400, 401]
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        await eventually(lambda: "reloaded the settings: none has changed" in server.log)
    lines = [json.loads(line) for line in server.log.splitlines()]
    assert {frozenset(line) - MEMBERS for line in lines} == {frozenset()}
    for word in ("zanzibar", ticket, "/v1/", "127.0.0.1"):
        assert [line for line in lines if word in json.dumps(line)] == [], word
