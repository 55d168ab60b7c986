"""Data for requests to a real server: a user, other users, and one of each thing that has a route."""

import json
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any

import requests

from tests.challenge_endpoint import challenge_endpoint
from tests.end_to_end.api import mint

ALL = "read write stream firehose admin"

PASSWORD = "correct horse"

CLOCK_LEAD_SECONDS = 5
"""The clock of an issuer may be ahead by ten seconds."""

OF_THINGS = {
    "comments": "comments", "favorites": "statuses", "groups": "groups", "likes": "statuses", "lists": "lists",
    "messages": "messages", "reports": "reports", "rules": "rules", "sessions": "sessions", "statuses": "statuses",
    "streams": "streams", "subscriptions": "subscriptions", "talks": "talks",
}  # fmt: skip
"""The noun of an id by the path segment before it. Other ids are users."""

MEMBERS = {"group": "groups", "in_reply_to": "statuses", "list": "lists", "origin": "statuses", "status": "statuses"}
"""The noun of an id by the name of its member or parameter. Other ids are users."""

Body = dict[str, Any]


class Populated:
    """The data for one operation. Each operation gets new data, because it may delete some."""

    def __init__(self, address: str, session: requests.Session, path: str) -> None:
        self._address = address
        self._session = session
        self._path = path
        self.login = _fresh()
        self.uid = self._sign_up(self.login)
        self.made: dict[str, list[str]] = {}

    def headers(self, sub: str = "") -> dict[str, str]:
        """A new token, because the operation may revoke it, or all that were issued up to now."""
        return {"Authorization": f"Bearer {mint(sub or self.uid, ALL, iat=int(time.time()) + CLOCK_LEAD_SECONDS)}"}

    def real(self, name: str) -> list[str]:
        """Existing values for ``name``, a part of the path, a parameter or a member of a body."""
        texts = {"login": self.login, "tag": "world", "path": "views/streams.js"}
        if name in texts:
            return [texts[name]]
        if f"{{{name}}}" not in self._path:
            return self.of(MEMBERS.get(name, "users"))
        before = self._path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
        found = self.of(OF_THINGS.get(before, "users"))
        return found[::-1] if name == "other" else found

    def bodies(self, method: str) -> list[Body]:
        """Bodies that must succeed, where a generated one rarely does."""
        known = BODIES.get((method, self._path))
        return [] if known is None else known(self)

    def queries(self, method: str) -> list[Body]:
        """Queries that must succeed."""
        known = QUERIES.get((method, self._path))
        return [{}] if known is None else known(self)

    def of(self, noun: str) -> list[str]:
        """The ids of a noun's things, created when first needed."""
        if noun not in self.made:
            self.made[noun] = getattr(self, f"_make_{noun}")()
        return self.made[noun]

    def _make_users(self) -> list[str]:
        """Create three authors who follow the user or request to.

        The user follows the first, who has the user on a list.
        """
        others = [self._sign_up(_fresh()) for _ in range(3)]
        if "/requests" in self._path:
            self.done("PATCH", "/v1/users/me", {"protected": True})
        for source, target in ((self.uid, others[0]), *((other, self.uid) for other in others)):
            self.done("PUT", f"/v1/users/me/following/{target}", sub=source)
        for author in (self.uid, *others):
            self._made("/v1/statuses", {"message": "hello"}, sub=author)
        kept = self._made("/v1/lists", {"name": "people"}, sub=others[0])
        self.done("PUT", f"/v1/lists/{kept}/members/{self.uid}", sub=others[0])
        return others

    def _make_statuses(self) -> list[str]:
        """Create a reply, a quote and a repost by the user, after their original by another user."""
        root = self._made("/v1/statuses", {"message": f"hello @{self.login} #world"}, sub=self.of("users")[0])
        bodies: list[Body] = [
            {"message": "yes", "in_reply_to": root},
            {"message": "see", "origin": root},
            {"origin": root},
        ]
        return [*(self._made("/v1/statuses", body) for body in bodies), root]

    def _make_comments(self) -> list[str]:
        return [self._made(f"/v1/statuses/{self.of('statuses')[-1]}/comments", {"message": "yes"})]

    def _make_lists(self) -> list[str]:
        made = self._made("/v1/lists", {"name": "books"})
        self.done("PUT", f"/v1/lists/{made}/members/{self.of('users')[0]}")
        return [made]

    def _make_groups(self) -> list[str]:
        made = self._made("/v1/groups", {"name": "readers", "kind": "private"})
        self._made("/v1/statuses", {"message": "hello", "group": made})
        return [made]

    def _make_talks(self) -> list[str]:
        talk = self._made("/v1/talks", {"people": self.of("users")[:2]})
        self._made(f"/v1/talks/{talk}/messages", {"message": "hello"})
        return [talk]

    def _make_messages(self) -> list[str]:
        return [self._made(f"/v1/talks/{self.of('talks')[0]}/messages", {"message": "hello"})]

    def _make_reports(self) -> list[str]:
        about: list[Body] = [{"user": self.of("users")[0]}, {"status": self.of("statuses")[-1]}]
        return [self._made("/v1/reports", {"reason": "spam", **one}) for one in about]

    def _make_rules(self) -> list[str]:
        made = self.done("POST", "/v1/rules", {"rules": [{"rule": "hello", "tag": "greeting"}, {"rule": "#world"}]})
        return [one["id"] for one in made["rules"]]

    def _make_subscriptions(self) -> list[str]:
        has_webhook = self._path.endswith(("/test", "/secret"))
        deliver = {"deliver": {"url": challenge_endpoint()}} if has_webhook else {}
        self.done("PUT", "/v1/subscriptions/work", {"parameters": {"track": "hello"}, **deliver})
        self.done("PUT", "/v1/subscriptions/crowd", {"parameters": {"track": "hello"}, "parts": 2})
        return ["work"]

    def _make_sessions(self) -> list[str]:
        self.done("POST", "/v1/sessions", {"login": self.login, "password": PASSWORD})
        return [one["id"] for one in self.done("GET", "/v1/sessions")["sessions"]]

    def _make_streams(self) -> list[str]:
        """Open a stream, which stays open as long as this object."""
        headers = {"Authorization": f"Bearer {mint(self.uid, ALL)}"}
        url = f"{self._address}/v1/stream?track=tea"
        response = self._session.get(url, headers=headers, stream=True)
        weakref.finalize(self, response.close)
        self._lines = response.iter_lines(chunk_size=1)
        return [str(json.loads(next(self._lines))["connection"])]

    def _make_notifications(self) -> list[str]:
        self.of("statuses")
        return [one["id"] for one in self.done("GET", "/v1/notifications")["notifications"]]

    def _sign_up(self, login: str) -> str:
        body = {"login": login, "name": login, "email": f"{login}@example.org", "password": PASSWORD}
        uid: str = self.done("POST", "/v1/users", body)["id"]
        return uid

    def _made(self, path: str, body: Body, *, sub: str = "") -> str:
        made: str = self.done("POST", path, body, sub=sub)["id"]
        return made

    def done(self, method: str, path: str, body: Body | None = None, *, sub: str = "") -> Any:
        """Send a request that must succeed. Returns the decoded answer."""
        headers = {} if path == "/v1/users" else {"Authorization": f"Bearer {mint(sub or self.uid, ALL)}"}
        answer = self._session.request(method, self._address + path, json=body, headers=headers)
        assert answer.ok, (method, path, answer.text)
        return answer.json()


