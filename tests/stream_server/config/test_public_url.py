"""The setting `public_url`: what it may be, and whose links it changes."""

from pathlib import Path

import msgspec
import pytest

from stream_server.commands.server_access import public_address
from stream_server.config.config import load
from stream_server.config.public_url import PublicUrl, split_public_url
from stream_server.config.settings import InvalidSetting
from stream_server.runtime.run_file import RUN_FILE_NAME, RunFile


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("", "")),
        ("https://example.org", ("https://example.org", "")),
        ("https://EXAMPLE.org:443/", ("https://example.org", "")),
        ("http://127.0.0.1:8000/a/b.c_d~e-1/", ("http://127.0.0.1:8000", "/a/b.c_d~e-1")),
        ("http://[::1]:80/s", ("http://[::1]", "/s")),
        ("https://bücher.example/s", ("https://xn--bcher-kva.example", "/s")),
    ],
)
def test_an_address_has_an_origin_and_a_path(text: str, parts: PublicUrl) -> None:
    assert split_public_url(text) == parts
    assert load({"public_url": text}, {}).public_url == "".join(parts)


@pytest.mark.parametrize(
    "text",
    [
        "example.org/s", "ftp://example.org", "/s", "https://", "https:///s", "https://a:b", "https://a@b/s", "https://*",
        "https://a,https://b", "https://a//b", "https://a/../b", "https://a/./b", "https://a/%2e", "https://a/s?", "x",
        "https://a/s#b", "https://a/s\r\nX: y", "https://a/s b", 'https://a/"><script>', "https://a\n/s",
    ],
)  # fmt: skip
def test_what_cannot_stand_before_a_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="--public-url"):
        load({"public_url": text}, {})


def test_a_link_for_a_browser_begins_with_it(tmp_path: Path) -> None:
    """A command finds it in the run file of the server, and an address that the person gives counts more."""
    settings = load({"data_dir": str(tmp_path)}, {})
    for public, address in (("", "http://127.0.0.1:9000"), ("https://a.example/s", "https://a.example/s")):
        run_file = RunFile("redis://r", "http://127.0.0.1:9000", public_url=public)
        (tmp_path / RUN_FILE_NAME).write_bytes(msgspec.json.encode(run_file))
        assert public_address(None, settings) == address
        assert public_address("https://b.example", settings) == "https://b.example"
