"""A server on the data folders that people and containers give it."""

import stat
from pathlib import Path

import pytest

from tests.end_to_end.server import Server
from tests.redis_process import private_redis

pytestmark = pytest.mark.extended


class ServerOn(Server):
    """A server on the data folder ``given``, which it may not use itself."""

    def __init__(self, folder: Path, given: str, *flags: str, **options: object) -> None:
        super().__init__(folder, "--data-dir", given, *flags, **options)  # type: ignore[arg-type]  # the options are those of a server


def test_data_and_key_go_to_the_same_home(own_folder: Path) -> None:
    variables = {"HOME": str(own_folder), "STREAM_SERVER_JWT_SECRET": None}
    with ServerOn(own_folder, "~/kept", variables=variables):
        found = {path.name for path in (own_folder / "kept").iterdir()}
        assert found >= {"jwt.secret", "redis.version", "server.json"}
    assert not (Path.cwd() / "~").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_shared_folder_gets_a_private_one(own_folder: Path, workers: int) -> None:
    shared = own_folder / "shared"
    shared.mkdir(parents=True)
    (shared / "of others").touch()
    shared.chmod(0o2775)
    for _ in range(2):
        with ServerOn(own_folder, str(shared), "--workers", str(workers)):
            assert {path.name for path in shared.iterdir()} == {"of others", "stream-server"}
            assert (shared / "stream-server" / "server.json").exists()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o2775


def test_a_server_of_another_redis_needs_no_data_folder(own_folder: Path) -> None:
    own_folder.mkdir(parents=True)
    (own_folder / "file").touch()
    data = str(own_folder / "file" / "data")
    with private_redis(port=0) as redis, ServerOn(own_folder, data, "--redis", redis.url) as server:
        assert "commands cannot find this server by its data folder" in server.log
