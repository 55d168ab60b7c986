"""People: accounts, sessions, profiles, follows, blocks and mutes."""

from collections.abc import Sequence
from typing import Any, Unpack

from stream_server.client.calls.call_group import CallGroup, Page, PageOptions, WriteOptions, path_of
from stream_server.wire.objects import FollowState, ListedUser, OwnUser, Session, User

MAX_USERS_PER_CALL = 1000
"""Most accounts that :meth:`PeopleCalls.create_users` creates in one request; the server accepts no more."""


class PeopleCalls(CallGroup):
    """The calls about users."""

    async def sign_up(self, login: str, name: str, email: str, password: str) -> OwnUser:
        """Create a user. The call needs no token, and the client keeps none."""
        body = {"login": login, "name": name, "email": email, "password": password}
        return await self._transport.call(OwnUser, "POST", "/v1/users", body=body, token="")

    async def log_in(self, login: str, password: str) -> Session:
        """Log in with a login or an e-mail address. The client keeps no token: give it ``token=LogIn(…)`` for that."""
        body = {"email" if "@" in login else "login": login, "password": password}
        return await self._transport.call(Session, "POST", "/v1/sessions", body=body, token="")

    async def me(self, *, token: str | None = None) -> OwnUser:
        """Read the user to whom the token belongs."""
        return await self._transport.call(OwnUser, "GET", "/v1/users/me", token=token)

    async def user(self, user_id: str) -> User:
        """Read one user."""
        return await self._transport.call(User, "GET", path_of("users/{}", user_id))

    async def user_by_login(self, login: str) -> User:
        """Find one user by login; letter case does not matter. Raises RequestRefused (404) if there is none."""
        return await self._transport.call(User, "GET", path_of("users/by-login/{}", login))

    async def change_profile(
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
        given = {"name": name, "bio": bio, "url": url, "place": place, "lang": lang, "protected": protected}
        body = {member: value for member, value in given.items() if value is not None}
        return await self._transport.call(OwnUser, "PATCH", "/v1/users/me", body=body, **options)

    async def follow(self, user_id: str, **options: Unpack[WriteOptions]) -> FollowState:
        """Follow a user, or ask a protected one. Repeating has no effect."""
        return await self._transport.call(FollowState, "PUT", path_of("users/me/following/{}", user_id), **options)

    async def unfollow(self, user_id: str, **options: Unpack[WriteOptions]) -> FollowState:
        """Stop following a user, or withdraw the request. Repeating has no effect."""
        return await self._transport.call(FollowState, "DELETE", path_of("users/me/following/{}", user_id), **options)

    async def followers(self, user_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the followers of a user."""
        return await self._page(ListedUser, "users", path_of("users/{}/followers", user_id), options)

    async def following(self, user_id: str, **options: Unpack[PageOptions]) -> Page[ListedUser]:
        """Read the users whom a user follows."""
        return await self._page(ListedUser, "users", path_of("users/{}/following", user_id), options)

    async def block(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """Block a user: the two no longer see or follow each other."""
        await self._transport.request("PUT", path_of("users/me/blocks/{}", user_id), **options)

    async def unblock(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """End a block."""
        await self._transport.request("DELETE", path_of("users/me/blocks/{}", user_id), **options)

    async def mute(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """Mute a user, who does not learn of it."""
        await self._transport.request("PUT", path_of("users/me/mutes/{}", user_id), **options)

    async def unmute(self, user_id: str, **options: Unpack[WriteOptions]) -> None:
        """End a mute."""
        await self._transport.request("DELETE", path_of("users/me/mutes/{}", user_id), **options)

    async def create_users(self, users: Sequence[tuple[str, str]], *, token: str | None = None) -> dict[str, str]:
        """Create a user for each pair of login and name. Return a dict from lower-case login to user id.

        A user whose login exists already is not changed, and is in the dict too. The token needs the scope ``admin``.
        """
        ids: dict[str, str] = {}
        for start in range(0, len(users), MAX_USERS_PER_CALL):
            batch = [{"login": login, "name": name} for login, name in users[start : start + MAX_USERS_PER_CALL]]
            answer: dict[str, Any] = await self._transport.call(
                dict[str, Any], "POST", "/v1/admin/users", body={"users": batch}, token=token
            )
            ids.update({str(user["login"]).lower(): str(user["id"]) for user in answer["users"]})
        return ids
