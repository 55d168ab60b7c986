"""Moderation: reports of users and statuses, decisions and other deeds of administrators, and suspensions."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import statuses, users
from stream_server.store.reads.sight import not_found
from stream_server.store.reads.statuses import expand
from stream_server.store.reads.users import show_users, time_text
from stream_server.store.redis.lanes import Command
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import FanOut


class ReportOutcome(StrEnum):
    """An administrator's decision about a report."""

    DISMISSED = "dismissed"  # the report was unfounded; nothing changes
    REMOVED = "removed"  # the reported status is deleted
    SUSPENDED = "suspended"  # the reported user, or the author of the reported status, is suspended


class Reports(Noun):
    """Creates, reads and decides reports. A report is a user's complaint about a user or a status."""

    async def create(
        self, uid: str, reason: str, user: str | None, status: str | None, note: str, idempotency_key: IdempotencyKey
    ) -> tuple[bytes, bool]:
        """Report a user or a status. Returns the report as JSON, and whether the report is new.

        If the reporter already has an open report of the user or status, returns that report. Raises NotFound if the
        reporter may not see the user or status, and BadRequest if reporters report themselves.
        """
        reply = await self._scripts.write(
            "report_create", idempotency_key, uid=uid, user=user or "", status=status or "", reason=reason,
            note=msgspec.json.encode(note),
        )  # fmt: skip
        if reply.is_repeat:  # the first answer was that of a new report
            *row, _outcome, _decided, _decider, _remark = await self._require_own(uid, reply.value.decode())
            return _report_json(reply.value, [*row, b"", b"", b"", b""]), True
        return await self.get(uid, reply.first_time["id"].decode()), reply.value != b"unchanged"

    async def get(self, uid: str, report: str) -> bytes:
        """Return a report, with its decision, as JSON. Raises NotFound for users other than its reporter ``uid``."""
        return _report_json(report.encode(), await self._require_own(uid, report))

    async def list_reports(self, page_request: PageRequest, state: str) -> Page:
        """Return the reports whose state is ``open`` or ``decided`` as JSON, newest first, for an administrator.

        Each report contains the reported user and status as they are now, even if they are hidden from other users.
        """

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            return await self._show_all([member for member, _ in members])

        return await self._page("reports" if state == "open" else "decided", "", page_request, show)

    async def decide(
        self, admin: str, report: str, outcome: ReportOutcome, remark: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        """Decide a report: ``removed`` deletes the status, ``suspended`` suspends the user, ``dismissed`` does neither.

        The decision and its consequence are one atomic step. Returns the decided report as JSON. The same decision
        again changes nothing. Raises NotFound for an unknown report, Conflict if another outcome was decided before,
        and BadRequest for ``removed`` if the report names no status, or if administrators suspend themselves.
        """
        reply = await self._scripts.write(
            "report_decide", idempotency_key, admin=admin, id=report, outcome=outcome.value,
            remark=msgspec.json.encode(remark),
        )  # fmt: skip
        if not reply.is_repeat:
            author, status = reply.first_time["user"].decode(), reply.first_time["status"].decode()
            await self._syndication.withdraw(FanOut.of_reply(author, status, reply))
        return (await self._show_all([report.encode()]))[0]

    async def _require_own(self, uid: str, report: str) -> list[bytes]:
        (found,) = await self._redis.execute(_report_command(report.encode()))
        if found[0] is None or found[0].decode() != uid:
            raise not_found("report id")
        row: list[bytes] = found
        return row

    async def _show_all(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return reports as an administrator sees them, with the reported user and status as they are now."""
        found = await self._redis.execute(*map(_report_command, ids))
        status_ids = [row[2] for row in found]
        people = await users.read_rows(self._sight(""), [row[1] for row in found], all_users=True)
        rows = await statuses.read_rows(self._redis, status_ids)
        originals = await statuses.read_originals(self._redis, rows)
        shown = []
        for report, row, user, status in zip(ids, found, people, rows, strict=True):
            status_json = b"null"
            if user and status:  # a job deletes what a deleted user wrote
                original = originals.get(status.origin)
                original_json = original.short_json() if original else b"null"
                status_json = expand(status.short_json(original_json if status.origin else None))
            shown.append(
                _report_json(report, row)[:-1]
                + b',"decided_by":%b,"remark":%b,"reported":{"user":%b,"status":%b}}'
                % (_quoted(row[8]), row[9] or b'""', user.public_json() if user else b"null", status_json)
            )
        return shown


def _report_command(report: bytes) -> Command:
    fields = ("uid", "user", "status", "reason", "note", "posted", "outcome", "decided", "decider", "remark")
    return ("HMGET", keys.key_for("report").encode() + report, *fields)


def _report_json(report: bytes, row: Sequence[bytes]) -> bytes:
    """Return the report with the id ``report`` as JSON, without what only moderators may see. ``row`` is from Redis."""
    uid, user, status, reason, note, posted, outcome, decided, *_ = row
    return (
        b'{"id":"%b","uid":"%b","user":"%b","status":%b,"reason":"%b","note":%b,"posted":"%b","outcome":%b,"decided":%b}'
        % (report, uid, user, _quoted(status), reason, note, time_text(posted), _quoted(outcome),
           _quoted(decided and time_text(decided)))
    )  # fmt: skip


def _quoted(text: bytes | None) -> bytes:
    """Return a text that needs no escapes as a JSON string. An empty text and None become null."""
    return b'"%b"' % text if text else b"null"


class Suspensions(Noun):
    """Suspends and reinstates users. A suspension hides all that a user wrote. Reinstating makes it visible again."""

    async def suspend(self, admin: str, uid: str, idempotency_key: IdempotencyKey, note: str = "") -> bytes:
        """Suspend a user. Returns ``{"suspended":true}``. The log entry makes all servers end the user's streams.

        ``note`` is the reason, for the audit log. Raises NotFound for an unknown user, and BadRequest if administrators
        suspend themselves.
        """
        await self._change("suspend", admin, uid, note, idempotency_key)
        return b'{"suspended":true}'

    async def reinstate(self, admin: str, uid: str, idempotency_key: IdempotencyKey, note: str = "") -> bytes:
        """End a suspension. Returns ``{"suspended":false}``. Raises NotFound for an unknown user.

        ``note`` is the reason, for the audit log.
        """
        await self._change("reinstate", admin, uid, note, idempotency_key)
        return b'{"suspended":false}'

    async def _change(self, kind: str, admin: str, uid: str, note: str, idempotency_key: IdempotencyKey) -> None:
        inside = msgspec.json.encode(note)[1:-1]
        await self._scripts.write(
            "suspension_change", idempotency_key, admin=admin, uid=uid, kind=kind, note=inside
        )

    async def list_suspended(self, page_request: PageRequest) -> Page:
        """Return the suspended users as JSON, last suspended first, for an administrator.

        Each has ``suspension``: the administrator ``by`` (null if it is not known) and the ``note``.
        """

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            shown = await show_users(self._sight(""), all_users=True)(members)
            found = await self._redis.execute(*(_suspension_command(uid) for uid, _ in members))
            return [
                user and user[:-1] + b',"suspension":{"by":%b,"note":%b}}' % (_quoted(by), note or b'""')
                for user, (by, note) in zip(shown, found, strict=True)
            ]

        return await self._page("suspended", "", page_request, show)


def _suspension_command(uid: bytes) -> Command:
    return ("HMGET", keys.key_for("user").encode() + uid, "suspended_by", "suspended_note")


class AuditLog(Noun):
    """Reads the audit log, which has the newest 100,000 deeds."""

    async def list_deeds(self, page_request: PageRequest) -> Page:
        """Return the deeds of administrators as JSON, newest first, each with its ``user`` and ``note``.

        ``user`` has the ``id`` and ``login`` of whom it was about, also of a suspended user. The login is null for a
        deleted account, and ``user`` is null for a deed about nobody. ``note`` is the reason that was given.
        """

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            (found,) = await self._redis.execute(("HMGET", keys.key_for("deeds"), *(member for member, _ in members)))
            deeds = [deed and msgspec.json.decode(deed) for deed in found]
            await self._explain([deed for deed in deeds if deed])
            return [deed and msgspec.json.encode(deed) for deed in deeds]

        return await self._page("audit", "", page_request, show)

    async def _explain(self, deeds: Sequence[dict[str, Any]]) -> None:
        """Add ``user`` and ``note`` to deeds. Those of a decision are kept with its report."""
        decided = [deed for deed in deeds if deed["deed"] == "decide"]
        reports = await self._read([_report_command(deed["on"].encode()) for deed in decided])
        uids: dict[str, str | None] = {}
        for deed in deeds:
            uids[deed["id"]] = None if deed["deed"] in ("decide", "create_users") else deed["on"] or None
            deed["note"] = deed["details"] if deed["deed"] in ("suspend", "reinstate") else ""
        for deed, (_, user, *_others, remark) in zip(decided, reports, strict=True):
            uids[deed["id"]] = user and user.decode()
            deed["note"] = msgspec.json.decode(remark or b'""')
        known = sorted({uid for uid in uids.values() if uid})
        rows = await self._read([("HGET", keys.key_for("user", uid), "login") for uid in known])
        logins = {uid: login and login.decode() for uid, login in zip(known, rows, strict=True)}
        for deed in deeds:
            uid = uids[deed["id"]]
            deed["user"] = uid and {"id": uid, "login": logins[uid]}

    async def _read(self, commands: Sequence[Command]) -> list[Any]:
        return list(await self._redis.execute(*commands)) if commands else []
