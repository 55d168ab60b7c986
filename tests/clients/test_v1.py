"""Unchanged clients of Twitter's v1.1 on the real server."""

from datetime import datetime
from typing import Any

import pytest

from tests.clients.venvs import client
from tests.end_to_end.api import Api, mint
from tests.end_to_end.people import word
from tests.end_to_end.server import Server
from tests.program import Program
from tests.tls import TlsProxy

pytestmark = pytest.mark.extended


async def heard(program: Program, message: dict[str, Any], times: int) -> None:
    """Wait until the program has printed ``message`` so many times."""
    while program.said.count(message) < times:
        await program._listen(str(message))


async def written(api: Api, uid: str, term: str, friend: dict[str, Any]) -> dict[str, Any]:
    """Post a status with every kind of entity, a location, a place and media."""
    message = f"{term} 😍 & #tea for @{friend['login']} $TEA http://tea.com/{term}"
    return await api.post(
        uid, message, lang="en", location={"lon": 1.5, "lat": 2.5},
        place={"name": "Tea house", "country": "gb", "box": [1.0, 2.0, 3.0, 4.0]},
        media=[{"type": "image", "url": "https://a.example/1.png"}],
    )  # fmt: skip


def seconds(iso: str) -> int:
    return int(datetime.fromisoformat(iso).timestamp())


async def test_python_twitter_reads_a_filtered_stream(server: Server, api: Api) -> None:
    """Statuses, reposts and quotes become the library's objects. Deletes and blank lines arrive too."""
    bob, term = await api.sign_up(word()), word()
    ann = await api.user()
    await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"name": "Ann A"})
    await api.follow(bob["id"], ann)
    arguments = ("filter", f"track=nobody,{term}", f"follow={ann}", "languages=en,und", "filter_level=low")
    async with client("python-twitter", "python_twitter_v1.py", server.address, mint(ann), *arguments) as program:
        assert await program.hear("connected") == 200
        await heard(program, {"alive": True}, 3)
        first = await written(api, bob["id"], term, bob)
        assert await program.hear(first["message"]) == {
            "id": int(first["id"]),
            "created": seconds(first["posted"]),
            "user": [int(bob["id"]), bob["login"], bob["login"], 0],
            "hashtags": ["tea"],
            "mentions": [[int(bob["id"]), bob["login"]]],
            "urls": [f"http://tea.com/{term}"],
            "media": [["photo", "https://a.example/1.png"]],
            "coordinates": {"type": "Point", "coordinates": [1.5, 2.5]},
            "place": "Tea house",
            "reply": [None, None, None],
            "lang": "en",
            "repeated": None,
            "quoted": None,
        }
        answer = await api.post(ann, "well", in_reply_to=first["id"])
        told = await program.hear("well")
        assert (told["reply"], told["user"]) == (
            [int(first["id"]), int(bob["id"]), bob["login"]], [int(ann), answer["login"], "Ann A", 1],
        )  # fmt: skip
        await api.post(ann, "", origin=first["id"])
        told = await program.hear(f"RT @{bob['login']}: {first['message']}")
        assert told["repeated"] == [int(first["id"]), first["message"], bob["login"]]
        await api.post(ann, "so true", origin=first["id"])
        assert (await program.hear("so true"))["quoted"] == first["message"]
        await api.delete(bob["id"], first["id"])
        assert (await program.hear("delete"))["status"]["id"] == int(first["id"])


async def test_python_twitter_receives_the_disconnect_notice(server: Server, api: Api) -> None:
    """The last message before the end of the sample gives the reason."""
    token = mint(await api.user())
    async with client("python-twitter", "python_twitter_v1.py", server.address, token, "sample") as program:
        assert await program.hear("connected") == 200
        await api.done("DELETE", "/v1/sessions", token=token)
        assert (await program.hear("disconnect"))["code"] == 6
        assert await program.end() == 0


