"""Plug-in filters on a real server: as parameters, as operators of rules, and when they misbehave."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.installing import install

pytestmark = pytest.mark.extended

UNRULY = Path(__file__).parent / "unruly"


@pytest.fixture(scope="module")
def word(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of the file that has the word of the filter ``fickle``."""
    return tmp_path_factory.mktemp("words") / "word"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, word: Path) -> Iterator[Server]:
    """Start a server with the filters of ``unruly`` installed. At the end its log must have no traceback."""
    site = tmp_path_factory.mktemp("site")
    install(UNRULY, site)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site))
        patch.setenv("UNRULY_WORD", str(word))
        with Server(tmp_path_factory.mktemp("server"), "--heartbeat-seconds", "0.2") as running:
            yield running


def test_the_start_names_the_filters_with_their_packages(server: Server) -> None:
    """The second line that the server prints names all filters, and the package of each plug-in."""
    lines = (server.folder / "out.log").read_text().splitlines()
    assert lines[1].startswith("filters: ")
    assert " track" in lines[1]
    assert "fickle (" in lines[1]


async def test_a_filter_is_a_parameter_and_an_operator(api: Api) -> None:
    """The server finds one class by its entry point and offers it as both. Rules and `explain` name it."""
    uid = await api.user()
    async with (
        await api.stream({"shouting": "TEA", "explain": "true"}) as parameter,
        await api.stream({"rule": f"shouting:TEA from:{uid} -milk"}) as operator,
    ):
        await api.post(uid, "tea")
        await api.post(uid, "TEA")
        await api.post(uid, "TEA with milk")
        last = await api.post(uid, "more TEA")
        await operator.until(lambda c: c.events and c.events[-1]["status"]["id"] == last["id"])
        await parameter.until(lambda c: c.events and c.events[-1]["status"]["id"] == last["id"])
        assert [post["status"]["message"] for post in operator.of("post")] == ["TEA", "more TEA"]
        assert [post["status"]["message"] for post in parameter.of("post")] == ["TEA", "TEA with milk", "more TEA"]
        assert parameter.of("post")[0]["matched"] == [{"filter": "shouting"}]


async def test_a_filter_without_keys_warns_of_its_cost(api: Api) -> None:
    """Its stream gets a warning after `hello`, and a metric counts it.

    No warning if other keys of the rule find the events.
    """
    before = await api.metric("subscriptions_without_keys")
    async with await api.stream({"shouting": "TEA"}) as consumer:
        await consumer.until(lambda c: c.of("warning"))
        told = consumer.of("warning")[0]
        assert (told["code"], told["filter"]) == ("costly_filter", "shouting")
        assert await api.metric("subscriptions_without_keys") == before + 1
        async with await api.stream({"rule": "shouting:TEA coffee"}) as cheap:
            await cheap.until(lambda c: c.of("heartbeat"))
            assert cheap.of("warning") == []
            assert await api.metric("subscriptions_without_keys") == before + 1


async def test_a_filter_that_raises_is_disabled_for_its_stream_with_a_warning(api: Api) -> None:
    """Its own stream continues without it and gets a warning. Other streams do not notice. The failure is counted."""
    uid, before = await api.user(), await api.metric("filter_failures_total")
    async with (
        await api.stream({"fragile": "tea", "follow": uid}) as consumer,
        await api.stream([("rule", f"fragile:tea from:{uid}"), ("rule", f"coffee from:{uid}")]) as ruled,
        await api.stream({"track": "tea"}) as other,
    ):
        for text in ("tea", "tea boom", "tea again", "coffee"):
            await api.post(uid, text)
        await consumer.until(lambda c: len(c.of("post")) == 4)
        await ruled.until(lambda c: c.events and c.events[-1]["status"]["message"] == "coffee")
        await other.until(lambda c: len(c.of("post")) == 3)
        assert [post["status"]["message"] for post in ruled.of("post")] == ["tea", "coffee"]
        (warning,) = ruled.of("warning")
        assert (warning["code"], warning["filter"], warning["rule"]) == ("filter_disabled", "rule", "r1")
        assert other.of("warning") == []
        assert await api.metric("filter_failures_total") > before


async def test_a_filter_that_raises_while_parsing_is_a_refusal(api: Api) -> None:
    """For each exception of `parse`, the request gets a 400 that names the filter, as a parameter and in a rule."""
    token = mint(api.admin)
    for params, named in (
        ({"fragile": "broken"}, "fragile"),
        ({"fragile": "keyless"}, "fragile"),
        ({"rule": "fragile:broken"}, "rule"),
        ({"rule": "tea fragile:keyless"}, "rule"),
        ({"shouting": "tea"}, "shouting"),
    ):
        for path in ("/v1/stream", "/v1/events"):
            answer = await api.call("GET", path, token=token, params=params)
            assert answer.error == (400, "invalid_parameter", named), (params, answer)
    async with await api.stream({"fragile": "tea"}) as consumer:
        await consumer.until(lambda c: c.of("heartbeat"))


async def test_a_filter_that_raises_is_explained(api: Api) -> None:
    """`explain` shows the exception at the filter's part of the rule, and the reasons of all other parts."""
    body = {"rule": "coffee fragile:tea OR boom", "status": {"message": "boom coffee"}}
    answer = await api.call("POST", "/v1/rules/explain", token=mint(await api.user()), json=body)
    assert answer.status == 200, answer
    first, second = answer.json["parts"]["parts"]
    assert [part["why"] for part in first["parts"]] == ["the text has the word coffee", "it raised ZeroDivisionError"]
    assert (first["matched"], second["matched"]) == (False, True)


def _write(file: Path, word: str) -> None:
    if word:
        file.write_text(word)
    else:
        file.unlink()


async def test_a_filter_whose_keys_become_invalid_affects_no_other_stream(api: Api, word: Path) -> None:
    """After an unfollow, the server reads the filter's keys again.

    An exception there is not treated as an outage of Redis.
    """
    uid, friend = await api.user(), await api.user()
    redials = await api.metric("redis_reconnects_total")
    await api.follow(uid, friend)
    _write(word, "tea")
    async with (
        await api.stream({"follow": "@me", "fickle": "hints"}, uid=uid) as own,
        await api.stream({"track": "tea"}) as other,
    ):
        await api.post(friend, "coffee")
        await own.until(lambda c: c.of("post"))
        _write(word, "")
        await api.unfollow(uid, friend)
        await api.post(friend, "tea")
        await other.until(lambda c: c.of("post"))
        assert await api.metric("redis_reconnects_total") == redials
