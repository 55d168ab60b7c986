"""A data folder that this server or its engine cannot read is left as it was: each byte, mode and time."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stream_server.store.redis.stored_form import STORED_FORM
from tests.command_line import COMMAND, run, running
from tests.end_to_end.server import Server, environment
from tests.redis_process import binaries
from tests.waiting import PATIENCE

pytestmark = pytest.mark.timeout(300)


def command(*words: str) -> bytes:
    """Return a command as the append-only file has it."""
    parts = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{parts}".encode()


EXPIRED = command("SET", "gone", "1", "PXAT", "1700000000000")
"""A key whose time is over. A Redis that loads it deletes it at once, and says so in its file."""


def newest_part(folder: Path) -> Path:
    return max(folder.glob("appendonlydir/*.incr.aof"), key=lambda path: int(path.name.split(".")[-3]))


def of_form(folder: Path, form: int) -> None:
    """Let the data be those of another version of the server, and have a key that has expired."""
    with newest_part(folder).open("ab") as part:
        part.write(command("HSET", "{core}:meta", "form", str(form)) + EXPIRED)


def of_a_later_form(folder: Path) -> None:
    of_form(folder, STORED_FORM + 1)


def of_an_earlier_form(folder: Path) -> None:
    of_form(folder, STORED_FORM - 1)


def of_another_form_and_torn(folder: Path) -> None:
    """A power failure has cut the last command."""
    of_a_later_form(folder)
    with newest_part(folder).open("ab") as part:
        part.write(command("SET", "last", "word")[:-3])


def of_another_form_and_shared(folder: Path) -> None:
    """Others may look into the folder, as after a copy."""
    of_a_later_form(folder)
    folder.chmod(0o755)


def of_another_form_from_a_backup(folder: Path) -> None:
    """Only what Redis wrote was kept."""
    of_a_later_form(folder)
    for name in ("redis.lock", "redis.log", "redis.version", "jwt.secret"):
        (folder / name).unlink()


def of_another_form_of_redis_6(folder: Path) -> None:
    """The one file of a Redis 6.2, which a newer one moves."""
    shutil.rmtree(folder / "appendonlydir")
    changes = command("HSET", "{core}:meta", "ms", "1700000000000", "seq", "0", "form", str(STORED_FORM - 1))
    (folder / "appendonly.aof").write_bytes(command("SELECT", "0") + changes + EXPIRED)
    (folder / "redis.version").write_text("6\n")


def of_a_later_engine(folder: Path) -> None:
    """As its record says."""
    (folder / "redis.version").write_text("Valkey 99.0.0\n")
    folder.chmod(0o755)
    (folder / "jwt.secret").unlink()


def of_a_later_engine_without_a_record(folder: Path) -> None:
    """As the head of its snapshot says."""
    (folder / "redis.version").unlink()
    (folder / "redis.lock").unlink()
    (snapshot,) = folder.glob("appendonlydir/*.base.rdb")
    head, rest = snapshot.read_bytes()[:9], snapshot.read_bytes()[9:]
    snapshot.write_bytes(head[:-3] + b"999" + rest)


def damaged(folder: Path) -> None:
    with newest_part(folder).open("ab") as part:
        part.write(b"no command\r\n" + command("SET", "last", "word"))


def with_garbage_in_its_list(folder: Path) -> None:
    """As after a power cut: bytes that are no text."""
    with (folder / "appendonlydir" / "appendonly.aof.manifest").open("ab") as listed:
        listed.write(b"\xff\xfe\x93\n")


def without_its_list(folder: Path) -> None:
    (folder / "appendonlydir" / "appendonly.aof.manifest").unlink()
    folder.chmod(0o755)
    (folder / "jwt.secret").unlink()


FAULTS: dict[Callable[[Path], None], str] = {
    of_a_later_form: "in a form that this version does not read",
    of_an_earlier_form: "in a form that this version does not read",
    of_another_form_and_torn: "in a form that this version does not read",
    of_another_form_and_shared: "in a form that this version does not read",
    of_another_form_from_a_backup: "in a form that this version does not read",
    of_another_form_of_redis_6: "in a form that this version does not read",
    of_a_later_engine: "was written by Valkey 99.0.0",
    of_a_later_engine_without_a_record: "RDB format version",
    damaged: "is damaged in the middle",
    with_garbage_in_its_list: "AOF manifest",
    without_its_list: "would start empty",
}
"""What is wrong with a folder, and what the server says of it."""


class Entry(NamedTuple):
    """What a file or folder is, and whose. A change of its rights or its names shows in these, and so does a write."""

    mode: int
    owner: tuple[int, int]
    number: int
    modified_ns: int
    changed_ns: int
    digest: str


def picture(folder: Path) -> dict[str, Entry]:
    """Return all that the folder is and has."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        owner = (about.st_uid, about.st_gid)
        found[str(path.relative_to(folder))] = Entry(
            about.st_mode, owner, about.st_ino, about.st_mtime_ns, about.st_ctime_ns, digest
        )
    return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of this version, after a start that found data in it."""
    folder = tmp_path_factory.mktemp("written")
    for _ in range(2):
        with Server(folder) as server, server.redis_client() as client:
            client.hset("{core}:meta", mapping={"ms": 1_700_000_000_000, "seq": 0, "form": STORED_FORM})
    (folder / "data" / "jwt.secret").write_text("a secret that has more than thirty-two bytes")
    (folder / "data" / "jwt.secret").chmod(0o600)
    return folder / "data"


@pytest.fixture
def copied(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "data"))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """The folder for temporary files, in which nothing may stay. Its path is short, as that of a socket must be."""
    with tempfile.TemporaryDirectory(prefix="sst-", dir="/tmp") as folder:
        yield Path(folder)
        assert list(Path(folder).iterdir()) == []


def variables(scratch: Path) -> dict[str, str]:
    """An environment without a key, so that a server makes one in its data folder."""
    return {name: value for name, value in environment().items() if name != "STREAM_SERVER_JWT_SECRET"} | {
        "TMPDIR": str(scratch)
    }


def serve_on(folder: Path, *flags: str) -> list[str]:
    return ["serve", "--port", "0", "--data-dir", str(folder), *flags]


def refusal(folder: Path, scratch: Path, *flags: str, **more: str) -> str:
    """Return what a server says that does not start on the folder."""
    ended = run(*serve_on(folder, *flags), env=variables(scratch) | more)
    assert ended.code == 1, ended.err
    return ended.err


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change.__name__)
def test_it_is_refused_and_left_as_it_was(copied: Path, scratch: Path, change: Callable[[Path], None]) -> None:
    change(copied)
    before = picture(copied)
    assert FAULTS[change] in refusal(copied, scratch)
    assert picture(copied) == before


@pytest.mark.extended
@pytest.mark.parametrize("flags", [("--demo",), ("--workers", "2"), ("--demo", "--workers", "2")], ids=" ".join)
@pytest.mark.parametrize("change", [of_another_form_from_a_backup, of_a_later_engine], ids=lambda one: one.__name__)
def test_so_is_it_in_each_way_to_serve(
    copied: Path, scratch: Path, change: Callable[[Path], None], flags: tuple[str, ...]
) -> None:
    change(copied)
    before = picture(copied)
    assert FAULTS[change] in refusal(copied, scratch, *flags)
    assert picture(copied) == before


@pytest.mark.extended
@pytest.mark.parametrize("program", [*binaries()][1:])
def test_an_older_engine_on_path_changes_nothing(copied: Path, scratch: Path, tmp_path: Path, program: str) -> None:
    """The data are those of the newest engine. Another one alone on PATH cannot be found to read them."""
    on_path = tmp_path / "path"
    on_path.mkdir()
    (on_path / "redis-server").symlink_to(binaries()[program])
    of_a_later_form(copied)
    before = picture(copied)
    assert "in a form" in refusal(copied, scratch, PATH=f"{on_path}:{os.defpath}")
    assert picture(copied) == before


def test_a_signal_while_it_looks_leaves_them_too(copied: Path, scratch: Path, tmp_path: Path) -> None:
    """Ctrl-C of somebody who sees the mistake."""
    of_another_form_from_a_backup(copied)
    before = picture(copied)
    with running(*COMMAND, *serve_on(copied), folder=tmp_path / "printed", env=variables(scratch)) as server:
        server.until(lambda: list(scratch.glob("*/view/*")))
        server.process.terminate()
        server.process.wait(PATIENCE)
    assert picture(copied) == before


def test_the_folder_of_a_running_server_is_left_too(scratch: Path, tmp_path: Path) -> None:
    """A second server says that the folder is in use. It makes no key, and takes no rights away."""
    with Server(tmp_path) as server:
        server.data.chmod(0o755)
        before = {name: entry.mode for name, entry in picture(server.data).items()}
        assert "is in use by another server" in refusal(server.data, scratch)
        assert {name: entry.mode for name, entry in picture(server.data).items()} == before
