# mypy: disable-error-code="empty-body"
"""The calls of both clients that have a single answer, each declared by its route, its arguments and its answer.

Those that need more than that are functions. All raise the exceptions of ``stream_server.client.errors``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from stream_server.client.call import Call, Page, PageOptions, WriteOptions, call
from stream_server.client.transport import RequestOptions, decode_answer
from stream_server.wire.objects import (
    Comment,
    FollowState,
    Group,
    GroupKind,
    LikeCount,
    List,
    ListedUser,
    Notification,
    OwnUser,
    RuleAnswer,
    RuleExplanation,
    RulePreviewResult,
    Session,
    Status,
    Talk,
    TalkMessage,
    User,
)

MAX_USERS_PER_CALL = 1000
"""Most accounts that :meth:`Calls.create_users` creates in one request; the server accepts no more."""


class Calls:
    """The calls of both clients. ``docs/reference/routes.md`` tells what each route does."""

    @Call
    async def request(self: Any, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """Send any request to the API; return the decoded JSON of the answer, or None if its body is empty.

        ``path`` is the path below the server's URL, such as ``/v1/statuses``.
        """
        return await self._transport.request(method, path, **options)

    @Call
    async def post(
        self: Any,
        message: str,
        *,
        in_reply_to: str | None = None,
        origin: str | None = None,
        group: str | None = None,
        lang: str | None = None,
        location: tuple[float, float] | None = None,
        place: str | None = None,
        body: dict[str, Any] | None = None,
        **options: Unpack[WriteOptions],
    ) -> Status:
        """Post a status.

        Args:
            message: The text; empty for a repost.
            in_reply_to: The id of the status that it answers.
            origin: The id of the status that it reposts or, with a message, quotes.
            group: The id of the group in which to post.
            lang: A BCP 47 tag; by default the server detects the language.
            location: Longitude and latitude in degrees.
            place: The name of a place.
            body: Further members of the request's body, such as ``media`` and ``meta``.
            options: ``token`` and ``key``, as for every write.
        """
        given = {
            "in_reply_to": in_reply_to, "origin": origin, "group": group, "lang": lang,
            "location": None if location is None else {"lon": location[0], "lat": location[1]},
            "place": None if place is None else {"name": place},
        }  # fmt: skip
        members = {name: value for name, value in given.items() if value is not None}
        members = {"message": message, **members, **(body or {})}
        return await self._transport.call(Status, "POST", "/v1/statuses", body=members, **options)  # type: ignore[no-any-return]  # `self` is any client

    @call("POST", "statuses", body={"message": "message", "in_reply_to": "status_id"})
    def reply(self, status_id: str, message: str, **options: Unpack[WriteOptions]) -> Status:
        """Answer a status."""

    @call("POST", "statuses", body={"origin": "status_id"})
    def repost(self, status_id: str, **options: Unpack[WriteOptions]) -> Status:
        """Repost a status. Deleting the returned status undoes the repost."""

    @call("POST", "statuses", body={"message": "message", "origin": "status_id"})
    def quote(self, status_id: str, message: str, **options: Unpack[WriteOptions]) -> Status:
        """Quote a status: repost it with a message of the caller."""

    @call("DELETE", "statuses/{status_id}")
    def delete(self, status_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete one of the caller's own statuses."""

    @call("GET", "statuses/{status_id}")
    def status(self, status_id: str) -> Status:
        """Read one status."""

    @call("PUT", "users/me/likes/{status_id}")
    def like(self, status_id: str, **options: Unpack[WriteOptions]) -> LikeCount:
        """Like a status. Repeating has no effect."""

    @call("DELETE", "users/me/likes/{status_id}")
    def unlike(self, status_id: str, **options: Unpack[WriteOptions]) -> LikeCount:
        """Take a like back. Repeating has no effect."""

    @call("PUT", "users/me/favorites/{status_id}")
    def favorite(self, status_id: str, **options: Unpack[WriteOptions]) -> None:
        """Keep a status among the caller's favorites, which other users do not see."""

    @call("DELETE", "users/me/favorites/{status_id}")
    def unfavorite(self, status_id: str, **options: Unpack[WriteOptions]) -> None:
        """Remove a status from the caller's favorites."""

    @call("POST", "statuses/{status_id}/comments")
    def comment(self, status_id: str, message: str, **options: Unpack[WriteOptions]) -> Comment:
        """Comment on a status."""

    @call("DELETE", "comments/{comment_id}")
    def delete_comment(self, comment_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a comment, as the author of the comment or of the status."""

    @call("GET", "statuses/{status_id}/comments", "comments")
    def comments(self, status_id: str, **options: Unpack[PageOptions]) -> Page[Comment]:
        """Read the comments on a status, the oldest first."""

    @call("GET", "timelines/home", "statuses")
    def home(self, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the caller's home timeline: own posts, and those of the users whom the caller follows."""

    @call("GET", "users/me/mentions", "statuses")
    def mentions(self, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the recent statuses that mention the caller."""

    @call("GET", "users/me/favorites", "statuses")
    def favorites(self, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the caller's favorites."""

    @call("GET", "users/{user_id}/statuses", "statuses")
    def posts(self, user_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses of a user."""

    @call("POST", "users", token="")
    def sign_up(self, login: str, name: str, email: str, password: str) -> OwnUser:
        """Create a user. The call needs no token, and the client keeps none."""

    @Call
    async def log_in(self: Any, login: str, password: str) -> Session:
        """Log in with a login or an e-mail address. The client keeps no token: give it ``token=LogIn(…)`` for that."""
        body = {"email" if "@" in login else "login": login, "password": password}
        return await self._transport.call(Session, "POST", "/v1/sessions", body=body, token="")  # type: ignore[no-any-return]  # see post

    @call("GET", "users/me")
    def me(self, *, token: str | None = None) -> OwnUser:
        """Read the user to whom the token belongs."""

    @call("GET", "users/{user_id}")
    def user(self, user_id: str) -> User:
        """Read one user."""

    @call("GET", "users/by-login/{login}")
    def user_by_login(self, login: str) -> User:
        """Find one user by login; letter case does not matter. Raises RequestRefused (404) if there is none."""

    @call("PATCH", "users/me")
    def change_profile(
        self,
        *,
        name: str | None = None,
        bio: str | None = None,
        url: str | None = None,
        place: str | None = None,
        lang: str | None = None,
        protected: bool | None = None,
        **options: Unpack[WriteOptions],
    ) -> OwnUser:
        """Change members of the caller's profile; None leaves a member as it is."""

    @call("PUT", "users/me/following/{user_id}")
    def follow(self, user_id: str, **options: Unpack[WriteOptions]) -> FollowState:
        """Follow a user, or ask a protected one. Repeating has no effect."""

    @call("DELETE", "users/me/following/{user_id}")
    def unfollow(self, user_id: str, **options: Unpack[WriteOptions]) -> FollowState:
        """Stop following a user, or withdraw the request. Repeating has no effect."""

    @call("GET", "users/{user_id}/followers", "users")
    def followers(self, user_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the followers of a user."""

    @call("GET", "users/{user_id}/following", "users")
    def following(self, user_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the users whom a user follows."""

    @call("PUT", "users/me/blocks/{user_id}")
    def block(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """Block a user: the two no longer see or follow each other."""

    @call("DELETE", "users/me/blocks/{user_id}")
    def unblock(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """End a block."""

    @call("PUT", "users/me/mutes/{user_id}")
    def mute(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """Mute a user, who does not learn of it."""

    @call("DELETE", "users/me/mutes/{user_id}")
    def unmute(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """End a mute."""

    @Call
    async def create_users(self: Any, users: Sequence[tuple[str, str]], *, token: str | None = None) -> dict[str, str]:
        """Create a user for each pair of login and name. Return a dict from lower-case login to user id.

        A user whose login exists already is not changed, and is in the dict too. The token needs the scope ``admin``.
        """
        ids: dict[str, str] = {}
        for start in range(0, len(users), MAX_USERS_PER_CALL):
            batch = [{"login": login, "name": name} for login, name in users[start : start + MAX_USERS_PER_CALL]]
            answer = await self._transport.request("POST", "/v1/admin/users", body={"users": batch}, token=token)
            ids.update({str(user["login"]).lower(): str(user["id"]) for user in answer["users"]})
        return ids

    @call("POST", "lists")
    def create_list(
        self, name: str, *, description: str = "", private: bool = False, **options: Unpack[WriteOptions]
    ) -> List:
        """Create an empty list."""

    @call("DELETE", "lists/{list_id}")
    def delete_list(self, list_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a list of the caller, and its timeline."""

    @call("PUT", "lists/{list_id}/members/{user_id}")
    def add_to_list(self, list_id: str, user_id: str, **options: Unpack[WriteOptions]) -> List:
        """Add a user to a list of the caller. Repeating has no effect."""

    @call("DELETE", "lists/{list_id}/members/{user_id}")
    def remove_from_list(self, list_id: str, user_id: str, **options: Unpack[WriteOptions]) -> List:
        """Remove a user from a list of the caller. Repeating has no effect."""

    @call("GET", "users/{user_id}/lists", "lists")
    def lists(self, user_id: str, **options: Unpack[PageOptions]) -> Page[List]:
        """Read the lists of a user; only their owner sees private ones."""

    @call("GET", "lists/{list_id}/members", "users")
    def list_members(self, list_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the members of a list, the last added first."""

    @call("GET", "lists/{list_id}/statuses", "statuses")
    def list_posts(self, list_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses of the members of a list."""

    @call("POST", "groups")
    def create_group(
        self, name: str, kind: GroupKind, *, description: str = "", **options: Unpack[WriteOptions]
    ) -> Group:
        """Create a group; the caller owns it and is its first member."""

    @call("DELETE", "groups/{group_id}")
    def delete_group(self, group_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a group of the caller, with all memberships."""

    @call("PUT", "groups/{group_id}/members/me")
    def join_group(self, group_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Join a group."""

    @call("DELETE", "groups/{group_id}/members/me")
    def leave_group(self, group_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Leave a group."""

    @call("PUT", "groups/{group_id}/members/{user_id}")
    def add_to_group(self, group_id: str, user_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Add a user to a private group of the caller, or invite a user who does not follow the caller."""

    @call("DELETE", "groups/{group_id}/members/{user_id}")
    def remove_from_group(self, group_id: str, user_id: str, **options: Unpack[WriteOptions]) -> Group:
        """Remove a user from a group of the caller."""

    @call("GET", "users/me/groups", "groups")
    def groups(self, **options: Unpack[PageOptions]) -> Page[Group]:
        """Read the groups of which the caller is a member."""

    @call("GET", "groups/{group_id}/members", "users")
    def group_members(self, group_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the members of a group."""

    @call("GET", "groups/{group_id}/statuses", "statuses")
    def group_posts(self, group_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses posted in a group."""

    @call("POST", "talks")
    def open_talk(self, people: Sequence[str], *, name: str | None = None, **options: Unpack[WriteOptions]) -> Talk:
        """Open a talk with these user ids. Two users have one talk: for them the existing one is returned."""

    @call("POST", "talks/{talk_id}/messages")
    def send(self, talk_id: str, message: str, **options: Unpack[WriteOptions]) -> TalkMessage:
        """Send a message in a talk."""

    @call("PUT", "talks/{talk_id}/read", body={"id": "message_id"})
    def mark_talk_read(self, talk_id: str, message_id: str, **options: Unpack[WriteOptions]) -> None:
        """Mark the messages of a talk as read, up to this one."""

    @call("GET", "talks", "talks")
    def talks(self, **options: Unpack[PageOptions]) -> Page[Talk]:
        """Read the caller's talks, the one with the latest message first."""

    @call("GET", "talks/{talk_id}/messages", "messages")
    def messages(self, talk_id: str, **options: Unpack[PageOptions]) -> Page[TalkMessage]:
        """Read the messages of a talk, the newest first."""

    @call("GET", "notifications", "notifications")
    def notifications(self, **options: Unpack[PageOptions]) -> Page[Notification]:
        """Read the caller's notifications. The page says how many are unread."""

    @call("PUT", "notifications/read", body={"id": "notification_id"})
    def mark_notifications_read(self, notification_id: str, **options: Unpack[WriteOptions]) -> None:
        """Mark the notifications as read, up to this one."""

    @call("GET", "rules", "rules")
    def rules(self) -> tuple[RuleAnswer, ...]:
        """Read the caller's saved rules, the oldest first. ``stream(rules="saved")`` uses them."""

    @Call
    async def save_rules(
        self: Any,
        rules: Sequence[str] | Mapping[str, str],
        *,
        dry_run: bool = False,
        **options: Unpack[WriteOptions],
    ) -> tuple[RuleAnswer, ...]:
        """Save rules, or a mapping from tags to rules: all of them, or none if one is wrong.

        A dry run only checks them. A mistake raises RequestRefused with the place in the rule.
        """
        pairs = rules.items() if isinstance(rules, Mapping) else (("", rule) for rule in rules)
        new = [{"rule": rule} | ({"tag": tag} if tag else {}) for tag, rule in pairs]
        body = {"rules": new, "dry_run": dry_run}
        answer = await self._transport.request_raw("POST", "/v1/rules", body=body, **options)
        return decode_answer(answer, tuple[RuleAnswer, ...], "rules")  # type: ignore[no-any-return]  # a type made at run time

    @call("POST", "rules/delete", "deleted")
    def delete_rules(self, ids: Sequence[str], **options: Unpack[WriteOptions]) -> tuple[str, ...]:
        """Delete saved rules. Return the ids of the deleted ones, without the ids that no rule has."""

    @call("POST", "rules/explain", is_read=True)
    def explain_rule(self, rule: str, status: str | Mapping[str, Any]) -> RuleExplanation:
        """Tell part by part why a rule matches a status, or why not. ``status`` is an id, or a made-up status."""

    @call("POST", "rules/preview", is_read=True)
    def preview_rule(self, rule: str, minutes: int) -> RulePreviewResult:
        """Count the statuses of the last minutes (at most a day) that a rule matches, with examples."""
