"""Commands that are given no server take the one that this user runs on this machine, such as a demo."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

from stream_server.commands import server_access
from stream_server.config import config
from stream_server.runtime import run_file
from tests.command_line import COMMAND, Outcome, Running, clean_environment, run, running
from tests.end_to_end.server import ANNOUNCED
from tests.redis_process import RedisProcess, newest
from tests.waiting import PATIENCE

STREAM = ("--firehose", "--since", "-5m", "--json")


class Machine:
    """A folder for temporary files of its own, so that servers of other tests are not found; and what runs with it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack, self.variables = folder, stack, dict[str, str]()
        self.temporary = Path(mkdtemp())
        stack.callback(shutil.rmtree, self.temporary, ignore_errors=True)  # a killed server's Redis removes its part

    @property
    def env(self) -> dict[str, str]:
        # The variable that many machines set for such files is not needed.
        env = clean_environment(TMPDIR=str(self.temporary), **self.variables)
        env.pop("XDG_RUNTIME_DIR", None)
        return env

    def serve(self, *flags: str | Path, until: str = ANNOUNCED) -> Running:
        """Start a server, and wait until it has printed ``until``."""
        folder = self.folder / f"server-{len(list(self.folder.iterdir()))}"
        command = (*COMMAND, "serve", "--port", "0", *flags)
        server = self._stack.enter_context(running(*command, folder=folder, env=self.env))
        server.until(lambda: until in server.out)
        return server

    def command(self, *arguments: str | Path) -> Outcome:
        return run(*arguments, env=self.env)


def address(server: Running) -> str:
    (line,) = (line for line in server.out.splitlines() if line.startswith(ANNOUNCED))
    return line.removeprefix(ANNOUNCED)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(tmp_path, stack)


def works(machine: Machine, server: Running) -> None:
    """Check the commands that need the server's address, its Redis or its key, without a word of which server."""
    token = machine.command("token", "--user", "ada", "--create")
    assert (token.code, token.out.count("."), token.err) == (0, 2, "")
    (machine.folder / "token").write_text(token.out)
    (machine.folder / "recording.jsonl").write_text(json.dumps({"author": "ada", "message": "hello"}))
    assert machine.command("sign-in", "--user", "ada").out.startswith(f"{address(server)}/#code=")
    assert machine.command("admin", "ada").code == 0
    assert machine.command("replay", machine.folder / "recording.jsonl").code == 0
    stats = machine.command("stats", "--user", "ada", "--once", "--json")
    assert (stats.code, json.loads(stats.out)["workers"][0]["ready"]) == (0, True)
    for named in (("--user", "ada"), ("--token-file", machine.folder / "token")):
        with running(*COMMAND, "tail", *named, "--track", "hello", *STREAM[1:], folder=machine.folder / "t",
                     env=machine.env) as tail:  # fmt: skip
            tail.until(lambda: '"hello"' in tail.out)
    assert f"the server at {address(server)} is ready" in machine.command("doctor").out
    assert machine.command("repair", "--dry-run").code == 0
    assert machine.command("export", "--user", "ada", "--track", "hello", "--since", "-5m", "--to",
                           machine.folder / "day.jsonl").code == 0  # fmt: skip


def test_a_server_without_a_data_folder(machine: Machine) -> None:
    works(machine, machine.serve())


@pytest.mark.extended
def test_a_server_with_a_data_folder(machine: Machine, tmp_path: Path) -> None:
    works(machine, machine.serve("--data-dir", tmp_path / "data"))


@pytest.mark.extended
def test_several_workers(machine: Machine) -> None:
    works(machine, machine.serve("--workers", "2"))


@pytest.mark.extended
def test_a_server_with_a_redis_of_its_own(machine: Machine) -> None:
    """It has made its key for this run. ``--redis`` with the same URL names it, too."""
    with RedisProcess(newest()) as redis_process:
        works(machine, machine.serve("--redis", redis_process.url))
        assert machine.command("token", "--user", "ada", "--redis", redis_process.url).code == 0


def test_the_demo(machine: Machine) -> None:
    demo = machine.serve("--demo", until="see talks")
    demo.until(lambda: "stream-server tail --user ada --track coffee\n" in demo.out)
    with running(*COMMAND, "tail", "--user", "ada", *STREAM, folder=machine.folder / "tail", env=machine.env) as tail:
        tail.until(lambda: tail.out.count('"kind":"post"') > 10)
    assert demo.interrupt() == 0
    assert list(machine.temporary.iterdir()) == []


@pytest.mark.extended
def test_of_several_servers_the_person_chooses_one(machine: Machine, tmp_path: Path) -> None:
    servers = [machine.serve(), machine.serve("--data-dir", tmp_path / "data")]
    refused = machine.command("token", "--user", "ada", "--create")
    assert (refused.code, refused.out) == (2, "")
    first, *listed = refused.err.splitlines()
    assert first == "stream-server: 2 servers run here, so give the --data-dir of one of them:"
    folders = {line.split()[0]: line.split()[2] for line in listed}
    assert folders.keys() == set(map(address, servers))
    assert folders[address(servers[1])] == str(tmp_path / "data")
    assert "2 servers run here" in machine.command("doctor").out
    for server in servers:
        folder = folders[address(server)]
        link = machine.command("sign-in", "--user", "ada", "--create", "--data-dir", folder)
        assert link.out.startswith(address(server))
        by_url = machine.command("stats", "--url", address(server).replace("127.0.0.1", "localhost"), "--user", "ada")
        assert (by_url.code, "scope" in by_url.err) == (0, False), by_url
    machine.variables["STREAM_SERVER_PORT"] = address(servers[0]).rpartition(":")[2]
    assert machine.command("sign-in", "--user", "ada").out.startswith(address(servers[0]))


