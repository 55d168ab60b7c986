"""The files of the console: who gets which, under which headers, and what their sources may not contain."""

import re
from importlib import resources
from pathlib import Path

import pytest

from stream_server.web.api.server import DOCS_PAGE, GUIDE_LINK, PAGES, load_pages
from stream_server.web.http.module_preloads import module_depths
from stream_server.web.http.qualities import prefers_html
from stream_server.web.http.static_files import PAGE_POLICY, SITE_POLICY, load_files
from stream_server.wire.messages import EVENT_TYPES
from tests.stream_server.web.world import World

PACKAGE = Path(str(resources.files("stream_server")))
FOLDER = PACKAGE / "console"
PLAIN = {"Accept-Encoding": "identity"}
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

BANNED = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|createContextualFragment"
    r"|setHTML|\.style\b|cssText|srcdoc|javascript:|importScripts|serviceWorker"
)
"""What would make code or style of text, or let a script outlive its page."""

ABSOLUTE = re.compile(r"""(?:(?:href|src)(?:=|: )|fetch\(|import\(|url\()["'`]?/[^"'`)]*""")
"""An address that leaves the path below which a proxy may serve the console."""

MAX_LINES = 300
LONGER = {"client.js": 792}
"""The client for JavaScript is one file, so that a person can copy it."""


async def test_browsers_get_the_console_and_programs_the_description(world: World) -> None:
    page = await world.call("GET", "/", headers=HTML)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b'<script type="module" src="console/app.js">' in page.body
    described = await world.call("GET", "/")
    assert described.json["docs"] == "/docs"
    assert described.json["message_max_chars"] == 280
    assert page.headers.getall("Vary") == ["Accept-Encoding", "Accept"]
    assert described.headers["Vary"] == "Accept"
    assert (await world.call("GET", "/docs")).headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("accept", "is_browser"),
    [
        ("", False), ("*/*", False), ("application/json", False), ("text/html", True), (HTML["Accept"], True),
        ("text/html;q=0", False), ("TEXT/HTML", True), ("text/html;q=0.5, application/json", False),
        ("application/json;q=0.5, text/html;q=0.9", True), (",;,q=1;;text/html", False), ("x" * 10_000, False),
    ],
)  # fmt: skip
def test_a_client_that_prefers_html_is_a_browser(accept: str, is_browser: bool) -> None:  # noqa: FBT001 - a parameter
    assert prefers_html(accept) == is_browser


async def test_each_file_is_served_and_known_bytes_are_not_sent_again(world: World) -> None:
    console = {path: file for path, file in load_pages(PACKAGE).items() if path.startswith("/console/")}
    console = {PAGES.get(path, path): file for path, file in console.items()}
    assert len(console) > 40
    for path, file in console.items():
        answer = await world.call("GET", path, headers=PLAIN | HTML)
        assert (answer.status, answer.body, answer.headers["Content-Type"]) == (200, file.body, file.media_type), path
        assert answer.headers["Content-Security-Policy"] == file.policy
        tag = answer.headers["ETag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            again = await world.call("GET", path, headers={**PLAIN, **HTML, "If-None-Match": known})
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        head = await world.call("HEAD", path, headers=PLAIN | HTML)
        assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(file.body)))
    assert (await world.call("GET", "/console/app.js", headers={"If-None-Match": '"other"'})).status == 200


