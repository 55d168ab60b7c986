"""The package index that this machine is set to use, and the files that it offers.

The order is that of the tools themselves: uv's variables, pip's, pip's files, then the public index.
"""

import base64
import configparser
import html
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

PUBLIC = "https://" + "pypi" + ".org/simple/"  # for a machine that names none; one that does is always obeyed

VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")

TIMEOUT_SECONDS = 60

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
"""PEP 691; an index that knows only PEP 503's pages answers with HTML, whatever was asked for."""

NAME = re.compile(r"^[\w.-]+=(?=\w+:)")
"""uv lets an index have a name: ``NAME=URL``."""

ANCHOR = re.compile(r'<a\s[^>]*?href="([^"]+)"[^>]*>\s*([^<\s]+)\s*</a>', re.IGNORECASE)


class Unreachable(Exception):
    """The index did not answer as one; the message is a sentence for the person at the terminal."""


def configured(environ: Mapping[str, str], files: list[Path] | None = None) -> str:
    """The URL of the configured index, or an empty string if this machine names none."""
    for name in VARIABLES:
        value = environ.get(name, "").strip()
        if value:
            return NAME.sub("", value)
    found = ""
    for path in pip_files(environ) if files is None else files:
        found = index_of(path) or found  # pip's later file wins over its earlier ones
    return found


def pip_files(environ: Mapping[str, str]) -> list[Path]:
    """Where pip keeps its configuration, the weakest first."""
    home = Path(environ.get("HOME", "/"))
    support = home / "Library" / "Application Support" / "pip" / "pip.conf"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    named = environ.get("PIP_CONFIG_FILE", "")
    everyone = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf")]
    return [*everyone, home / ".pip" / "pip.conf", support, config, *([Path(named)] if named else [])]


def index_of(path: Path) -> str:
    """``index-url`` in one file of pip's; empty if it has none or cannot be read."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, UnicodeError, configparser.Error):
        return ""
    sections = (section for section in ("install", "global") if parser.has_option(section, "index-url"))
    return next((parser[section]["index-url"].strip() for section in sections), "")


@contextmanager
def opened(url: str, index: str) -> Iterator[Any]:
    """The answer of ``url``; credentials in ``index`` go to its own host only, also when redirected.

    Raises :class:`Unreachable`, whose sentence never holds them, also for what breaks while it is read.
    """
    bare, credentials = split_credentials(url)
    index_bare, of_index = split_credentials(index)
    if urllib.parse.urlsplit(bare)[:2] == urllib.parse.urlsplit(index_bare)[:2]:
        credentials = credentials or of_index
    try:
        request = urllib.request.Request(bare, headers={"Accept": ACCEPT})  # noqa: S310 - the user named this index
        if credentials:
            request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - see above
            yield answer
    except (OSError, HTTPException, ValueError) as error:
        raise Unreachable(sentence(bare, error)) from error


def split_credentials(url: str) -> tuple[str, str]:
    """``url`` without its ``user:password@``, and that part, decoded."""
    parts = urllib.parse.urlsplit(url)
    userinfo, _, host = parts.netloc.rpartition("@")
    return urllib.parse.urlunsplit(parts._replace(netloc=host)), urllib.parse.unquote(userinfo)


def sentence(url: str, error: Exception) -> str:
    """What went wrong, for a person who wants to go on."""
    reason = getattr(error, "reason", error)
    host = urllib.parse.urlsplit(url).hostname or url
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"Python cannot verify the certificate of {host}: install your system's ca-certificates package, "
            "or let SSL_CERT_FILE name the certificates to trust."
        )
    if isinstance(error, urllib.error.HTTPError):
        return f"The package index answered {error.code} for {url}."
    return f"The package index at {host} cannot be reached: {reason}. Another one can be named in UV_DEFAULT_INDEX."


def link(index: str, project: str, filename: str) -> str:
    """The URL of one file of one project, or an empty string if the index does not offer it."""
    page = index.rstrip("/") + f"/{project}/"
    if page.startswith("file:"):
        page += "index.html"  # a folder on disk has no server to add it
    with opened(page, index) as answer:
        kind, base, body = answer.headers.get("Content-Type", ""), answer.url, answer.read()
        offered = from_json(body) if "json" in kind else from_html(body)
    return urllib.parse.urljoin(base, offered[filename]) if filename in offered else ""


def from_json(body: bytes) -> dict[str, str]:
    """Name to URL, of a PEP 691 page."""
    return {entry["filename"]: entry["url"] for entry in json.loads(body)["files"]}


def from_html(body: bytes) -> dict[str, str]:
    """Name to URL, of a PEP 503 page."""
    return {html.unescape(name): html.unescape(href) for href, name in ANCHOR.findall(body.decode("utf-8", "replace"))}
