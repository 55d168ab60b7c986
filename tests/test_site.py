"""The documentation as a site: a link to nothing fails the build, and what was built before stays."""

import shutil
from pathlib import Path

import pytest

from tests.program import ROOT
from tests.site import build

pytestmark = pytest.mark.extended

FAULTS = {
    "docs/api.md": ("[a page](nothing.md)", "nothing.md"),
    "docs/capacity.md": ("[a heading of another page](api.md#nothing-there)", "nothing-there"),
    "docs/guide/start.md": ("[a heading of this page](#nothing-here)", "nothing-here"),
    "docs/security.md": ("![a picture](images/nothing.webp)", "images/nothing.webp"),
    "CHANGELOG.md": ("[a file](deploy/nothing.conf)", "deploy/nothing.conf"),
}
"""What is on a page, and what the build must name beside the page."""


def small_site(folder: Path) -> Path:
    """Write the pages of FAULTS, each with its fault, and what the build takes from the repository."""
    for name in ("pyproject.toml", "docs/conf.py", "stream_server/console/icon.svg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    listed = ", ".join(f"[{name}]({name})" for name in FAULTS)
    (folder / "README.md").write_text(f"# A site\n\n## Documentation\n\n- **Pages:** {listed}\n", encoding="utf-8")
    for name, (text, _) in FAULTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    return folder


@pytest.mark.timeout(600)  # it may install Sphinx first
def test_a_link_to_nothing_fails_the_build(tmp_path: Path) -> None:
    """Each fault is told by its page, and what was built before stays."""
    source, target = small_site(tmp_path / "source"), tmp_path / "target"
    target.mkdir()
    (target / "kept.html").touch()
    built = build(target, source)
    warned = [line for line in built.stderr.splitlines() if "WARNING: " in line]
    assert built.returncode == 1
    assert [path.name for path in target.iterdir()] == ["kept.html"]
    for name, (_, told) in FAULTS.items():
        assert [line for line in warned if f"/{name}:" in line and told in line], built.stderr
    assert len(warned) == len(FAULTS), built.stderr
