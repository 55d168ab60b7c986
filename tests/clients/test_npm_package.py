"""The npm package of the JavaScript client: what is in it, and that it is what the rest of the project says it is."""

import json
import runpy
import tarfile
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.clients import npm
from tests.clients.test_generated_clients import OPENAPI_TOOLS
from tests.docs_examples import blocks
from tests.packages.built import copy_checkout
from tests.program import ROOT

WIRE_TYPES = npm.PACKAGE / "wire_types.py"


def read(name: str) -> Any:
    return json.loads((npm.PACKAGE / name).read_text(encoding="utf-8"))


def test_its_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package, lock = read("package.json"), read("package-lock.json")
    assert package["license"] == project["license"]
    assert {package["version"], lock["version"], lock["packages"][""]["version"]} == {project["version"]}


def test_the_types_of_the_wire_are_those_of_the_server() -> None:
    script = runpy.run_path(str(WIRE_TYPES))
    present = script["TYPES"].read_text(encoding="utf-8")
    assert script["types"](present) == present, f"run {WIRE_TYPES.relative_to(ROOT)}"


@pytest.mark.parametrize("folder", [npm.PACKAGE, npm.TOOLS, OPENAPI_TOOLS], ids=["package", "tools", "openapi"])
def test_the_lock_file_has_hashes_and_no_address(folder: Path) -> None:
    """So npm fetches from the registry that the user's machine names."""
    text = (folder / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in text.replace("https://opencollective.com", "")
    locked = json.loads(text)["packages"]
    assert [name for name, each in locked.items() if name and not each["integrity"].startswith("sha512-")] == []


@pytest.mark.extended
@pytest.mark.timeout(npm.TEST_SECONDS)
def test_the_lines_of_its_page_install_it(tmp_path: Path) -> None:
    """As they stand there, in a clean clone and the folder of a program. The program then imports it."""
    npm.modules(npm.PACKAGE)  # what the lines fetch can be had
    clone, program = copy_checkout(tmp_path / "clone"), tmp_path / "program"
    program.mkdir()
    home = {"HOME": str(tmp_path), "npm_config_cache": str(Path.home() / ".npm")}
    lines = next(blocks(npm.PACKAGE / "README.md"))
    npm.run(clone, "sh", "-c", f"set -e\n{lines.text}", variables=home)
    imported = f"import {{ Client }} from '{npm.NAME}'; console.log(typeof Client)"
    assert npm.run(program, npm.own_node().program, "--input-type=module", "-e", imported) == "function\n"


@pytest.mark.extended
@pytest.mark.timeout(npm.TEST_SECONDS)
def test_it_packs_the_same_bytes_twice_and_may_be_published(tmp_path: Path) -> None:
    """The packed file has the console's client, its types and no more. A dry run publishes it without a network."""
    npm.own_node()
    one, other = npm.pack(tmp_path / "one"), npm.pack(tmp_path / "other")
    assert sha256(one.read_bytes()).digest() == sha256(other.read_bytes()).digest()
    with tarfile.open(one) as tar:
        found = {name.removeprefix("package/"): tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]  # files alone
    assert found.keys() == {
        "LICENSE", "README.md", "package.json", "dist/client.d.ts", "dist/client.js", "dist/types.d.ts"
    }  # fmt: skip
    assert found["dist/client.js"] == (ROOT / "stream_server" / "console" / "client.js").read_bytes()
    package = json.loads(found["package.json"])
    assert "dependencies" not in package
    assert (package["type"], package["engines"], package["sideEffects"]) == ("module", {"node": ">=20"}, False)
    published = npm.npm(tmp_path, "publish", "--offline", "--dry-run", "--provenance", "--access", "public", one)
    assert published.strip() == f"+ {npm.NAME}@{package['version']}"