async def test_a_text_is_compressed_for_a_client_that_can_read_it(world: World) -> None:
    """The session of the test decodes it. Its tag is not that of the plain bytes, for caches that keep both."""
    plain = await world.call("GET", "/console/app.js", headers=PLAIN)
    zipped = await world.call("GET", "/console/app.js", headers={"Accept-Encoding": "br, gzip"})
    assert ("Content-Encoding" in plain.headers, zipped.headers["Content-Encoding"]) == (False, "gzip")
    assert zipped.body == plain.body
    assert int(zipped.headers["Content-Length"]) < len(plain.body) / 2
    assert zipped.headers["ETag"] != plain.headers["ETag"]
    assert plain.headers["Vary"] == zipped.headers["Vary"] == "Accept-Encoding"
    known = {"Accept-Encoding": "gzip", "If-None-Match": zipped.headers["ETag"]}
    assert (await world.call("GET", "/console/app.js", headers=known)).status == 304
    refused = await world.call("GET", "/console/app.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers


def test_the_documentation_is_where_it_is_installed(tmp_path: Path) -> None:
    """Without it, the page of the API has no link to it and all files are those of the console."""
    (tmp_path / "console").symlink_to(FOLDER)
    absent = load_pages(tmp_path)
    (tmp_path / "site" / "docs").mkdir(parents=True)
    (tmp_path / "site" / "docs" / "api.html").write_text("the wire")
    present = load_pages(tmp_path)
    assert present.keys() - absent.keys() == {"/docs/site/docs/api.html"}
    assert (GUIDE_LINK in absent[DOCS_PAGE].body, GUIDE_LINK in present[DOCS_PAGE].body) == (False, True)
    assert absent[DOCS_PAGE].tag != present[DOCS_PAGE].tag
    assert present["/docs/site/docs/api.html"].policy == SITE_POLICY


@pytest.mark.parametrize(
    "path",
    ["nothing.js", "views/nothing.js", "..%2Fpy.typed", "views/..%2Fapp.js", "views", "views/", "%00", "app.js%2F"],
)
async def test_another_path_is_not_found(world: World, path: str) -> None:
    assert (await world.call("GET", f"/console/{path}")).error == (404, "not_found", None)


async def test_a_page_may_not_be_framed_and_sends_no_referrer(world: World) -> None:
    headers = (await world.call("GET", "/", headers=HTML)).headers
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in headers["Content-Security-Policy"]
    wanted = {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    assert {name: headers[name] for name in wanted} == wanted


def test_a_file_that_no_browser_knows_fails_the_start(tmp_path: Path) -> None:
    """But no hidden one, such as that of an editor which has a file open."""
    for name in (".page.js.swp", ".page.js", "page.js"):
        (tmp_path / name).write_text("x")
    assert list(load_files(tmp_path, "/", PAGE_POLICY)) == ["/page.js"]
    (tmp_path / "notes.doc").write_text("x")
    with pytest.raises(ValueError, match=r"notes\.doc"):
        load_files(tmp_path, "/", PAGE_POLICY)


def test_the_client_hears_every_kind_from_an_event_source() -> None:
    """An EventSource hears only the names that it was told; another kind would be lost without a word."""
    text = (FOLDER / "client.js").read_text(encoding="utf-8")
    (listed,) = re.findall(r"EVENT_KINDS = \((.*?)\)\.split", text, re.DOTALL)
    kinds = " ".join(re.findall(r'"([^"]*)"', listed)).split()
    assert sorted(kinds) == sorted(EVENT_TYPES)


@pytest.mark.parametrize(("page", "first"), [("index.html", "app.js"), ("docs.html", "docs/page.js")])
def test_a_page_names_all_of_its_modules(page: str, first: str) -> None:
    """So a browser asks for them at once. `tests/browser` sees that it asks for no other one."""
    files = load_pages(PACKAGE)
    depths = module_depths(files, f"/console/{first}")
    assert max(depths.values()) > 2  # as many round trips would follow that for the first module
    hints = re.findall(rb'<link rel="modulepreload" href="(.*?)">', files[f"/console/{page}"].body)
    assert {f"/{hint.decode()}" for hint in hints} == depths.keys() - {f"/console/{first}"}
    assert len(set(hints)) == len(hints)


async def test_the_description_of_the_api_is_sent_once_and_small(world: World) -> None:
    """Also with the other version, which has other bytes under a tag of its own."""
    tags = set()
    for path in ("/openapi.json", "/openapi.json?version=3.1"):
        plain = await world.call("GET", path, headers=PLAIN)
        zipped = await world.call("GET", path, headers={"Accept-Encoding": "gzip"})
        assert (plain.body, plain.json["servers"]) == (zipped.body, [{"url": "."}])
        assert plain.headers["Content-Type"] == zipped.headers["Content-Type"] == "application/json; charset=utf-8"
        assert ("Content-Encoding" in plain.headers, zipped.headers["Content-Encoding"]) == (False, "gzip")
        assert int(zipped.headers["Content-Length"]) < len(plain.body) / 4
        for answer, coding in ((plain, "identity"), (zipped, "gzip")):
            assert (answer.headers["Cache-Control"], answer.headers["Vary"]) == ("no-cache", "Accept-Encoding")
            asked = {"Accept-Encoding": coding, "If-None-Match": answer.headers["ETag"]}
            again = await world.call("GET", path, headers=asked)
            assert (again.status, again.body, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])
            head = await world.call("HEAD", path, headers={"Accept-Encoding": coding})
            assert (head.status, head.headers["Content-Length"]) == (200, answer.headers["Content-Length"])
            tags.add(answer.headers["ETag"])
    assert len(tags) == 4
    assert (await world.call("GET", "/openapi.json", headers={"If-None-Match": tags.pop()[:-2] + 'x"'})).status == 200


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.*")), ids=lambda path: path.name)
def test_a_source_makes_no_code_of_text_and_names_no_other_host(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    code = "\n".join(line for line in text.split("\n") if not line.strip().startswith(("//", "*", "/*")))
    assert BANNED.findall(code) == []
    links = set(re.findall(r"(?:https?|wss?)://[\w.-]+", code)) - {
        "http://www.w3.org",
        "http://127.0.0.1",
        "https://example.com",
    }
    assert links == set()
    assert ABSOLUTE.findall(code) == []
    assert not re.search(r"<script(?![^>]*\ssrc=\"console/)|<style|\sstyle=|\son\w+=\"", text)
    if path.suffix == ".js":
        assert path.name == "theme.js" or text.startswith("// @ts-check\n")
        assert len(text.split("\n")) <= LONGER.get(path.name, MAX_LINES), path.name