async def test_python_twitter_reports_the_reason_of_a_refusal(server: Server, api: Api) -> None:
    """The text of the refusal is the library's error."""
    arguments = (mint(api.admin), "filter", "locations=170,-20,-170,20")
    async with client("python-twitter", "python_twitter_v1.py", server.address, *arguments) as program:
        assert await program.hear("connected") == 406
        assert "Bounding box is invalid: 170, -20, -170, 20." in await program.hear("refused")


async def test_tweepy_3_reads_lengths(tls: TlsProxy, api: Api) -> None:
    """The library tweepy 3 requests `delimited=length` over TLS, and takes anything but a length for an error."""
    bob, term = await api.sign_up(word()), word()
    asked = ("filter", f"track={term}", "locations=1,2,3,4")
    async with client("tweepy3", "tweepy3_v1.py", tls.netloc, mint(api.admin), *asked, ca=tls.ca) as program:
        assert await program.hear("connected")
        await heard(program, {"alive": True}, 3)
        first = await written(api, bob["id"], term, bob)
        assert await program.hear(first["message"]) == {
            "id": int(first["id"]),
            "created": datetime.fromisoformat(first["posted"]).replace(microsecond=0, tzinfo=None).isoformat(),
            "source": "web",
            "user": [int(bob["id"]), bob["login"], bob["login"], 0],
            "signup": datetime.fromisoformat(bob["signup"]).replace(microsecond=0, tzinfo=None).isoformat(),
            "hashtags": ["tea"],
            "mentions": [[int(bob["id"]), bob["login"]]],
            "coordinates": [1.5, 2.5],
            "place": ["Tea house", [1.0, 2.0], [3.0, 4.0]],
            "repeated": None,
        }
        await api.post(api.admin, "", origin=first["id"])
        told = await program.hear(f"RT @{bob['login']}: {first['message']}")
        assert told["repeated"] == [int(first["id"]), first["message"], bob["login"]]
        await api.delete(bob["id"], first["id"])
        assert await program.hear("deleted") == [int(first["id"]), int(bob["id"])]
        assert not any("exception" in message for message in program.said)


async def test_tweepy_3_receives_the_disconnect_notice(tls: TlsProxy, api: Api) -> None:
    """The library tweepy 3 sends POST even for the sample. The disconnect notice comes with its length."""
    token = mint(await api.user())
    async with client("tweepy3", "tweepy3_v1.py", tls.netloc, token, "sample", ca=tls.ca) as program:
        assert await program.hear("connected")
        await api.done("DELETE", "/v1/sessions", token=token)
        assert (await program.hear("disconnected"))["code"] == 6


@pytest.mark.parametrize(
    ("name", "program", "asked"), [("tweepy3", "tweepy3_v1.py", "track="), ("twitter", "twitter_v1.py", "track=")]
)
async def test_a_refusal_is_a_number_to_them(tls: TlsProxy, api: Api, name: str, program: str, asked: str) -> None:
    """The status is that of v1.1, for a request without filters and for an unknown user."""
    async with client(name, program, tls.netloc, mint(api.admin), "filter", asked, ca=tls.ca) as running:
        assert await running.hear("refused") == 406
    async with client(name, program, tls.netloc, "nobody", "filter", "track=tea", ca=tls.ca) as running:
        assert await running.hear("refused") == 401


async def test_sixohsix_twitter_reads_a_filtered_stream(tls: TlsProxy, api: Api) -> None:
    """Its credentials are in the form. It parses chunks by itself, and hangs up if no blank lines come."""
    bob, term = await api.sign_up(word()), word()
    async with client(
        "twitter", "twitter_v1.py", tls.netloc, mint(api.admin), "filter", f"track={term}", ca=tls.ca
    ) as program:
        assert await program.hear("connected")
        await heard(program, {"timeout": True}, 6)
        first = await written(api, bob["id"], term, bob)
        assert await program.hear("text") == first["message"]
        assert (await program.hear("user"))["screen_name"] == bob["login"]
        assert (await program.hear("entities"))["hashtags"] == first["entities"]["hashtags"]
        await api.delete(bob["id"], first["id"])
        assert (await program.hear("delete"))["status"]["id_str"] == first["id"]
        assert not any("hangup" in message for message in program.said)