def test_servers_of_one_redis_are_one_site_and_any_of_them_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = [str(tmp_path / name) for name in ("first", "second", "other")]
    given = zip(folders, ("unix:///r.sock", "unix:///r.sock", "unix:///other.sock"), (2, 1, 3), strict=True)
    first, second, other = (
        config.load({"data_dir": folder, "redis": url, "port": port}, {}) for folder, url, port in given
    )
    with run_file.kept_run_file(first), run_file.kept_run_file(second):
        assert server_access.find_server(config.load({}, {})).data_dir == folders[1], "the lowest URL"
        with run_file.kept_run_file(other), pytest.raises(server_access.SeveralServers, match="3 servers run here"):
            server_access.find_server(config.load({}, {}))
        named = config.load({"redis": "unix:///r.sock"}, {})
        with run_file.kept_run_file(other):
            assert server_access.find_server(named).data_dir == folders[1], "the key of the site is there"


def test_servers_whose_redis_has_a_password_may_be_of_several_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their run files do not show the URL, so nothing tells that it is the same."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one, two = (config.load({"port": port}, {"STREAM_SERVER_REDIS": "redis://:secret@a"}) for port in (1, 2))
    with (
        run_file.kept_run_file(one),
        run_file.kept_run_file(two),
        pytest.raises(server_access.SeveralServers, match="2 servers run here"),
    ):
        server_access.find_server(config.load({}, {}))


@pytest.mark.extended
def test_a_token_is_sent_to_no_other_address(machine: Machine) -> None:
    machine.serve()
    refused = machine.command("stats", "--url", "http://127.0.0.1:9", "--user", "ada")
    assert (refused.code, "no running server of this user was found here" in refused.err) == (2, True)


@pytest.mark.extended
def test_a_server_that_was_killed_is_not_running(machine: Machine, tmp_path: Path) -> None:
    for flags in ((), ("--data-dir", tmp_path / "data")):
        server = machine.serve(*flags)
        assert machine.command("token", "--user", "ada", "--create").code == 0
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(PATIENCE)
        assert list(machine.temporary.glob("*/server.json"))
        refused = machine.command("token", "--user", "ada")
        assert (refused.code, "no running server of this user was found here" in refused.err) == (2, True)
    named = machine.command("token", "--user", "ada", "--data-dir", tmp_path / "data")
    assert (named.code, "no server is running on the data folder" in named.err) == (3, True)


def test_secrets_that_outlive_the_server_are_not_in_its_temporary_folder(machine: Machine) -> None:
    secret, password = "s" * 48, "p" * 24
    with RedisProcess(newest()) as redis_process:
        with redis_process.client() as client:
            client.config_set("requirepass", password)
        scheme, _, rest = redis_process.url.partition("://")
        url = f"{scheme}://:{password}@{rest}"
        machine.variables |= {"STREAM_SERVER_JWT_SECRET": secret, "STREAM_SERVER_REDIS": url}
        server = machine.serve()
        contents = "".join(file.read_text() for file in machine.temporary.rglob("*") if file.is_file())
        assert address(server) in contents
        assert not any(each in contents for each in (secret, password))
        assert machine.command("token", "--user", "ada", "--create").code == 0
        machine.variables.pop("STREAM_SERVER_REDIS")
        refused = machine.command("token", "--user", "ada")
        assert f"the Redis of the server at {address(server)} has a password" in refused.err


@contextmanager
def _kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep the run file of a server in a folder for temporary files of its own. Yield the server's private folder."""
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with run_file.kept_run_file(config.load({"redis": "unix:///r.sock"}, {}), made_secret="s" * 48):
        (private,) = folder.iterdir()
        yield private


def _belongs_to_another(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del private
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def _is_open_to_others(private: Path, _: pytest.MonkeyPatch) -> None:
    private.chmod(0o755)


def _is_a_link(private: Path, _: pytest.MonkeyPatch) -> None:
    elsewhere = private.parent.parent / "elsewhere"
    private.rename(elsewhere)
    private.symlink_to(elsewhere)


@pytest.mark.parametrize("happens", [_belongs_to_another, _is_open_to_others, _is_a_link])
def test_a_folder_that_others_could_have_made_is_not_trusted(
    happens: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _kept(tmp_path / "temporary", monkeypatch) as private:
        settings = config.load({}, {})
        assert server_access.find_server(settings).data_dir == str(private)
        assert {file.stat().st_mode & 0o777 for file in private.iterdir()} == {0o600}
        happens(private, monkeypatch)
        assert server_access.find_server(settings) == settings


def test_a_server_runs_without_a_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with run_file.kept_run_file(config.load({"redis": "unix:///r.sock"}, {})):
        assert run_file.find_running() == {}


def test_a_server_that_ends_leaves_the_run_file_of_the_next_one(tmp_path: Path) -> None:
    """Two servers with one Redis may share a data folder, as for their key. The first one ends later."""
    first, second = (config.load({"redis": "unix:///r.sock", "data_dir": str(tmp_path), "port": n}, {}) for n in (1, 2))
    with ExitStack() as later:
        with run_file.kept_run_file(first):
            later.enter_context(run_file.kept_run_file(second))
        found = run_file.read(tmp_path)
        assert found is not None
        assert found.url.endswith(":2")
