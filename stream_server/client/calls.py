# mypy: disable-error-code="empty-body"
"""The calls of both clients that have a single answer, each declared by its route, its arguments and its answer.

Those that need more than that are functions. All raise the exceptions of ``stream_server.client.errors``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack
from urllib.parse import quote as quote_part

from stream_server.client.call import Call, Page, PageOptions, WriteOptions, call
from stream_server.client.circle_calls import CircleCalls
from stream_server.client.errors import OutcomeUnknown, RequestRefused
from stream_server.client.rule_calls import RuleCalls
from stream_server.client.subscription_calls import SubscriptionCalls
from stream_server.client.transport import RequestOptions
from stream_server.wire.objects import (
    Comment,
    FollowState,
    LikeCount,
    ListedUser,
    Notification,
    OwnUser,
    Session,
    Status,
    Talk,
    TalkMessage,
    User,
)

MAX_USERS_PER_CALL = 1000
"""Most accounts that :meth:`Calls.create_users` creates in one request; the server accepts no more."""


class Calls(CircleCalls, RuleCalls, SubscriptionCalls):
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

    @Call
    async def edit(self: Any, status_id: str, changes: Mapping[str, Any], **options: Unpack[WriteOptions]) -> Status:
        """Edit one of the caller's own statuses, while the server allows it.

        ``changes`` has new members of its body, such as ``{"message": "at last", "place": None}``: None clears one, and
        the others stay as they are.
        """
        path = f"/v1/statuses/{quote_part(status_id, safe='')}"
        return await self._transport.call(Status, "PATCH", path, body=dict(changes), **options)  # type: ignore[no-any-return]  # `self` is any client

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

    @Call
    async def delete_account(self: Any, password: str | None = None, *, token: str | None = None) -> None:
        """Delete the caller's account and all that it wrote; this cannot be undone. Repeating has no effect.

        An account that has a password needs it.
        """
        body = {} if password is None else {"password": password}
        try:
            await self._transport.request("DELETE", "/v1/users/me", body=body, token=token)
        except (RequestRefused, OutcomeUnknown) as error:
            refused = error.last if isinstance(error, OutcomeUnknown) else error
            if not isinstance(refused, RequestRefused) or refused.code != "account_deleted":
                raise

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

