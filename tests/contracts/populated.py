"""A little world behind a server: somebody who asks, others, and one of each thing that can be asked about."""

import uuid
from collections import defaultdict
from typing import Any

import requests

from tests.end_to_end.api import mint
from tests.end_to_end.server import Server

ALL = "read write stream firehose admin"

PASSWORD = "correct horse"

OF_THINGS = {
    "comments": "comments", "favorites": "statuses", "groups": "groups", "likes": "statuses", "lists": "lists",
    "messages": "messages", "reports": "reports", "statuses": "statuses", "talks": "talks",
}  # fmt: skip
"""The segment of a path before an id, and of what the id is; any other is a user's."""

MEMBERS = {"group": "groups", "in_reply_to": "statuses", "list": "lists", "origin": "statuses", "status": "statuses"}
"""A member of a body or query that holds an id, and of what; any other is a user's."""

Body = dict[str, Any]


class Populated:
    """What one operation is asked about: made anew for each, so that none finds what another has taken away."""

    def __init__(self, server: Server, session: requests.Session, path: str) -> None:
        self._server = server
        self._session = session
        self._path = path
        self.login = _fresh()
        self.uid = self._sign_up(self.login)
        self._ids: dict[str, list[str]] = defaultdict(list)
        self._ids["users"] = [self._sign_up(_fresh()) for _ in range(3)]
        self._populate()

    def headers(self) -> dict[str, str]:
        """With a token of its own, since the operation may end it."""
        return {"Authorization": f"Bearer {mint(self.uid, ALL)}"}

    def real(self, name: str) -> list[str]:
        """What exists and can stand for ``name``, which is in the path, a parameter or a member of a body."""
        texts = {"login": self.login, "tag": "world"}
        if name in texts:
            return [texts[name]]
        if f"{{{name}}}" not in self._path:
            return self._ids[MEMBERS.get(name, "users")]
        before = self._path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
        found = self._ids[OF_THINGS.get(before, "users")]
        return found[::-1] if name == "other" else found

    def bodies(self, method: str) -> list[Body]:
        """Bodies that are good for certain, where one that is made up has little chance."""
        return self._bodies().get((method, self._path), [])

    def queries(self, method: str) -> list[Body]:
        """The same of queries."""
        first = self._ids["users"][0]
        known: dict[tuple[str, str], list[Body]] = {
            ("GET", "/v1/users/available"): [{"login": "free"}],
            ("GET", "/v1/users"): [{"ids": [first, self.uid]}],
            ("GET", "/v1/statuses"): [{"ids": self._ids["statuses"]}],
            ("GET", "/v1/events"): [{"track": "hello"}, {"firehose": "true", "since": "-15m"}],
            ("GET", "/v1/timelines/home"): [{}, {"order": "importance"}, {"count": 2, "page": 2}],
        }
        return known.get((method, self._path), [{}])

    def _bodies(self) -> dict[tuple[str, str], list[Body]]:
        fresh, (first, *rest), status = _fresh(), self._ids["users"], self._ids["statuses"][0]
        new = {"login": fresh, "name": "Someone", "email": f"{fresh}@example.org", "password": PASSWORD}
        rich = {
            "message": f"Hello @{self.login}, #world $eur https://example.org/a", "lang": "en", "meta": {"a": 1},
            "place": {"name": "Berlin", "country": "DE", "box": [13.0, 52.3, 13.8, 52.7]},
            "location": {"lon": 13.4, "lat": 52.5}, "media": [{"url": "https://example.org/a.png", "type": "image"}],
        }  # fmt: skip
        return {
            ("POST", "/v1/users"): [new],
            ("PATCH", "/v1/users/me"): [{"name": "Other", "bio": "a\nb"}, {"bio": None}, {"protected": True}],
            ("POST", "/v1/users/me/following"): [{"follow": [first], "unfollow": rest}],
            ("POST", "/v1/sessions"): [{"login": self.login, "password": PASSWORD}],
            ("POST", "/v1/statuses"): [rich, {"origin": status}, {"message": "yes", "in_reply_to": status}],
            ("POST", "/v1/statuses/{id}/comments"): [{"message": "yes"}],
            ("PUT", "/v1/notifications/read"): [{"id": one} for one in self._ids["notifications"]],
            ("POST", "/v1/reports"): [{"user": first, "reason": "spam"}, {"user": first, "reason": "spam"}],
            ("PATCH", "/v1/admin/reports/{id}"): [{"outcome": "dismissed"}],
            ("POST", "/v1/lists"): [{"name": "films", "private": True}],
            ("PATCH", "/v1/lists/{id}"): [{"name": "plays"}],
            ("POST", "/v1/groups"): [{"name": "writers", "kind": "announcement"}],
            ("PATCH", "/v1/groups/{id}"): [{"name": "painters"}],
            ("POST", "/v1/talks"): [{"people": [first]}, {"people": [first, *rest], "name": "all"}],
            ("POST", "/v1/talks/{id}/messages"): [{"message": "hello"}],
            ("PUT", "/v1/talks/{id}/read"): [{"id": one} for one in self._ids["messages"]],
            ("POST", "/v1/admin/users"): [{"users": [{"login": fresh, "name": "Someone"}]}],
            ("POST", "/v1/events"): [{"track": "hello"}],
        }  # fmt: skip

    def _populate(self) -> None:
        """Who follows whom, what they say, and one of each noun."""
        first, second, third = self._ids["users"]
        if "/requests" in self._path:
            self._done("PATCH", "/v1/users/me", {"protected": True})
        for source, target in ((self.uid, first), (first, self.uid), (second, self.uid), (third, self.uid)):
            self._done("PUT", f"/v1/users/me/following/{target}", sub=source)
        root = self._made("statuses", "/v1/statuses", {"message": f"hello @{self.login} #world"}, sub=first)
        for body in ({"message": "yes", "in_reply_to": root}, {"message": "see", "origin": root}, {"origin": root}):
            self._made("statuses", "/v1/statuses", body)
        own = self._ids["statuses"].pop()
        self._ids["statuses"].insert(0, own)
        self._made("comments", f"/v1/statuses/{root}/comments", {"message": "yes"})
        self._made("lists", "/v1/lists", {"name": "books"})
        self._made("groups", "/v1/groups", {"name": "readers", "kind": "private"})
        talk = self._made("talks", "/v1/talks", {"people": [first, second]})
        self._made("messages", f"/v1/talks/{talk}/messages", {"message": "hello"})
        self._made("reports", "/v1/reports", {"user": first, "reason": "spam"})
        notifications = self._done("GET", "/v1/notifications")["notifications"]
        self._ids["notifications"] = [one["id"] for one in notifications]

    def _sign_up(self, login: str) -> str:
        body = {"login": login, "name": login, "email": f"{login}@example.org", "password": PASSWORD}
        uid: str = self._done("POST", "/v1/users", body)["id"]
        return uid

    def _made(self, noun: str, path: str, body: Body, *, sub: str = "") -> str:
        self._ids[noun].append(self._done("POST", path, body, sub=sub)["id"])
        return self._ids[noun][-1]

    def _done(self, method: str, path: str, body: Body | None = None, *, sub: str = "") -> Any:
        """The answer's value; all that is asked for here must succeed."""
        headers = {} if path == "/v1/users" else {"Authorization": f"Bearer {mint(sub or self.uid, ALL)}"}
        answer = self._session.request(method, self._server.address + path, json=body, headers=headers)
        assert answer.ok, (method, path, answer.text)
        return answer.json()


def _fresh() -> str:
    return f"u{uuid.uuid4().hex[:16]}"
