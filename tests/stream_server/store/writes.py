"""A table of every write of the store, and a scene in which each of them changes something."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.social.reports import ReportOutcome
from stream_server.store.social.sessions import RefreshSecrets
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.social.subscriptions import NewWebhook
from stream_server.store.social.webhook_state import Webhook
from stream_server.store.store import Store
from tests.stream_server.store.people import PASSWORD_HASH, People, new_key
from tests.stream_server.store.scenes import ids, protect, suspend


class Scene:
    """Bob follows Ann and reacted in every way to her status ``done``, and not to ``fresh``, which Carl reported.

    Ann has a list and a private group with Bob, a talk with a message of his, a rule, and a subscription that is read.
    Dora and Eli are protected, and Dora requested to follow Eli. Dora blocks and mutes Fay. Root suspended Gus.
    Mia has a password and a session.
    """

    users: list[str]
    fresh: str
    done: str
    comment: str
    list: str
    group: str
    talk: str
    message: str
    report: str
    notice: str
    rule: str

    async def settle(self, store: Store) -> None:
        people = People(store)
        self.users = await people.users(8)
        self.ann, self.bob, self.carl, self.dora, self.eli, self.fay, self.gus, self.root = self.users
        self.fresh, self.done = [str((await people.status(self.ann))["id"]) for _ in range(2)]
        self.mia = await people.user("mia")
        self.users.append(self.mia)
        await store.sessions.start(self.mia, "s1", RefreshSecrets("ab", "cd"), 60, "", new_key())
        await self._follow(store)
        await self._do(store)
        await self._gather(store)

    async def _follow(self, store: Store) -> None:
        await store.follows.follow(self.bob, self.ann, new_key())
        for uid in (self.dora, self.eli):
            await protect(store, uid)
        await store.follows.follow(self.dora, self.eli, new_key())
        await store.blocks.block(self.dora, self.fay, new_key())
        await store.mutes.mute(self.dora, self.fay, new_key())
        await suspend(store, self.root, self.gus)

    async def _do(self, store: Store) -> None:
        await store.likes.like(self.bob, self.done, new_key())
        await store.favorites.add(self.bob, self.done, new_key())
        self.comment = _id(await store.comments.create(self.bob, self.done, "@u0 well", new_key()))
        made, _ = await store.reports.create(self.carl, "spam", None, self.fresh, "", new_key())
        self.report = _id(made)
        self.notice = ids(await store.notifications.list_notifications(self.ann, PageRequest()))[0]

    async def _gather(self, store: Store) -> None:
        self.list = _id(await store.lists.create(self.ann, "a", "", False, new_key()))
        await store.lists.add_member(self.ann, self.list, self.bob, new_key())
        self.group = _id(await store.groups.create(self.ann, "a", "private", "", new_key()))
        await store.groups.add_member(self.ann, self.group, self.bob, new_key())
        self.talk = _id((await store.talks.open(self.ann, [self.bob], None, new_key()))[0])
        self.message = _id(await store.talks.send_message(self.bob, self.talk, "hello", new_key()))
        (kept,) = await store.rules.add(self.ann, [("tea", "drinks")], new_key())
        assert kept.saved is not None
        self.rule = kept.saved.id
        await store.subscriptions.put(self.ann, "work", {"track": "tea"}, None, new_key())
        await store.subscriptions.take(self.ann, await store.subscriptions.get(self.ann, "work"), "somewhere")
        webhook = NewWebhook(Webhook("https://ann.example/hook", 100, frozenset()), "whsec_AAAA", 10)
        await store.subscriptions.put(self.ann, "sent", {"track": "tea"}, None, new_key(), new=webhook)


def _id(made: bytes) -> str:
    return str(json.loads(made)["id"])


class Write(NamedTuple):
    """A write, the number of its log entries, and whether a suspended user is refused."""

    do: Callable[[Store, Scene, IdempotencyKey], Awaitable[Any]]
    entries: int
    somebodys: bool = True


WRITES: dict[str, Write] = {
    "user_create": Write(lambda s, x, r: s.users.create("New", "New", "new@example.org", PASSWORD_HASH, r), 0, False),
    "users_create": Write(lambda s, x, r: s.users.create_many([("New", "New"), ("u0", "there")], r), 0, False),
    "token_revoke": Write(lambda s, x, r: s.sessions.revoke(x.ann, "jti", 4_000_000_000_000, r), 1, False),
    "session_start": Write(lambda s, x, r: s.sessions.start(x.mia, "s9", RefreshSecrets("ab", "cd"), 60, "", r), 0),
    "session_refresh": Write(
        lambda s, x, r: s.sessions.refresh(x.mia, "s1", RefreshSecrets("ab", "cd"), "ef", 60, r), 0
    ),
    "session_end": Write(lambda s, x, r: s.sessions.end(x.mia, "s1", r), 1),
    "sessions_end_all": Write(lambda s, x, r: s.sessions.end_all(x.mia, r), 1),
    "password_change": Write(lambda s, x, r: s.sessions.change_password(x.mia, PASSWORD_HASH, "new", "", r), 1),
    "scopes_grant": Write(lambda s, x, r: s.users.grant_scopes("", x.mia, "admin", r), 1, False),
    "user_update": Write(lambda s, x, r: s.users.update(x.dora, {"bio": "x", "protected": False}, r), 2),
    "status_post": Write(lambda s, x, r: s.statuses.create(x.ann, StatusDraft(message="hello"), r), 1),
    "status_refer": Write(
        lambda s, x, r: s.statuses.create(x.ann, StatusDraft(message="@u1 hello", in_reply_to=x.fresh), r), 2
    ),
    "repost": Write(lambda s, x, r: s.statuses.create(x.ann, StatusDraft(origin=x.fresh), r), 1),
    "status_edit": Write(lambda s, x, r: s.statuses.edit(x.ann, x.fresh, {"message": "@u1 so"}, r, 10**9), 2),
    "status_delete": Write(lambda s, x, r: s.statuses.delete(x.ann, x.done, r), 1),
    "like": Write(lambda s, x, r: s.likes.like(x.bob, x.fresh, r), 2),
    "unlike": Write(lambda s, x, r: s.likes.unlike(x.bob, x.done, r), 1),
    "favorite": Write(lambda s, x, r: s.favorites.add(x.bob, x.fresh, r), 0),
    "unfavorite": Write(lambda s, x, r: s.favorites.remove(x.bob, x.done, r), 0),
    "comment_create": Write(lambda s, x, r: s.comments.create(x.bob, x.fresh, "@u0 well", r), 2),
    "comment_delete": Write(lambda s, x, r: s.comments.delete(x.bob, x.comment, r), 1),
    "notifications_mark_read": Write(lambda s, x, r: s.notifications.mark_read(x.ann, x.notice, r), 0),
    "follow": Write(lambda s, x, r: s.follows.follow(x.ann, x.bob, r), 2),
    "unfollow": Write(lambda s, x, r: s.follows.unfollow(x.bob, x.ann, r), 1),
    "ask": Write(lambda s, x, r: s.follows.follow(x.eli, x.dora, r), 2),
    "withdraw": Write(lambda s, x, r: s.follows.unfollow(x.dora, x.eli, r), 1),
    "follow_request_answer": Write(lambda s, x, r: s.follow_requests.approve(x.eli, x.dora, r), 2),
    "follow_request_refuse": Write(lambda s, x, r: s.follow_requests.refuse(x.eli, x.dora, r), 1),
    "block": Write(lambda s, x, r: s.blocks.block(x.dora, x.eli, r), 2),
    "be_blocked": Write(lambda s, x, r: s.blocks.block(x.eli, x.dora, r), 2),
    "unblock": Write(lambda s, x, r: s.blocks.unblock(x.dora, x.fay, r), 1),
    "relation_change": Write(lambda s, x, r: s.mutes.mute(x.dora, x.eli, r), 1),
    "unmute": Write(lambda s, x, r: s.mutes.unmute(x.dora, x.fay, r), 1),
    "list_create": Write(lambda s, x, r: s.lists.create(x.ann, "b", "", True, r), 1),
    "circle_update": Write(lambda s, x, r: s.lists.update(x.ann, x.list, {"name": "b", "private": True}, r), 1),
    "list_delete": Write(lambda s, x, r: s.lists.delete(x.ann, x.list, r), 1),
    "list_change_member": Write(lambda s, x, r: s.lists.add_member(x.ann, x.list, x.carl, r), 1),
    "list_remove": Write(lambda s, x, r: s.lists.remove_member(x.ann, x.list, x.bob, r), 1),
    "group_create": Write(lambda s, x, r: s.groups.create(x.ann, "b", "public", "", r), 1),
    "group_update": Write(lambda s, x, r: s.groups.update(x.ann, x.group, {"description": "b"}, r), 1),
    "group_delete": Write(lambda s, x, r: s.groups.delete(x.ann, x.group, r), 1),
    "group_join": Write(lambda s, x, r: s.groups.add_member(x.ann, x.group, x.carl, r), 1),
    "group_leave": Write(lambda s, x, r: s.groups.leave(x.bob, x.group, r), 1),
    "talk_open": Write(lambda s, x, r: s.talks.open(x.ann, [x.carl], None, r), 0),
    "talk_open_several": Write(lambda s, x, r: s.talks.open(x.ann, [x.bob, x.carl], "b", r), 0),
    "talk_send": Write(lambda s, x, r: s.talks.send_message(x.ann, x.talk, "hi", r), 1),
    "talk_mark_read": Write(lambda s, x, r: s.talks.mark_read(x.ann, x.talk, x.message, r), 0),
    "subscription_put": Write(lambda s, x, r: s.subscriptions.put(x.ann, "new", {"track": "tea"}, None, r), 0),
    "webhook_secret": Write(lambda s, x, r: s.webhooks.replace_secret(x.ann, "sent", "whsec_BBBB", r), 0),
    "subscription_remove": Write(lambda s, x, r: s.subscriptions.remove(x.ann, "work", r), 1),
    "saved_rules_add": Write(lambda s, x, r: s.rules.add(x.ann, [("tea", "drinks"), ("tea", "")], r), 1),
    "saved_rules_change": Write(lambda s, x, r: s.rules.change(x.ann, x.rule, ("milk", ""), r), 1),
    "saved_rules_remove": Write(lambda s, x, r: s.rules.remove(x.ann, [x.rule, "1"], r), 1),
    "report_create": Write(lambda s, x, r: s.reports.create(x.bob, "spam", None, x.done, "", r), 0),
    "report_decide": Write(lambda s, x, r: s.reports.decide(x.root, x.report, ReportOutcome.REMOVED, "", r), 1),
    "account_delete": Write(lambda s, x, r: s.accounts.delete(x.root, x.bob, r), 2),
    "account_delete_own": Write(lambda s, x, r: s.accounts.delete_own(x.mia, PASSWORD_HASH, r), 2),
    "suspension_change": Write(lambda s, x, r: s.suspensions.suspend(x.root, x.bob, r), 1),
    "reinstate": Write(lambda s, x, r: s.suspensions.reinstate(x.root, x.gus, r), 1),
}
"""Every write, by the name of its script or by a name in :data:`FORMS`."""

FORMS = frozenset({
    "repost", "ask", "withdraw", "be_blocked", "talk_open_several", "unblock", "unmute", "list_remove", "group_update",
    "reinstate", "follow_request_refuse", "account_delete_own",
})  # fmt: skip
"""Rows that are another form of a script with a row."""

ELSEWHERE = frozenset({
    "batch_claim_key", "stream_command", "talk_answer",
    "ingest_user", "ingest_post", "ingest_edit", "ingest_delete", "ingest_follow", "ingest_unfollow", "ingest_block",
    "ingest_relation", "ingest_suspension", "ingest_delete_user",
})  # fmt: skip
"""Scripts with tests elsewhere: they write only their answer, use up a token, or count once by a foreign id."""
