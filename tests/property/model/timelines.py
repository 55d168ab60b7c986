"""Home and list timelines by the rules of chapter 8, and all other lists of statuses."""

from collections.abc import Iterable

from tests.property.model.access import QUIET, SHOWN, Access
from tests.property.model.state import Refused, State, Status, sources, targets


class Timelines:
    """Derived timelines: sets of ids, trimmed to the newest ``cap``."""

    def __init__(self, ground: State, access: Access) -> None:
        self._state = ground
        self._access = access
        self.homes: dict[str, set[str]] = {}
        self.lists: dict[str, set[str]] = {}
        self.tags: dict[str, set[str]] = {}
        self.mentions: dict[str, set[str]] = {}
        self.groups: dict[str, set[str]] = {}
        self._short_homes: set[str] = set()
        self._short_lists: set[str] = set()

    # -- changes

    def posted(self, status: Status) -> None:
        """Add a status to its timelines. A group post is only in its group."""
        for uid in status.mentions:
            self.mentions.setdefault(uid, set()).add(status.id)
        if status.group is not None:
            self._add(self.groups, status.group, [status.id])
            return
        for tag in status.tags:
            self.tags.setdefault(tag, set()).add(status.id)
        for uid in (status.uid, *sources(self._state.follows, status.uid)):
            self._add(self.homes, uid, [status.id])
        for named in self._state.lists.values():
            if status.uid in named.members:
                self._add(self.lists, named.id, [status.id])

    def edited(self, before: Status, after: Status) -> None:
        """Move a status in the timelines of its tags and of those whom it mentions. It stays in all others."""
        for uid in before.mentions:
            self.mentions.get(uid, set()).discard(after.id)
        for uid in after.mentions:
            self.mentions.setdefault(uid, set()).add(after.id)
        if after.group is None:
            for tag in before.tags:
                self.tags[tag].discard(after.id)
            for tag in after.tags:
                self.tags.setdefault(tag, set()).add(after.id)

    def deleted(self, sid: str) -> None:
        for kept in (self.homes, self.lists, self.tags, self.mentions, self.groups):
            for held in kept.values():
                held.discard(sid)

    def followed(self, source: str, target: str) -> None:
        self._add(self.homes, source, self.newest(target))

    def unfollowed(self, source: str, target: str) -> None:
        """Remove the author's statuses. The jobs refill a timeline that is too short."""
        if self._remove(self.homes, source, target):
            self._short_homes.add(source)

    def listed(self, list_id: str, target: str) -> None:
        self._add(self.lists, list_id, self.newest(target))

    def unlisted(self, list_id: str, target: str) -> None:
        if self._remove(self.lists, list_id, target):
            self._short_lists.add(list_id)

    def dropped(self, list_id: str) -> None:
        self.lists.pop(list_id, None)

    def erased(self, uid: str) -> None:
        """Remove a user who is gone from the timelines of others. A timeline that was full is refilled."""
        for kept, short in ((self.homes, self._short_homes), (self.lists, self._short_lists)):
            for key, held in kept.items():
                before = len(held)
                if self._remove(kept, key, uid) and before >= self._state.cap * 3 / 4:
                    short.add(key)

    def forget(self, uid: str) -> None:
        """Remove the timelines of a user who is gone."""
        self.homes.pop(uid, None)
        self.mentions.pop(uid, None)
        self._short_homes.discard(uid)

    def settle(self) -> None:
        """Refill timelines that an unfollow left too short, as the jobs do."""
        for uid in self._short_homes:
            for target in (uid, *targets(self._state.follows, uid)):
                self._add(self.homes, uid, self.newest(target))
        for list_id in self._short_lists & set(self._state.lists):
            for member in self._state.lists[list_id].members:
                self._add(self.lists, list_id, self.newest(member))
        self._short_homes.clear()
        self._short_lists.clear()

    def newest(self, uid: str) -> list[str]:
        mine = [one.id for one in self._state.statuses.values() if one.uid == uid and one.group is None]
        return sorted(mine, key=int, reverse=True)[: self._state.cap]

    # -- reads

    def home(self, viewer: str) -> list[str]:
        return self._seen(viewer, self.homes.get(viewer, set()), SHOWN)

    def profile(self, viewer: str, uid: str) -> list[str]:
        self._access.need_person(viewer, uid)
        mine = (one.id for one in self._state.statuses.values() if one.uid == uid and one.group is None)
        return self._seen(viewer, mine, QUIET)

    def of_list(self, viewer: str, list_id: str) -> list[str]:
        named = self._state.lists.get(list_id)
        if named is None or not self._access.knows(viewer, named.uid) or (named.private and named.uid != viewer):
            raise Refused("not_found")
        return self._seen(viewer, self.lists.get(list_id, set()), SHOWN)

    def of_group(self, viewer: str, gid: str) -> list[str]:
        if not self._access.group(viewer, gid):
            raise Refused("not_found")
        return self._seen(viewer, self.groups.get(gid, set()), SHOWN)

    def of_tag(self, viewer: str, tag: str) -> list[str]:
        return self._seen(viewer, self.tags.get(tag, set()), SHOWN)

    def mentioning(self, viewer: str) -> list[str]:
        return self._seen(viewer, self.mentions.get(viewer, set()), SHOWN)

    def reposts(self, viewer: str, sid: str) -> list[str]:
        self._access.need(viewer, sid)
        return self._seen(viewer, (one.id for one in self._state.statuses.values() if one.origin == sid), SHOWN)

    def replies(self, viewer: str, sid: str) -> list[str]:
        self._access.need(viewer, sid)
        return self._seen(viewer, (one.id for one in self._state.statuses.values() if one.in_reply_to == sid), SHOWN)

    def conversation(self, viewer: str, sid: str) -> list[str]:
        root = self._access.need(viewer, sid).conversation
        found = (one.id for one in self._state.statuses.values() if one.conversation == root)
        return self._seen(viewer, found, SHOWN)[::-1]

    def liked(self, viewer: str, uid: str) -> list[str]:
        """The visible statuses that a user likes, newest like first."""
        self._access.need_person(viewer, uid)
        seen = [sid for sid in targets(self._state.likes, uid) if self._access.status(viewer, sid) >= QUIET]
        return [sid for sid in seen if self._access.author(viewer, uid, self._state.statuses[sid].group) >= QUIET]

    def favorites(self, viewer: str) -> list[str]:
        return [sid for sid in targets(self._state.favorites, viewer) if self._access.status(viewer, sid) >= QUIET]

    # -- inside

    def _seen(self, viewer: str, ids: Iterable[str], least: int) -> list[str]:
        return sorted((sid for sid in ids if self._access.status(viewer, sid) >= least), key=int, reverse=True)

    def _add(self, kept: dict[str, set[str]], key: str, ids: Iterable[str]) -> None:
        both = kept.setdefault(key, set()) | set(ids)
        kept[key] = set(sorted(both, key=int, reverse=True)[: self._state.cap])

    def _remove(self, kept: dict[str, set[str]], key: str, author: str) -> bool:
        """Remove an author. Returns whether less than three quarters of the cap are left."""
        held = kept.setdefault(key, set())
        held -= {sid for sid in held if self._state.statuses[sid].uid == author}
        return len(held) < self._state.cap * 3 / 4
