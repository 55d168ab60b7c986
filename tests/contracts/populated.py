"""A little world behind a server: somebody who asks, others, and one of each thing that can be asked about."""

import uuid
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import requests

from stream_server.web import routes
from tests.end_to_end.api import mint
from tests.end_to_end.server import Server

ALL = "read write stream firehose admin"

PASSWORD = "correct horse"

THINGS = ("statuses", "comments", "lists", "groups", "talks", "messages", "reports")
"""Nouns that have ids of their own; every other id is a user's."""

MEMBERS = {
    "in_reply_to": "statuses", "origin": "statuses", "status": "statuses", "list": "lists", "group": "groups",
    "comment": "comments", "talk": "talks",
}  # fmt: skip
"""A parameter or member that holds an id, and of what."""

OF_STATUSES = ("likes", "favorites")
"""Segments of paths after which there is the id of a status."""


class Populated:
    """What one operation is asked about: made anew for each, so that none finds what another has taken away."""

    def __init__(self, server: Server, session: requests.Session) -> None:
        self._server = server
        self._session = session
        self._served = {(row.method, row.path) for row in routes.TABLE}
        self.login = f"u{uuid.uuid4().hex[:16]}"
        self.uid = self._sign_up(self.login)
        self.ids: dict[str, list[str]] = defaultdict(list)
        self.ids["users"] = [self._sign_up(f"u{uuid.uuid4().hex[:16]}") for _ in range(3)]
        self._statuses()
        self._others()

    def headers(self) -> dict[str, str]:
        """With a token of its own, since the operation may end it."""
        return {"Authorization": f"Bearer {mint(self.uid, ALL)}"}

    def of(self, path: str, name: str) -> list[str]:
        """Ids that can stand for ``name``, a member or a parameter of ``path``."""
        if f"{{{name}}}" not in path:
            return self.ids[MEMBERS.get(name, "users")]
        before = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
        noun = "statuses" if before in OF_STATUSES else before
        return self.ids[noun if noun in THINGS else "users"]

    def bodies(self) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
        """Bodies that are good for certain, where one that is made up has little chance."""
        fresh = f"u{uuid.uuid4().hex[:16]}"
        new = {"login": fresh, "name": "Someone", "email": f"{fresh}@example.org", "password": PASSWORD}
        place = {"name": "Berlin", "country": "DE", "box": [13.0, 52.3, 13.8, 52.7]}
        status = {
            "message": f"Hello @{self.login}, #world $eur https://example.org/a", "place": place, "lang": "en",
            "location": {"lon": 13.4, "lat": 52.5}, "media": [{"url": "https://example.org/a.png", "type": "image"}],
            "meta": {"a": 1},
        }  # fmt: skip
        first, *rest = self.ids["users"]
        return {
            ("POST", "/v1/users"): [new],
            ("POST", "/v1/sessions"): [{"login": self.login, "password": PASSWORD}],
            ("POST", "/v1/statuses"): [
                status, {"origin": self.ids["statuses"][0]}, {"message": "yes", "in_reply_to": self.ids["statuses"][0]}
            ],
            ("POST", "/v1/users/me/following"): [{"follow": [first], "unfollow": rest}],
            ("POST", "/v1/admin/users"): [{"users": [{"login": f"{fresh[:-1]}_", "name": "Someone"}]}],
            ("POST", "/v1/talks"): [{"people": [first]}, {"people": self.ids["users"], "name": "all"}],
            ("POST", "/v1/reports"): [{"user": first, "reason": "spam"}],
            ("POST", "/v1/events"): [{"track": "hello"}],
        }  # fmt: skip

    def queries(self) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
        """The same of queries."""
        return {
            ("GET", "/v1/users/available"): [{"login": "free"}],
            ("GET", "/v1/events"): [{"track": "hello"}, {"firehose": "true", "since": "-15m"}],
        }

    def _statuses(self) -> None:
        """One's own and another's, a reply, a quote and a repost; and who follows whom."""
        first, second, _ = self.ids["users"]
        root = self._made("/v1/statuses", {"message": f"hello @{self.login} #world"}, sub=first)
        assert root is not None
        for body in ({"message": "yes", "in_reply_to": root}, {"message": "see", "origin": root}, {"origin": root}):
            self.ids["statuses"].append(self._made("/v1/statuses", body) or "")
        self.ids["statuses"].append(root)
        for source, target in ((self.uid, first), (first, self.uid), (second, self.uid)):
            self._call("PUT", "/v1/users/me/following/{id}", source, target)

    def _others(self) -> None:
        """One of each other noun, as far as it is served."""
        first, second, _ = self.ids["users"]
        status = self.ids["statuses"][-1]
        wanted: list[tuple[str, str, dict[str, Any]]] = [
            ("lists", "/v1/lists", {"name": "books"}),
            ("groups", "/v1/groups", {"name": f"g{uuid.uuid4().hex[:12]}", "kind": "public"}),
            ("talks", "/v1/talks", {"people": [first, second]}),
            ("comments", "/v1/statuses/{id}/comments", {"message": "yes"}),
            ("messages", "/v1/talks/{id}/messages", {"message": "hello"}),
            ("reports", "/v1/reports", {"user": first, "reason": "spam"}),
        ]
        for noun, path, body in wanted:
            if ("POST", path) in self._served:
                within = status if path.startswith("/v1/statuses") else self.ids["talks"][0] if "talks/" in path else ""
                made = self._made(path.replace("{id}", within), body)
                self.ids[noun] += [made] if made else []

    def _sign_up(self, login: str) -> str:
        body = {"login": login, "name": login, "email": f"{login}@example.org", "password": PASSWORD}
        answer = self._session.post(f"{self._server.address}/v1/users", json=body)
        assert answer.status_code == 201, answer.text
        uid: str = answer.json()["id"]
        return uid

    def _made(self, path: str, body: dict[str, Any], sub: str = "") -> str | None:
        """The id of a new thing; what is refused is found out by the operation that makes such things."""
        headers = {"Authorization": f"Bearer {mint(sub or self.uid, ALL)}"}
        answer = self._session.post(self._server.address + path, json=body, headers=headers)
        return answer.json().get("id") if answer.ok else None

    def _call(self, method: str, path: str, sub: str, target: str) -> None:
        headers = {"Authorization": f"Bearer {mint(sub, ALL)}"}
        url = self._server.address + path.replace("{id}", target)
        assert self._session.request(method, url, headers=headers).ok, path
