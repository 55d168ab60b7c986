"""axe-core, which checks pages for accessibility: fetched by npm at a pinned version and hash, and kept."""

import base64
import hashlib
import tarfile
from collections.abc import Sequence
from typing import Any

from playwright.async_api import Page

from tests.clients import npm
from tests.program import ROOT

VERSION = "4.14.1"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
FOLDER = ROOT / ".venv" / "clients" / "axe-core"

RUN = """only => {
  const isForced = matchMedia("(forced-colors: active)").matches;
  const some = { runOnly: only.filter(rule => rule !== "color-contrast" || !isForced) };
  const all = { rules: { "color-contrast": { enabled: !isForced } } };
  return axe.run(document, { resultTypes: ["violations"], ...(only.length ? some : all) });
}"""
"""All rules of axe-core with their defaults. In forced colours, texts have those of the system, but axe-core asks for
`-webkit-text-fill-color`, which Chromium does not force in the style that a script sees."""


def source() -> str:
    """Return the script. Skips the test without npm, unless a browser is required as in CI."""
    kept = FOLDER / f"axe-{VERSION}.min.js"
    if not kept.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(_fetch())
    return kept.read_text(encoding="utf-8")


def _fetch() -> bytes:
    npm.download(FOLDER, "pack", f"axe-core@{VERSION}")
    package = FOLDER / f"axe-core-{VERSION}.tgz"
    assert base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode() == SHA512
    with tarfile.open(package) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read()


OF_A_LOOK = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")
"""The rules whose outcome depends on colours and on the size of the window. They take half of the time of all."""


async def faults(page: Page, only: Sequence[str] = ()) -> list[str]:
    """Return what axe-core finds in the page as it is now: the rule and the element of each fault.

    ``only`` names the rules to check, by default all.
    """
    found: dict[str, Any] = await page.evaluate(RUN, list(only))
    return [
        f"{rule['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
