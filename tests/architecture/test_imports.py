"""The packages and libraries that each package may import."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from tests.architecture.source import imports, modules, tree

OURS = ("filters", "stream_server")

ONLY_IN = {
    "redis": ("stream_server.store", "stream_server.runtime.embedded_redis"),
    "aiohttp.web": ("stream_server.web", "stream_server.app"),
    "jwt": ("stream_server.security.tokens", "stream_server.security.signing_keys"),
}
"""A library, and the only rooms where it may be seen."""

FORBIDDEN = {
    "filters": ("stream_server", "redis", "aiohttp", "msgspec", "jwt"),
    "stream_server.hub": ("redis", "aiohttp", "stream_server.store", "stream_server.web", "stream_server.feed.feed"),
    "stream_server.store": ("aiohttp", "stream_server.hub", "stream_server.web", "stream_server.feed.feed"),
}
"""A room, and what it may not know of."""


def _within(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_imported_only_in_its_packages(library: str) -> None:
    """Each library is imported in few packages, so it can be exchanged there."""
    seen = [n for n, p in modules().items() if any(_within(i, library) for i in imports(p))]
    assert [n for n in seen if not any(_within(n, room) for room in ONLY_IN[library])] == []


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_package_imports_only_what_it_may(room: str) -> None:
    """Pure packages import no I/O, the hub does not import Redis, and the store does not import HTTP."""
    bad = [
        f"{name} imports {imported}"
        for name, path in modules().items()
        if _within(name, room)
        for imported in imports(path)
        if any(_within(imported, other) for other in FORBIDDEN[room])
    ]
    assert bad == []


def test_the_client_imports_nothing_of_the_server() -> None:
    """The client can be installed without the libraries of the server. It shares the shapes in ``wire`` with it."""
    for package, known in (("client", ("client", "wire")), ("wire", ("wire",))):
        files = [path for name, path in modules().items() if _within(name, f"stream_server.{package}")]
        ours = {each for path in files for each in imports(path) if each.partition(".")[0] in OURS}
        allowed = [f"stream_server.{each}" for each in known]
        assert [each for each in sorted(ours) if not any(_within(each, one) for one in allowed)] == []


def test_the_environment_is_read_in_config_only() -> None:
    """Only `config` reads `os.environ`, so the table of settings is complete."""
    reading = [n for n, p in modules().items() if "os.environ" in p.read_text() or "getenv" in p.read_text()]
    assert reading == ["stream_server.config.config"]


def test_there_are_no_import_cycles() -> None:
    """The sorter raises CycleError with the cycle if there is one."""
    known = modules()
    graph = {name: {i for i in imports(path) if i in known and i != name} for name, path in known.items()}
    for name, wanted in graph.items():
        graph[name] = {i for i in wanted if not _within(name, i)}  # a module's own package is no cycle
    assert set(TopologicalSorter(graph).static_order()) >= set(known)


@pytest.mark.parametrize("backwards", [False, True])
def test_an_import_has_no_side_effect(*, backwards: bool) -> None:
    """In a fresh interpreter, warnings as errors, and without a thread or a word. No order of imports is needed."""
    names = sorted((name for name in modules() if not name.endswith("__main__")), reverse=backwards)
    code = (
        "import importlib, sys, threading\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    assert threading.active_count() == 1, name\n"
    )
    command = [sys.executable, "-W", "error", "-c", code, *names]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


PARSED_BY_AIOHTTP = frozenset({
    "charset", "content_length", "content_type", "cookies", "forwarded", "host", "http_range", "if_match",
    "if_modified_since", "if_none_match", "if_range", "if_unmodified_since", "json", "multipart", "post", "query",
    "remote", "text", "url",
})  # fmt: skip
"""Members of aiohttp's request that parse what the client sent, some of them in quadratic time."""


def test_no_header_or_form_is_parsed_by_aiohttp() -> None:
    """A parser that is slow for some bytes holds the loop for everybody. The attack table measures those in use."""
    found = [
        f"{name}: request.{node.attr}"
        for name, path in modules().items()
        if name.startswith("stream_server.web")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr in PARSED_BY_AIOHTTP
        and ast.unparse(node.value) in {"request", "self._request"}
    ]
    assert found == []