def _fresh() -> str:
    return f"u{uuid.uuid4().hex[:16]}"


def _new_user(_: Populated) -> list[Body]:
    login = _fresh()
    return [{"login": login, "name": "Someone", "email": f"{login}@example.org", "password": PASSWORD}]


def _statuses(world: Populated) -> list[Body]:
    rich = {
        "message": f"Hello @{world.login}, #world $eur https://example.org/a", "lang": "en", "meta": {"a": 1},
        "place": {"name": "Berlin", "country": "DE", "box": [13.0, 52.3, 13.8, 52.7]},
        "location": {"lon": 13.4, "lat": 52.5}, "media": [{"url": "https://example.org/a.png", "type": "image"}],
    }  # fmt: skip
    root = world.of("statuses")[-1]
    in_group = {"message": "hello", "group": world.of("groups")[0]}
    return [rich, {"origin": root}, {"message": "yes", "in_reply_to": root}, in_group]


def _reports(world: Populated) -> list[Body]:
    of_user = {"user": world.of("users")[0], "reason": "spam"}
    return [of_user, of_user, {"status": world.of("statuses")[-1], "reason": "other", "note": "why"}]


def _questions(world: Populated) -> list[Body]:
    made_up = {"message": "yes @ada", "in_reply_to": world.of("statuses")[-1], "author": {"login": "bob", "bio": "tea"}}
    return [{"rule": "(hello OR yes) -is:repost", "status": one} for one in (*world.of("statuses"), made_up)]


RULES = {"rules": [{"rule": "tea", "tag": "a"}, {"rule": "milk -#world"}]}

Known = dict[tuple[str, str], Callable[[Populated], list[Body]]]

