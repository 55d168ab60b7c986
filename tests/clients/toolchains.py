"""Compiles a program of another language by the toolchain of this machine. Without that the test is skipped.

What the network brings is kept outside of the checkout, under the hash of what it comes from, as that of npm is.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from tests.clients.venvs import environment
from tests.made_once import CACHE, once
from tests.needed import INDEX, missing

LOCKS = Path(__file__).parent / "locks"

BUILD_SECONDS = 280

NEWTONSOFT = Path("/usr/lib/cli/Newtonsoft.Json-5.0")
"""Where Debian's `libnewtonsoft-json5.0-cil` puts the library for Mono."""

GO_QUICKLY = "-gcflags=all=-N -l"
"""Compiles the libraries of Go, which are not compiled on a fresh machine, in two thirds of the processor time."""

JAVA_QUICKLY = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for programs that end within seconds: one compiler at run time, and one thread that collects garbage."""

Command = list[str]


def compiled(language: str, text: str, folder: Path) -> Command:
    """Return the command that runs the program ``text``, which is compiled in ``folder``.

    The test is skipped if this machine has no toolchain for the language, or cannot fetch the libraries.
    """
    return COMPILERS[language](text, folder)


def program(name: str) -> str:
    """Return the path of a program. Without it the test is skipped."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on PATH")
    return found


def run(folder: Path, *command: object, variables: Mapping[str, str] | None = None) -> str:
    """Run a program of a toolchain in ``folder`` and return its output. Raises CalledProcessError if it fails."""
    home = {"HOME": str(Path.home()), **{name: os.environ[name] for name in PASSED if name in os.environ}}
    return subprocess.run(
        [*map(str, command)], cwd=folder, env={**environment(None), **home, **(variables or {})}, text=True,
        capture_output=True, timeout=BUILD_SECONDS, check=True,
    ).stdout  # fmt: skip


PASSED = ("CARGO_HOME", "GOMODCACHE", "GOCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "GOSUMDB", "JAVA_HOME", "RUSTUP_HOME")
"""The variables by which a machine says where a toolchain keeps its files, and fetches from."""


def fetched(name: str, lock: Path, fetch: Callable[[Path], object]) -> Path:
    """Return a folder with the files of ``lock``, in which ``fetch`` has put the libraries that they name."""
    files = sorted(lock.iterdir())
    key = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]

    def make(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        try:
            fetch(folder)
        except subprocess.CalledProcessError as error:
            missing(f"{name} cannot fetch libraries: {(error.stderr + error.stdout)[-500:]}", INDEX)

    return once(CACHE, f"{name}-{key}", make)


def _go(text: str, folder: Path) -> Command:
    go = program("go")
    (folder / "go.mod").write_text("module reader\n\ngo 1.21\n", encoding="utf-8")
    (folder / "reader.go").write_text(text, encoding="utf-8")
    run(folder, go, "build", GO_QUICKLY, "-o", "reader", ".", variables={"CGO_ENABLED": "0"})
    return [str(folder / "reader")]


def _jars() -> list[Path]:
    """Return the libraries for Java and Kotlin, the compiler of Kotlin among them."""
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    mvn = program("mvn")

    def fetch(made: Path) -> None:
        quickly = {"MAVEN_OPTS": " ".join(JAVA_QUICKLY)}
        run(made, mvn, "-q", "-B", goal, "-DoutputDirectory=jars", variables=quickly)

    return sorted((fetched("maven", LOCKS / "maven", fetch) / "jars").glob("*.jar"))


def _java(text: str, folder: Path) -> Command:
    javac, java = program("javac"), program("java")
    (gson,) = [jar for jar in _jars() if jar.name.startswith("gson-")]
    (folder / "Reader.java").write_text(text, encoding="utf-8")
    run(folder, javac, *(f"-J{option}" for option in JAVA_QUICKLY), "-cp", gson, "Reader.java")
    return [java, *JAVA_QUICKLY, "-cp", f"{gson}:{folder}", "Reader"]


def _kotlin(text: str, folder: Path) -> Command:
    java = program("java")
    path = ":".join(map(str, _jars()))
    (folder / "Reader.kt").write_text(text, encoding="utf-8")
    compiler = ("org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect", "-cp", path)
    run(folder, java, *JAVA_QUICKLY, "-cp", path, *compiler, "-d", ".", "Reader.kt")
    return [java, *JAVA_QUICKLY, "-cp", f"{path}:{folder}", "ReaderKt"]


def _csharp(text: str, folder: Path) -> Command:
    mcs, mono = program("mcs"), program("mono")
    if not NEWTONSOFT.exists():
        pytest.skip("there is no Newtonsoft.Json for Mono: apt install libnewtonsoft-json5.0-cil")
    (folder / "Reader.cs").write_text(text, encoding="utf-8")
    libraries = (f"-lib:{NEWTONSOFT}", "-r:Newtonsoft.Json.dll", "-r:System.Net.Http.dll")
    run(folder, mcs, "-langversion:latest", *libraries, "Reader.cs")
    return [mono, str(folder / "Reader.exe")]


def _rust(text: str, folder: Path) -> Command:
    cargo, rustc = program("cargo"), program("rustc")

    def fetch(made: Path) -> None:
        (made / "src").mkdir()
        (made / "src" / "main.rs").write_text("fn main() {}\n", encoding="utf-8")
        run(made, cargo, "build", "--locked", "--quiet", variables={"CARGO_TARGET_DIR": "target"})

    libraries = fetched("rust", LOCKS / "rust", fetch) / "target" / "debug" / "deps"
    named = {name: next(libraries.glob(f"lib{name}-*.rlib")) for name in ("ureq", "serde_json")}
    (folder / "reader.rs").write_text(text, encoding="utf-8")
    externs = [part for name, file in named.items() for part in ("--extern", f"{name}={file}")]
    run(folder, rustc, "--edition", "2024", "-L", f"dependency={libraries}", *externs, "reader.rs")
    return [str(folder / "reader")]


COMPILERS: dict[str, Callable[[str, Path], Command]] = {
    "go": _go, "java": _java, "csharp": _csharp, "rust": _rust, "kotlin": _kotlin,
}  # fmt: skip
