"""The source distribution and the wheel: the same bytes from the same files, all that belongs in them, and no more."""

import os
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from packaging.metadata import Metadata

from tests.end_to_end.server import ROOT
from tests.packages.built import REPOSITORY, SECONDS, Built, compiler, copy_checkout, make_dist, tracked

pytestmark = [pytest.mark.extended, pytest.mark.timeout(600)]

NOT_OURS = (
    ".env", ".venv/bin/python", "data/jwt.secret", "demo/redis.log", "secrets/jwt_secret", "notes.md",
    "deploy/compose/secrets/jwt_secret", "deploy/compose/.env",
    "build/lib/stream_server/gone.py", "dist/stream_server-0.0.1.tar.gz", "stream_server/hub/send_to_each.abi3.so",
    "stream_server/__pycache__/app.cpython-311.pyc", "tests/__pycache__/waiting.cpython-311.pyc",
)  # fmt: skip
"""Files that lie about in a checkout in use."""

COMPILED = "stream_server/hub/send_to_each.abi3.so"

SITE = "stream_server/site/"

MAX_SITE_BYTES = 1_300_000
"""Most bytes that the documentation may add to a wheel. The wheel without it has 1.1 MB."""


@pytest.mark.nightly
def test_a_checkout_in_use_elsewhere_gives_the_same_bytes(built: Built, tmp_path: Path) -> None:
    """Its path, its times, the modes of its files and what else is in it have no effect on the source distribution."""
    other = copy_checkout(tmp_path / "some" / "where else")
    for name in NOT_OURS:
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("not for others")
    for path in other.rglob("*.py"):
        os.utime(path, (10**9, 10**9))
        path.chmod(path.stat().st_mode & ~0o077)
    assert make_dist(other, "--sdist").sdist.read_bytes() == built.sdist.read_bytes()


def test_an_archive_without_git_gives_the_same_bytes(built: Built, tmp_path: Path) -> None:
    """As `git archive` makes it, and a web page of the repository: each file has the time of the commit."""
    archive = copy_checkout(tmp_path / "stream-server-1.0.0")
    for path in archive.rglob("*"):
        os.utime(path, (int(SECONDS), int(SECONDS)))
    made = make_dist(archive, "--sdist", made_site=built.site, SOURCE_DATE_EPOCH="")
    assert made.sdist.read_bytes() == built.sdist.read_bytes()


def test_without_a_compiler_the_wheel_is_that_of_any_platform(built: Built, tmp_path: Path) -> None:
    copy = copy_checkout(tmp_path / "copy")
    alone, pure = make_dist(copy, "--wheel", made_site=built.site, CC="no-such-compiler").wheel, "py3-none-any.whl"
    assert alone.name.endswith(pure)
    with zipfile.ZipFile(alone) as wheel:
        assert COMPILED not in wheel.namelist()
    assert built.wheel.name.endswith(pure) == (compiler() is None)


def test_the_wheel_brings_the_guide(built: Built) -> None:
    """Each page of the documentation, as a page of the site, with its pictures: about a megabyte."""
    pages = [Path(name).with_suffix(".html") for name in tracked() if name.startswith("docs/") and name.endswith(".md")]
    with zipfile.ZipFile(built.wheel) as wheel:
        inside = {one.filename: one.compress_size for one in wheel.infolist()}
    assert len(pages) > 30
    assert {f"{SITE}{page}" for page in pages} <= inside.keys()
    assert f"{SITE}searchindex.js" in inside
    assert sum(size for name, size in inside.items() if name.startswith(SITE)) < MAX_SITE_BYTES


def test_the_wheel_of_the_checkout_is_that_of_the_source_distribution(built: Built, tmp_path: Path) -> None:
    direct = make_dist(copy_checkout(tmp_path / "copy"), "--wheel", made_site=built.site)
    assert direct.wheel.name == built.wheel.name
    assert direct.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_source_distribution_has_the_repository_and_the_wheel_the_packages(built: Built) -> None:
    """A packager can build, test and document from the source distribution alone."""
    with tarfile.open(built.sdist) as archive:
        members = archive.getmembers()
    top = built.sdist.name.removesuffix(".tar.gz")
    assert all(one.isdir() or one.isfile() for one in members)
    assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
    names = {one.name.removeprefix(top + "/") for one in members if one.isfile()}
    generated = {name for name in names if name.startswith(("social_stream_server.egg-info/", SITE))}
    assert names - generated - {"PKG-INFO", "setup.cfg"} == set(tracked())
    with zipfile.ZipFile(built.wheel) as wheel:
        inside = {one for one in wheel.namelist() if ".dist-info/" not in one and not one.startswith(SITE)}
    ours = {one for one in tracked() if one.startswith(("filters/", "stream_server/")) and not one.endswith(".c")}
    assert {name for name in inside if not name.endswith("/")} - {COMPILED} == ours
    assert built.wheel.name.split("-", 4)[2:4] == (["cp311", "abi3"] if COMPILED in inside else ["py3", "none"])
    assert "-linux_" not in built.wheel.name  # the package index refuses a wheel that does not say for which C library


def test_the_metadata_are_valid_and_name_what_is_needed(built: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = f"social_stream_server-{project['version']}.dist-info"
    with zipfile.ZipFile(built.wheel) as wheel:
        raw = wheel.read(f"{info}/METADATA")
        assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    with tarfile.open(built.sdist) as archive:
        same = archive.extractfile(f"social_stream_server-{project['version']}/PKG-INFO")
        assert same is not None
        assert same.read() == raw
    told = Metadata.from_email(raw, validate=True)
    assert told.description is not None
    check_description(told.description, project["version"])
    assert (told.license_expression, told.license_files) == ("MIT", ["LICENSE"])
    assert [str(one) for one in told.requires_python or ()] == [">=3.11"]
    in_use = "No production use is known" not in (ROOT / "docs" / "guide" / "fit.md").read_text(encoding="utf-8")
    assert ("Development Status :: 5 - Production/Stable" in (told.classifiers or ())) == in_use
    alone = [one.name for one in told.requires_dist or () if one.marker is None]
    assert alone == ["aiohttp", "msgspec"]
    assert sorted(told.provides_extra or ()) == sorted(project["optional-dependencies"])
    assert not any(one.url for one in told.requires_dist or ())


def check_description(text: str, version: str) -> None:
    """It is the README, and each of its links leads to a file of the version's tag in the repository."""
    pages, pictures = (f"{REPOSITORY}/{kind}/v{version}/" for kind in ("blob", "raw"))
    assert text.replace(pages, "").replace(pictures, "") == (ROOT / "README.md").read_text(encoding="utf-8")
    parts = [part for block in MarkdownIt().parse(text) for part in block.children or ()]
    for begin, attribute in ((pages, "href"), (pictures, "src")):
        named = [str(part.attrs[attribute]) for part in parts if attribute in part.attrs]
        assert named
        assert {each.removeprefix(begin) for each in named} <= {*tracked()}
        assert {each for each in named if not each.startswith(begin)} == set()
