"""Makes the documentation a site (``make site``): ``python3 .ci/docs_site.py [FOLDER [SOURCE]]``.

FOLDER is where the site is put, by default where the server finds it. SOURCE has the pages, by default this repository.
Sphinx works in ``.venv/sphinx``, an environment of its own, which has what ``requirements-site.lock`` lists.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import environment

import clients

SPHINX = environment.VENV / "sphinx"
"""The environment of Sphinx."""

SITE = environment.ROOT / "stream_server" / "site"
"""Where the server finds the site. It is package data of a wheel that is built after it."""


def main(target: Path = SITE, source: Path = environment.ROOT) -> int:
    """Build the site; return the exit code."""
    try:
        with environment.alone():
            clients.ensure(SPHINX, environment.SITE_LOCK)
        build(target, source)
    except environment.Failed as error:
        environment.say(f"stream-server: {error}")
        return 1
    return 0


def build(target: Path, source: Path) -> None:
    """Build the site anew, then put it in the place of ``target``. Raises :class:`environment.Failed`.

    Sphinx asks no other site. The links to such sites are printed, for a person to look at.
    """
    with TemporaryDirectory() as folder:
        made = Path(folder, "site")
        command: list[str | Path] = [SPHINX / "bin" / "python", "-m", "sphinx", "--quiet", "--fail-on-warning"]
        command += ["--conf-dir", source / "docs", "--doctree-dir", Path(folder, "doctrees"), source, made]
        environment.run(command, {**os.environ, "SOURCE_DATE_EPOCH": "0"})
        texts = [page.read_text(encoding="utf-8") for page in made.rglob("*.html")]
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(made, target)
    for link in sorted({link for text in texts for link in re.findall(r'href="(https?://[^"]+)"', text)}):
        environment.say(f"  not looked up: {link}")
    environment.say(f"stream-server: {len(texts)} pages are in {target}")


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
