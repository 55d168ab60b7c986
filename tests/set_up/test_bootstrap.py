"""The set-up on unusual machines: private package indexes, wrong downloads, missing certificates, other Pythons."""

import datetime as dt
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests import needed
from tests.set_up.package_index import PackageIndex, Page, html_page, json_page

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
CREDENTIALS = "Basic cmVhZGVyOnBAc3M="  # reader:p@ss


def pinned(name: str) -> str:
    """Read a constant from the set-up script, which is not importable."""
    found = re.search(rf'^{name} = "([^"]+)"$', (ROOT / ".ci" / "uv_wheel.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def wheel_name() -> str:
    code = "from pinned_wheel import platform_name; import uv_wheel as u; print(u.UV.wheels[platform_name()].tag)"
    command = [sys.executable, "-c", code]
    tag = subprocess.run(command, cwd=ROOT / ".ci", capture_output=True, text=True, check=True).stdout
    return f"uv-{pinned('VERSION')}-{tag.strip()}.whl"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what the set-up reads into a folder of its own, with a home folder beside it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    shutil.copytree(ROOT / ".ci", folder / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, folder)
    return folder


def bootstrap(checkout: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the set-up with only ``environ``."""
    base = {"PATH": os.defpath, "HOME": str(checkout.parent / "home"), "no_proxy": "*"}
    command = [sys.executable, ".ci/bootstrap.py"]
    return subprocess.run(command, cwd=checkout, env=base | environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", [html_page, json_page])
def test_other_bytes_than_the_pinned_are_thrown_away(checkout: Path, page: Page) -> None:
    """A wheel with another hash is refused in a sentence, and no part of it stays on disk."""
    with PackageIndex(page, wheel_name(), b"not the wheel") as index:
        done = bootstrap(checkout, UV_DEFAULT_INDEX=index.url)
    assert [path for path, _ in index.seen] == ["/simple/uv/", f"/files/{wheel_name()}"]
    assert "does not have the pinned hash" in done.stderr
    assert done.returncode == 1
    assert not list((checkout / ".venv" / "bin").glob("uv*"))


@pytest.mark.parametrize("where", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "pip.conf"])
def test_the_configured_index_is_asked_with_its_credentials(checkout: Path, where: str) -> None:
    """The set-up uses the configured index, however it is configured, and never prints its password."""
    with PackageIndex(html_page, wheel_name(), b"not the wheel") as index:
        environ = {where: index.url}
        if where == "pip.conf":
            (checkout / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\n")
            environ = {"PIP_CONFIG_FILE": str(checkout / "pip.conf")}
        done = bootstrap(checkout, **environ)
    assert [credentials for _, credentials in index.seen] == [CREDENTIALS, CREDENTIALS]
    assert "p%40ss" not in done.stderr + done.stdout
    assert "p@ss" not in done.stderr + done.stdout


def test_a_download_that_breaks_off_is_reported(checkout: Path) -> None:
    """The message says that the download was cut off, and does not blame the hash."""
    with PackageIndex(html_page, wheel_name(), b"half", announce=4000) as index:
        done = bootstrap(checkout, UV_DEFAULT_INDEX=index.url)
    assert "the connection ended after 4 of 4000 bytes" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_index_without_uv_is_reported_before_pip_is_tried(checkout: Path) -> None:
    """The message says that the index has no uv. pip, which is missing or finds nothing here, gives no traceback."""
    with PackageIndex(html_page, "uv-0.0.1.tar.gz", b"") as index:
        done = bootstrap(checkout, UV_DEFAULT_INDEX=index.url, PIP_INDEX_URL=index.url, PIP_RETRIES="0")
    assert f"the package index does not offer {wheel_name()}" in done.stderr
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_an_unreachable_index_is_reported_in_a_sentence(checkout: Path) -> None:
    """The sentence names the host and what to do. It does not contain the credentials."""
    done = bootstrap(checkout, UV_DEFAULT_INDEX="http://reader:p%40ss@127.0.0.1:9/simple")
    assert "The package index at 127.0.0.1 cannot be reached" in done.stderr
    assert "UV_DEFAULT_INDEX" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_certificates_are_reported_in_a_sentence(checkout: Path, tmp_path: Path) -> None:
    """If a certificate cannot be verified, the sentence names ca-certificates, which fresh machines often lack."""
    with PackageIndex(html_page, wheel_name(), b"").behind_tls(self_signed(tmp_path)) as index:
        done = bootstrap(checkout, UV_DEFAULT_INDEX=index.url)
    assert "install your system's ca-certificates package" in done.stderr
    assert index.seen == []
    assert done.returncode == 1


def self_signed(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + dt.timedelta(hours=1))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path = folder / "self_signed.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *form)
        + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_another_python_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An unsupported Python gives exit code 2, and a sentence that names the supported versions."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / ".ci" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SUPPORTED", ((3, 1),))
    assert module.main() == 2
    assert f"is Python {'.'.join(platform.python_version_tuple()[:2])}." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements-site.lock"])
def test_the_locks_pin_and_hash_everything(name: str) -> None:
    """Each requirement has one version and at least one hash, and no line names an index."""
    text = (ROOT / name).read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert [entry for entry in entries if not re.match(r"[a-z0-9.-]+==\S+ .*\\\n    --hash=sha256:", entry)] == []
    assert "://" not in text


def test_the_locks_have_all_dependencies_of_the_project() -> None:
    """A dependency that was added without ``make lock`` fails this test."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, site = settings["project"], settings["dependency-groups"]["site"]
    extras = project["optional-dependencies"]
    runtime = [*project["dependencies"], *extras["server-only"], *extras["server"][1:]]
    dev = [*extras["dev"][1:], *extras["export"], *extras["telemetry"]]
    assert extras["server"][0] == "social-stream-server[server-only]"
    assert extras["dev"][0] == "social-stream-server[server,export,telemetry]"
    locks = {"requirements.lock": runtime, "requirements-dev.lock": [*runtime, *dev], "requirements-site.lock": site}
    for name, wanted in locks.items():
        locked = re.findall(r"^([a-z0-9.-]+)==", (ROOT / name).read_text(), re.MULTILINE)
        names = {re.split(r"[^A-Za-z0-9.-]", line)[0].lower() for line in wanted}
        assert names <= set(locked)


@pytest.mark.parametrize(("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_without_an_index_the_tests_that_need_it_are_skipped_and_fail_in_ci(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv(needed.INDEX, required)
    monkeypatch.setattr(needed, "_no_answer", needed._no_answer.__wrapped__)
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception)) as raised:
        needed.need_index()
    assert raised.type is outcome
    assert "The package index at 127.0.0.1 cannot be reached" in str(raised.value)
