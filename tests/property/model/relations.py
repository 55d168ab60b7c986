"""Follows, follow requests, blocks and mutes."""

from tests.property.model.notices import Notice
from tests.property.model.noun import Noun
from tests.property.model.state import Pairs, Refused, among, sources, targets


class Relations(Noun):
    """The graph of the model."""

    def follow(self, source: str, target: str) -> bool:
        """Follow, or request to. Returns whether it is a request."""
        self.may_follow(source, target)
        if (source, target) in self._state.follows:
            return False
        if self._state.people[target].protected:
            self._ask(source, target)
            return True
        self._state.asks.pop((source, target), None)
        self._join(source, target)
        self._notices.take(target, Notice("request", source))
        self._notices.give(target, Notice("follow", source))
        return False

    def unfollow(self, source: str, target: str) -> None:
        """Unfollow, or withdraw a request."""
        self.check(source, target)
        self._cut(source, target)
        self._unask(source, target)

    def approve(self, uid: str, source: str) -> None:
        self._asked(uid, source)
        del self._state.asks[source, uid]
        self._notices.take(uid, Notice("request", source))
        self._join(source, uid)
        self._notices.give(source, Notice("approve", uid))

    def refuse(self, uid: str, source: str) -> None:
        self._asked(uid, source)
        self._unask(source, uid)

    def block(self, source: str, target: str) -> None:
        """End all relations in both directions, and hide the users' statuses from each other."""
        self.check(source, target)
        if (source, target) in self._state.blocks:
            return
        for one, other in ((source, target), (target, source)):
            self._cut(one, other)
            self._unask(one, other)
        for one, other in ((source, target), (target, source)):
            self._leave_groups(one, other)
        self._mark("block", self._state.blocks, source, target)

    def _leave_groups(self, uid: str, owner: str) -> None:
        mine = [group for group in self._state.groups.values() if group.uid == owner and uid in group.members]
        for group in sorted(mine, key=lambda group: group.members[uid]):
            del group.members[uid]
            self._state.log_event("group_leave", f"group:{group.id}", group=group.id, user=uid)

    def unblock(self, source: str, target: str) -> None:
        self._unmark("unblock", self._state.blocks, source, target)

    def mute(self, source: str, target: str) -> None:
        self.check(source, target)
        if (source, target) not in self._state.mutes:
            self._mark("mute", self._state.mutes, source, target)

    def unmute(self, source: str, target: str) -> None:
        self._unmark("unmute", self._state.mutes, source, target)

    # -- reads

    def followed(self, viewer: str, uid: str) -> list[str]:
        self._access.need_person(viewer, uid)
        return self._known(viewer, targets(self._state.follows, uid))

    def followers(self, viewer: str, uid: str) -> list[str]:
        self._access.need_person(viewer, uid)
        return self._known(viewer, sources(self._state.follows, uid))

    def received(self, uid: str) -> list[str]:
        return self._known(uid, sources(self._state.asks, uid))

    def sent(self, uid: str) -> list[str]:
        return self._known(uid, targets(self._state.asks, uid))

    def blocked(self, uid: str) -> list[str]:
        return self._known(uid, targets(self._state.blocks, uid))

    def muted(self, uid: str) -> list[str]:
        return self._known(uid, targets(self._state.mutes, uid))

    def relationship(self, viewer: str, uid: str, other: str) -> dict[str, bool]:
        """The relationship of two users. Requests are for the two, blocks and mutes for their maker."""
        self._access.need_person(viewer, uid)
        self._access.need_person(viewer, other)
        there, back = (uid, other), (other, uid)
        follows, asks = self._state.follows, self._state.asks
        found = {"following": there in follows, "followed_by": back in follows}
        if viewer in there:
            mine = there if viewer == uid else back
            found |= {"requested": there in asks, "requested_by": back in asks}
            found |= {"blocking": mine in self._state.blocks, "muting": mine in self._state.mutes}
        return found

    def common_following(self, viewer: str, uid: str, other: str) -> set[str]:
        theirs = set(self.followed(viewer, other))
        return {one for one in self.followed(viewer, uid) if one in theirs}

    def common_followers(self, viewer: str, uid: str, other: str) -> set[str]:
        theirs = set(self.followers(viewer, other))
        return {one for one in self.followers(viewer, uid) if one in theirs}

    # -- inside

    def _mark(self, kind: str, pairs: Pairs, source: str, target: str) -> None:
        pairs[source, target] = self._state.tick()
        self._state.log_event(kind, among(source), source=source, target=target)

    def _unmark(self, kind: str, pairs: Pairs, source: str, target: str) -> None:
        self.check(source, target)
        if pairs.pop((source, target), None) is not None:
            self._state.log_event(kind, among(source), source=source, target=target)

    def _known(self, viewer: str, uids: list[str]) -> list[str]:
        return [uid for uid in uids if self._access.knows(viewer, uid)]

    def may_follow(self, source: str, target: str) -> None:
        self.check(source, target)
        if (source, target) in self._state.blocks:
            raise Refused("invalid_parameter")

    def check(self, source: str, target: str) -> None:
        """The refusals of every action between two users."""
        self._state.writer(source)
        if source == target:
            raise Refused("invalid_parameter")
        self._access.need_person(source, target)

    def _asked(self, uid: str, source: str) -> None:
        self._state.writer(uid)
        if source == uid:
            raise Refused("invalid_parameter")
        if (source, uid) not in self._state.asks or not self._access.knows(uid, source):
            raise Refused("not_found")

    def _ask(self, source: str, target: str) -> None:
        if (source, target) not in self._state.asks:
            self._state.asks[source, target] = self._state.tick()
            self._state.log_event("request", among(source, target), source=source, target=target)
            self._notices.give(target, Notice("request", source))

    def _unask(self, source: str, target: str) -> None:
        if self._state.asks.pop((source, target), None) is not None:
            self._state.log_event("unrequest", among(source, target), source=source, target=target)
            self._notices.take(target, Notice("request", source))

    def _join(self, source: str, target: str) -> None:
        self._state.follows[source, target] = self._state.tick()
        self._state.log_event("follow", "public", source=source, target=target)
        self._timelines.followed(source, target)

    def _cut(self, source: str, target: str) -> None:
        if self._state.follows.pop((source, target), None) is not None:
            self._state.log_event("unfollow", "public", source=source, target=target)
            self._notices.take(target, Notice("follow", source))
            self._notices.take(source, Notice("approve", target))
            self._timelines.unfollowed(source, target)
