"""The package index that this machine is configured to use, and the files that it offers.

The search order: uv's environment variables, pip's variable, pip's configuration files, then the public index.
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

PUBLIC = "https://" + "pypi" + ".org/simple/"  # used only if the machine configures no index

VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
"""Environment variables that name an index, the strongest first."""

TIMEOUT_SECONDS = 60

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
"""Accepted media types (PEP 691). An index that has only the HTML pages of PEP 503 answers with HTML anyway."""

NAME = re.compile(r"^[\w.-]+=(?=\w+:)")
"""The optional name before an index URL in uv's variables: ``NAME=URL``."""

ANCHOR = re.compile(r'<a\s[^>]*?href="([^"]+)"[^>]*>\s*([^<\s]+)\s*</a>', re.IGNORECASE)


class Unreachable(Exception):
    """The package index did not answer, or not usably. The message is a sentence for the person at the terminal."""


def configured(environ: Mapping[str, str]) -> str:
    """Return the URL of the package index in uv's or pip's configuration; empty if neither names an index."""
    for name in VARIABLES:
        value = environ.get(name, "").strip()
        if value:
            return NAME.sub("", value)
    found = ""
    for path in pip_files(environ):
        found = index_of(path) or found  # a later pip file wins over an earlier one
    return found


def pip_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the paths of pip's configuration files, existing or not. A later file wins over an earlier one."""
    home = Path(environ.get("HOME", "/"))
    support = home / "Library" / "Application Support" / "pip" / "pip.conf"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
    named = environ.get("PIP_CONFIG_FILE", "")
    everyone = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf")]
    return [*everyone, home / ".pip" / "pip.conf", support, config, *([Path(named)] if named else [])]


def index_of(path: Path) -> str:
    """Return the setting ``index-url`` of a pip configuration file; empty if the file has none or is unreadable."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, UnicodeError, configparser.Error):
        return ""
    sections = (section for section in ("install", "global") if parser.has_option(section, "index-url"))
    return next((parser[section]["index-url"].strip() for section in sections), "")


@contextmanager
def opened(url: str, index: str) -> Iterator[Any]:
    """Request ``url`` and yield the HTTP answer. Raises :class:`Unreachable` if the request or the reading fails.

    If the index's URL ``index`` contains credentials, they are sent only to the index's own host. The message of the
    exception never contains credentials.
    """
    bare, credentials = split_credentials(url)
    index_bare, of_index = split_credentials(index)
    if urllib.parse.urlsplit(bare)[:2] == urllib.parse.urlsplit(index_bare)[:2]:
        credentials = credentials or of_index
    try:
        request = urllib.request.Request(bare, headers={"Accept": ACCEPT})  # noqa: S310 - the user configured this index
        if credentials:
            request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - see above
            yield answer
    except (OSError, HTTPException, ValueError) as error:
        raise Unreachable(sentence(bare, error)) from error


def split_credentials(url: str) -> tuple[str, str]:
    """Return ``url`` without its ``user:password@``, and ``user:password`` percent-decoded; empty if there is none."""
    parts = urllib.parse.urlsplit(url)
    userinfo, _, host = parts.netloc.rpartition("@")
    return urllib.parse.urlunsplit(parts._replace(netloc=host)), urllib.parse.unquote(userinfo)


def sentence(url: str, error: Exception) -> str:
    """Return a sentence that says why a request for ``url`` raised ``error``, and what the person can do."""
    reason = getattr(error, "reason", error)
    host = urllib.parse.urlsplit(url).hostname or url
    if isinstance(reason, ssl.SSLCertVerificationError):
        advice = "install your system's ca-certificates package, or let SSL_CERT_FILE name the certificates to trust."
        return f"Python cannot verify the certificate of {host}: {advice}"
    if isinstance(error, urllib.error.HTTPError):
        return f"The package index answered {error.code} for {url}."
    return f"The package index at {host} cannot be reached: {reason}. To use another one, set UV_DEFAULT_INDEX."


def link(index: str, project: str, filename: str) -> str:
    """Return the URL of the file ``filename`` of ``project`` on the package index; empty if the index lacks it."""
    page = index.rstrip("/") + f"/{project}/"
    if page.startswith("file:"):
        page += "index.html"  # a folder on disk has no server that would add it
    with opened(page, index) as answer:
        kind, base, body = answer.headers.get("Content-Type", ""), answer.url, answer.read()
        if "json" in kind:  # PEP 691
            offered = {entry["filename"]: entry["url"] for entry in json.loads(body)["files"]}
        else:  # PEP 503
            found = ANCHOR.findall(body.decode("utf-8", "replace"))
            offered = {html.unescape(name): html.unescape(href) for href, name in found}
    return urllib.parse.urljoin(base, offered[filename]) if filename in offered else ""
