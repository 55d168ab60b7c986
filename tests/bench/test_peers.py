"""The comparison with other servers: what it shows of a peer that is missing, and what it gives to each peer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.peers import __main__ as command
from bench.peers.centrifugo import Centrifugo
from bench.peers.jetstream import Jetstream
from bench.peers.mercure import Mercure
from bench.peers.nchan import MODULE, Nchan
from bench.peers.peer import Event, Peer
from bench.peers.programs import Programs
from bench.poster import TOPICS
from bench.report import Results
from tests.architecture.source import ROOT

PLAN = command.options_from(["--rounds", "2"]).plan
EVENT = Event({"kind": "post", "status": {"message": "", "meta": None}})


@pytest.fixture
def site(tmp_path: Path) -> Any:
    return SimpleNamespace(folder=tmp_path)


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    """Every program of the peers, none of which does anything."""
    for name in ("bin/centrifugo", "bin/mercure", "usr/sbin/nginx", "jetstream", "jetstream-simulator"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    module = tmp_path / "usr/lib/nginx/modules" / MODULE
    module.parent.mkdir(parents=True)
    module.write_bytes(b"nchan version: %s\x001.2.3\x00")
    return Programs([tmp_path])


@pytest.fixture
def peers(site: Any, programs: Programs) -> list[Peer]:
    return [
        Centrifugo(site, programs, EVENT), Mercure(site, programs, EVENT), Nchan(site, programs, EVENT),
        Jetstream(site, programs),
    ]  # fmt: skip


def test_a_peer_that_is_not_installed_has_a_note(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on with the others."""
    monkeypatch.setenv("PATH", str(tmp_path))
    makers = {"centrifugo": lambda: Centrifugo(site, Programs([]), EVENT)}
    found, missing = command.gathered(makers, ["centrifugo"])
    assert found == []
    text = command.table(Results(), found, PLAN, missing)
    assert "- centrifugo: not measured: centrifugo not found (see bench/PEERS.md)." in text


def test_a_peer_that_fails_is_left_out_from_then_on() -> None:
    """Its column has a note, and the other peers are measured."""
    peer = SimpleNamespace(column="broken", chooses={"firehose": "all"}, starts=0)

    def running(rate: float = 0) -> Any:
        peer.starts += 1
        raise RuntimeError("broken did not start: a long story\nand more")

    peer.running = running
    _, failed = command.run([peer], list(command.PARTS), None, PLAN)  # type: ignore[list-item, arg-type] # no clients
    assert peer.starts == 1
    assert failed == {"broken": "broken did not start: a long story"}


def test_clients_of_one_topic_are_a_tenth_of_all(peers: list[Peer]) -> None:
    """Each peer gives every client a request, and ten different ones where clients choose a topic."""
    for peer in peers:
        assert len(set(peer.streams("firehose", 20))) == 1
        assert len(peer.streams("topic", 20)) == 20
        assert len(set(peer.streams("topic", 20))) == (1 if peer.column == "Jetstream" else TOPICS)


def test_the_page_names_each_peer_and_its_programs(peers: list[Peer]) -> None:
    """A peer that is not found refers to this page."""
    page = (ROOT / "bench" / "PEERS.md").read_text(encoding="utf-8")
    for peer in peers:
        assert peer.column in page
    for program in ("centrifugo", "mercure", "nginx", "jetstream", "jetstream-simulator", MODULE):
        assert f"`{program}`" in page


@pytest.mark.parametrize("arguments", [["--only", "nosuch"], ["--parts", "nosuch"]])
def test_an_unknown_name_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists the known names."""
    with pytest.raises(SystemExit):
        command.options_from(arguments)
    assert "unknown: nosuch; known: stream-server" in capsys.readouterr().err
