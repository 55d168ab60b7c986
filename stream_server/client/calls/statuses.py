"""Statuses: post, reply, repost, quote, delete, like, keep, comment, and read timelines."""

from typing import Any, Unpack

from stream_server.client.calls.call_group import CallGroup, Page, PageOptions, WriteOptions, path_of
from stream_server.wire.objects import Comment, LikeCount, Status


class StatusCalls(CallGroup):
    """The calls about statuses and comments."""

    async def post(
        self,
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
        given = {"in_reply_to": in_reply_to, "origin": origin, "group": group, "lang": lang}
        members: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if location is not None:
            members["location"] = {"lon": location[0], "lat": location[1]}
        if place is not None:
            members["place"] = {"name": place}
        members = {"message": message, **members, **(body or {})}
        return await self._transport.call(Status, "POST", "/v1/statuses", body=members, **options)

    async def reply(self, status_id: str, message: str, **options: Unpack[WriteOptions]) -> Status:
        """Answer a status."""
        return await self.post(message, in_reply_to=status_id, **options)

    async def repost(self, status_id: str, **options: Unpack[WriteOptions]) -> Status:
        """Repost a status. Deleting the returned status undoes the repost."""
        return await self.post("", origin=status_id, **options)

    async def quote(self, status_id: str, message: str, **options: Unpack[WriteOptions]) -> Status:
        """Quote a status: repost it with a message of the caller."""
        return await self.post(message, origin=status_id, **options)

    async def delete(self, status_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete one of the caller's own statuses."""
        await self._transport.request("DELETE", path_of("statuses/{}", status_id), **options)

    async def status(self, status_id: str) -> Status:
        """Read one status."""
        return await self._transport.call(Status, "GET", path_of("statuses/{}", status_id))

    async def like(self, status_id: str, **options: Unpack[WriteOptions]) -> LikeCount:
        """Like a status. Repeating has no effect."""
        return await self._transport.call(LikeCount, "PUT", path_of("users/me/likes/{}", status_id), **options)

    async def unlike(self, status_id: str, **options: Unpack[WriteOptions]) -> LikeCount:
        """Take a like back. Repeating has no effect."""
        return await self._transport.call(LikeCount, "DELETE", path_of("users/me/likes/{}", status_id), **options)

    async def favorite(self, status_id: str, **options: Unpack[WriteOptions]) -> None:
        """Keep a status among the caller's favorites, which other users do not see."""
        await self._transport.request("PUT", path_of("users/me/favorites/{}", status_id), **options)

    async def unfavorite(self, status_id: str, **options: Unpack[WriteOptions]) -> None:
        """Remove a status from the caller's favorites."""
        await self._transport.request("DELETE", path_of("users/me/favorites/{}", status_id), **options)

    async def comment(self, status_id: str, message: str, **options: Unpack[WriteOptions]) -> Comment:
        """Comment on a status."""
        path = path_of("statuses/{}/comments", status_id)
        return await self._transport.call(Comment, "POST", path, body={"message": message}, **options)

    async def delete_comment(self, comment_id: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a comment, as the author of the comment or of the status."""
        await self._transport.request("DELETE", path_of("comments/{}", comment_id), **options)

    async def comments(self, status_id: str, **options: Unpack[PageOptions]) -> Page[Comment]:
        """Read the comments on a status, the oldest first."""
        return await self._page(Comment, "comments", path_of("statuses/{}/comments", status_id), options)

    async def home(self, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the caller's home timeline: own posts, and those of the users whom the caller follows."""
        return await self._page(Status, "statuses", "/v1/timelines/home", options)

    async def mentions(self, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the recent statuses that mention the caller."""
        return await self._page(Status, "statuses", "/v1/users/me/mentions", options)

    async def favorites(self, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the caller's favorites."""
        return await self._page(Status, "statuses", "/v1/users/me/favorites", options)

    async def posts(self, user_id: str, **options: Unpack[PageOptions]) -> Page[Status]:
        """Read the statuses of a user."""
        return await self._page(Status, "statuses", path_of("users/{}/statuses", user_id), options)