BODIES: Known = {
    ("POST", "/v1/users"): _new_user,
    ("PATCH", "/v1/users/me"): lambda _: [{"name": "Other", "bio": "a\nb"}, {"bio": None}, {"protected": True}],
    ("DELETE", "/v1/users/me"): lambda _: [{"password": PASSWORD}],
    ("POST", "/v1/users/me/following"): lambda w: [{"follow": w.of("users")[1:], "unfollow": w.of("users")[:1]}],
    ("POST", "/v1/sessions"): lambda w: [{"login": w.login, "password": PASSWORD}],
    ("PUT", "/v1/users/me/password"): lambda _: [{"password": PASSWORD, "new_password": PASSWORD}],
    ("POST", "/v1/statuses"): _statuses,
    ("PATCH", "/v1/statuses/{id}"): lambda w: [{"message": f"so @{w.login} #sky"}, {"meta": {"a": 1}, "lang": "fr"}],
    ("POST", "/v1/statuses/{id}/comments"): lambda _: [{"message": "yes"}],
    ("PUT", "/v1/notifications/read"): lambda w: [{"id": one} for one in w.of("notifications")],
    ("POST", "/v1/reports"): _reports,
    ("PATCH", "/v1/admin/reports/{id}"): lambda _: [{"outcome": "removed"}, {"outcome": "dismissed"}],
    ("POST", "/v1/lists"): lambda _: [{"name": "films", "private": True}],
    ("PATCH", "/v1/lists/{id}"): lambda _: [{"name": "plays"}],
    ("POST", "/v1/groups"): lambda _: [{"name": "writers", "kind": "announcement"}],
    ("PATCH", "/v1/groups/{id}"): lambda _: [{"name": "painters"}],
    ("POST", "/v1/talks"): lambda w: [{"people": w.of("users")[:1]}, {"people": w.of("users"), "name": "all"}],
    ("POST", "/v1/talks/{id}/messages"): lambda _: [{"message": "hello"}],
    ("PUT", "/v1/talks/{id}/read"): lambda w: [{"id": one} for one in w.of("messages")],
    ("POST", "/v1/rules"): lambda _: [{**RULES, "dry_run": True}, RULES],
    ("PUT", "/v1/rules/{id}"): lambda _: [{"rule": "milk", "dry_run": True}, {"rule": "milk", "tag": "b"}],
    ("POST", "/v1/rules/delete"): lambda w: [{"ids": [*w.of("rules"), "7"], "dry_run": d} for d in (True, False)],
    ("POST", "/v1/rules/explain"): _questions,
    ("POST", "/v1/rules/preview"): lambda _: [
        {"rule": "hello there", "minutes": 5, "near_misses": near} for near in (True, False)
    ],
    ("POST", "/v1/rules/counts"): lambda _: [{"rules": [{"rule": "hello"}], "from": "-1h"}],
    ("PUT", "/v1/subscriptions/{subscription}"): lambda _: [{"parameters": {"track": "tea"}, "since": "-1m"}],
    ("POST", "/v1/subscriptions/{subscription}/ack"): lambda _: [{"cursor": "0-0.0"}],
    ("POST", "/v1/admin/users"): lambda _: [{"users": [{"login": _fresh(), "name": "Someone"}]}],
    ("POST", "/v1/events"): lambda _: [{"track": "hello"}],
}

QUERIES: Known = {
    ("GET", "/v1/users/available"): lambda _: [{"login": "free"}],
    ("GET", "/v1/users/search"): lambda w: [{"q": w.login[:5]}],
    ("GET", "/v1/users/suggested"): lambda w: [{"count": len(w.of("users"))}],
    ("GET", "/v1/users"): lambda w: [{"ids": [*w.of("users"), w.uid]}],
    ("GET", "/v1/statuses"): lambda w: [{"ids": w.of("statuses")}],
    ("GET", "/v1/notifications"): lambda w: [{"count": len(w.of("notifications"))}],
    ("GET", "/v1/rules"): lambda w: [{}, {"ids": w.of("rules")}],
    ("GET", "/v1/events"): lambda _: [{"track": "hello"}, {"firehose": "true", "since": "-15m"}],
    ("PUT", "/v1/users/me/following/{id}"): lambda w: [{"list": w.of("lists")[0]}, {}],
    ("DELETE", "/v1/users/me/following/{id}"): lambda w: [{"list": w.of("lists")[0]}, {}],
    ("GET", "/v1/timelines/home"): lambda w: [{"count": len(w.of("statuses"))}, {"order": "importance"}, {"page": 2}],
}
