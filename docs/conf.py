"""How Sphinx makes a site of the Markdown of this repository, as it stands: `make site` calls it.

It is Sphinx with MyST, and not MkDocs, whose development rests since 2024.

The navigation is the list below the README's heading "Documentation", and then all other pages. Those of a folder with
a README stand below it. A warning, such as one of a link to no page or to no heading, fails the build.
"""

import os
import re
import tomllib
from hashlib import sha256
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the pages: that of the repository, so that their links to each other hold."""

# Read by Sphinx: https://www.sphinx-doc.org/en/master/usage/configuration.html
project = "stream-server"
version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "bench/*.md", "clients/**.md", "deploy/*.md", "examples/**.md"]
exclude_patterns = [".*", "**/node_modules", "build", "stream_server"]
myst_heading_anchors = 4
smartquotes = False  # a text such as --flag stays as it is
html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
html_title = f"{project} {version}"
html_favicon = "../stream_server/console/icon.svg"
html_use_index = html_copy_source = html_show_copyright = html_show_sphinx = False
html_show_search_summary = False  # else a search would fetch every page that it finds

INDEX = f"""<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={root_doc}.html">
<title>{project}</title>
"""
"""The page that a web server shows for the folder. It leads to the first page."""

UNUSED = ("objects.inv", "**/*.map", ".buildinfo")
"""Files for other sites and for the authors of the theme."""

ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    "<pre>": '<pre tabindex="0">',
}
"""What the theme writes, and what a screen reader needs, or a keyboard to scroll it."""

_PART = re.compile(r"^- \*\*(.+?):\*\*(.+?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_PAGE_LINK = re.compile(r"\]\(([\w/]+)\.md\)")
_INLINE = re.compile(r"<(script|style)>(.+?)</\1>", re.DOTALL)
_FILES = {"script": ("js", '<script src="{}"></script>'), "style": ("css", '<link rel="stylesheet" href="{}">')}
_CODE = re.compile(r"(_downloads/\w+/\w+\.py)\b")
_STYLE = re.compile(r' style="(\w+): ([\w%]+);?"')


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Add its contents to the README of the site and to that of each folder. The theme shows them beside the pages."""
    found = app.env.found_docs
    folders = {
        readme: {page for page in found if page.startswith(readme.removesuffix("README")) and page != readme}
        for readme in found if readme.endswith("/README")
    }  # fmt: skip
    if folders.get(name):
        parts = {"Contents": sorted(folders[name])}
    elif name == root_doc:
        section = source[0].partition("\n## Documentation\n")[2].partition("\n## ")[0]
        parts = {caption: _PAGE_LINK.findall(links) for caption, links in _PART.findall(section)}
        if not parts:
            raise ExtensionError('README.md has no list of pages below "## Documentation"')
        rest = found.difference([name], *folders.values(), *parts.values())
        in_order = dict.fromkeys([*_PAGE_LINK.findall(source[0]), *sorted(rest)])
        parts["More"] = [page for page in in_order if page in rest]
    else:
        return
    for caption, pages in parts.items():
        paths = [f"/{page}" for page in pages]
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {caption}", *paths, "```\n"])


def follow_links_as_on_github(app: Sphinx, page: nodes.document) -> None:
    """Let a link to a folder lead to the folder's README, and one to Markdown that is no page to a copy of the file.

    The folders without a README are not on the site: a link to one becomes its text.
    """
    for link in list(page.findall(addnodes.pending_xref)):
        readme = Path(app.env.relfn2path(link["reftarget"], app.env.docname)[1], "README.md")
        if link["refdomain"] == "doc":
            if link["reftarget"] not in app.env.found_docs:
                copied = addnodes.download_reference("", "", *link.children, reftarget=f"/{link['reftarget']}.md")
                link.replace_self(copied)
        elif readme.exists():
            link.attributes |= {"refdomain": "doc", "reftarget": app.env.path2doc(readme), "reftargetid": ""}
        elif readme.parent.is_dir():
            link.replace_self(link.children)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Mend the pages: no script or style stands in one, as policies want it, and all can be read by keyboard."""
    if error:
        return
    folder = Path(app.outdir)

    def moved(found: re.Match[str]) -> str:
        suffix, tag = _FILES[found[1]]
        file = folder / "_static" / f"{sha256(found[2].encode()).hexdigest()[:8]}.{suffix}"
        file.write_text(found[2], encoding="utf-8")
        return tag.format(os.path.relpath(file, page.parent))

    for page in folder.rglob("*.html"):
        text = _INLINE.sub(moved, page.read_text(encoding="utf-8"))
        text = _STYLE.sub(r' \1="\2"', text)  # a drawing takes these as attributes too
        for plain, accessible in ACCESSIBLE.items():
            text = text.replace(plain, accessible)
        page.write_text(_CODE.sub(r"\1.txt", text), encoding="utf-8")
    for file in folder.glob("_downloads/**/*.py"):
        file.rename(f"{file}.txt")  # else it would be a module of the server
    (folder / "index.html").write_text(INDEX, encoding="utf-8")
    for file in [file for pattern in UNUSED for file in folder.glob(pattern)]:
        file.unlink()


def setup(app: Sphinx) -> None:
    """Connect the functions above. Sphinx calls this."""
    app.connect("source-read", add_contents)
    app.connect("doctree-read", follow_links_as_on_github, priority=100)  # before the files to copy are noted
    app.connect("build-finished", finish)
