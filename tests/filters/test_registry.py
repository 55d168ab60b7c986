"""The registry of filters, for plug-ins too."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from filters.registry import ENTRY_POINT_GROUP, RESERVED_OPERATORS, RESERVED_PARAMETERS, PluginError, Registry
from filters.rules.operators import operator_specs
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.http.query import TOKEN_PARAMETERS
from stream_server.web.openapi.operation import POLL_PARAMETERS, STREAM_PARAMETERS
from tests.filters.conftest import built_in

PLUGIN = """
from filters.base import Filter


class Shout(Filter):
    name = "shout"
    role = "combinable"
    help = "Posts in capitals."

    @classmethod
    def parse(cls, value):
        return cls()

    @property
    def canonical_form(self):
        return True

    def matches(self, event):
        return event.text.isupper()
"""


def install(folder: Path, name: str, entry_points: str, source: str = "") -> None:
    """Write a distribution into ``folder`` as an installer would."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{entry_points}\n")
    (folder / f"{name}.py").write_text(source)


def test_the_built_in_filters_come_by_entry_points(registry: Registry) -> None:
    assert set(registry.names()) >= {
        *("track", "follow", "locations", "sample", "firehose", "partition", "language", "kinds")
    }
    assert [filter_class.name for filter_class in registry.all()] == registry.names()


def test_an_installed_filter_is_found_and_imported_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "shouting", "shout = shouting:Shout", PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry.from_entry_points()
    assert "shout" in registry.names()
    assert "shouting" not in sys.modules
    assert registry.get("shout").help == "Posts in capitals."
    monkeypatch.delitem(sys.modules, "shouting")


@pytest.mark.parametrize(
    ("value", "source", "message"),
    [
        ("broken:Shout", "raise RuntimeError('no luck')", "no luck"),
        ("broken:Missing", PLUGIN, "Missing"),
        ("broken:number", "number = 5", "not a class"),
        ("broken:Shout", PLUGIN.replace('"shout"', '"whisper"'), "has the name whisper"),
        (
            "broken:Shout",
            PLUGIN.replace('"combinable"', '"weird"'),
            "has the role 'weird'; expected one of combinable, standalone, narrowing",
        ),
        ("broken:Shout", PLUGIN.replace('role = "combinable"', ""), "has the role None"),
    ],
)
def test_a_broken_filter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, source: str, message: str
) -> None:
    install(tmp_path, "broken", f"shout = {value}", source)
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry.from_entry_points()
    with pytest.raises(PluginError, match=f"shout .*of broken.*{message}"):
        registry.get("shout")
    sys.modules.pop("broken", None)


def test_two_filters_of_one_name_are_refused() -> None:
    with pytest.raises(PluginError, match="two installed filters are named track"):
        Registry([*built_in(), EntryPoint("track", "elsewhere:Track", ENTRY_POINT_GROUP)])


@pytest.mark.parametrize(
    ("name", "taken"),
    [("from", "an operator of rules"), ("since", "a parameter of streams"), ("ticket", "a parameter")],
)
def test_a_reserved_name_is_refused(name: str, taken: str) -> None:
    with pytest.raises(
        PluginError, match=f"filter {name} .elsewhere:Since, of .* cannot be used: {name} is the name of {taken}"
    ):
        Registry([*built_in(), EntryPoint(name, "elsewhere:Since", ENTRY_POINT_GROUP)])


def test_all_operators_and_parameters_are_reserved(registry: Registry) -> None:
    named = {name for row in operator_specs() for name in (row.name, *row.aliases) if name and "." not in name}
    assert named - set(registry.names()) == RESERVED_OPERATORS
    assert {*STREAM_PARAMETERS, *POLL_PARAMETERS, TICKET_PARAMETER, *TOKEN_PARAMETERS} == RESERVED_PARAMETERS


def test_one_filter_found_twice_is_one() -> None:
    assert len(Registry([*built_in(), *built_in()]).names()) == len(built_in())


def test_an_unknown_name_is_a_key_error(registry: Registry) -> None:
    with pytest.raises(KeyError):
        registry.get("nothing")
