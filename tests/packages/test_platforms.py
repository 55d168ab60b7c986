"""Each locked package of the server has a wheel for each platform and Python that the README names.

The index is asked, and nothing is installed. So this shows for macOS and musl that pip finds all, and no more.
"""

import re
import subprocess
from pathlib import Path

import pytest

from stream_server.runtime.embedded_redis import CARRIER
from tests.end_to_end.server import ROOT
from tests.packages.machines import UV, VERSIONS

pytestmark = pytest.mark.extended

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
WITHOUT_CARRIER = re.sub(rf"^{CARRIER}==(.*\\\n)+.*\n", "", LOCK, flags=re.MULTILINE)


def refusal(locked: str, platform: str, version: str, folder: Path) -> str:
    """Return why the index has no wheel of a locked package for a platform; empty if it has all."""
    (folder / "locked").write_text(locked, encoding="utf-8")
    command: list[str | Path] = [UV, "pip", "install", "--dry-run", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-platform", platform, "--python-version", version, "--target", folder / "none"]
    done = subprocess.run([*command, "--require-hashes", "-r", folder / "locked"], capture_output=True, text=True, check=False, timeout=100)
    if "Failed to fetch" in done.stderr:
        pytest.skip("the package index cannot be reached")
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("platform", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin"])
def test_everything_is_a_wheel(platform: str, tmp_path: Path) -> None:
    for version in VERSIONS:
        assert refusal(LOCK, platform, version, tmp_path) == ""


@pytest.mark.parametrize("platform", ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"])
def test_with_musl_everything_but_the_engine_is_a_wheel(platform: str, tmp_path: Path) -> None:
    for version in VERSIONS:
        assert refusal(WITHOUT_CARRIER, platform, version, tmp_path) == ""
    assert f"Wheels are required for `{CARRIER}`" in refusal(LOCK, platform, VERSIONS[0], tmp_path)
