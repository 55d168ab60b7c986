"""Lets a browser ask for all modules of a page at once.

A module names others, and so on. Without hints a browser asks for those of one depth when it has read those before, so
each depth takes a round trip. The hints are made of the imports when the server starts, so none is missing.
"""

import posixpath
import re
from collections.abc import Mapping

from stream_server.web.http.static_files import StaticFile

_IMPORT = re.compile(rb'^(?:import|export)\b[^;"\']*"(\.{1,2}/[^"]+)";', re.MULTILINE)
"""A static import of the console, which names a file by a relative path."""

_MODULE = re.compile(rb'<script type="module" src="([^"]+)"></script>\n')


def module_depths(files: Mapping[str, StaticFile], first: str) -> dict[str, int]:
    """Return the URL path of each module that ``first`` needs, itself too, with the imports on the shortest way to it.

    Raises KeyError for an import of a file that is not in ``files``.
    """
    depths = {first: 0}
    waiting = [first]
    for path in waiting:
        for target in _IMPORT.findall(files[path].body):
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target.decode()))
            if found not in depths:
                depths[found] = depths[path] + 1
                waiting.append(found)
    return depths


def with_preloads(files: Mapping[str, StaticFile], path: str) -> StaticFile:
    """Return the page at ``path`` with a hint for each module that those in its head need (HTML, "modulepreload")."""
    page = files[path]

    def add_hints(script: re.Match[bytes]) -> bytes:
        source = script[1].decode()
        others = list(module_depths(files, f"/{source}"))[1:]
        hints = (f'<link rel="modulepreload" href="{other.removeprefix("/")}">\n' for other in others)
        return script[0] + "".join(hints).encode()

    return StaticFile(_MODULE.sub(add_hints, page.body), page.media_type, page.policy)
