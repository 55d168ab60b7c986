"""Who follows, asks, blocks and mutes whom."""

from tests.property.model.ground import Ground, Refused, among, sources, targets
from tests.property.model.notices import Notice, Notices
from tests.property.model.sight import Eyes
from tests.property.model.timelines import Timelines


class Relations:
    """The graph of the model."""

    def __init__(self, ground: Ground, eyes: Eyes, timelines: Timelines, notices: Notices) -> None:
        self._ground = ground
        self._eyes = eyes
        self._timelines = timelines
        self._notices = notices

    def follow(self, source: str, target: str) -> bool:
        """Follow, or ask to; whether it is asked. Already so changes nothing."""
        self.may_follow(source, target)
        if (source, target) in self._ground.follows:
            return False
        if self._ground.people[target].protected:
            self._ask(source, target)
            return True
        self._ground.asks.pop((source, target), None)
        self._join(source, target)
        self._notices.take(target, Notice("request", source))
        self._notices.give(target, Notice("follow", source))
        return False

    def unfollow(self, source: str, target: str) -> None:
        """Follow, or ask to, no longer."""
        self.check(source, target)
        self._cut(source, target)
        self._unask(source, target)

    def approve(self, uid: str, source: str) -> None:
        """Let somebody follow who asked to."""
        self._asked(uid, source)
        del self._ground.asks[source, uid]
        self._notices.take(uid, Notice("request", source))
        self._join(source, uid)
        self._notices.give(source, Notice("approve", uid))

    def refuse(self, uid: str, source: str) -> None:
        """Do not let somebody follow who asked to."""
        self._asked(uid, source)
        self._unask(source, uid)

    def block(self, source: str, target: str) -> None:
        """Cut what is between two, both ways, and see nothing of each other."""
        self.check(source, target)
        if (source, target) in self._ground.blocks:
            return
        for one, other in ((source, target), (target, source)):
            self._cut(one, other)
            self._unask(one, other)
        self._ground.blocks[source, target] = self._ground.tick()
        self._ground.tell("block", among(source), source=source, target=target)

    def unblock(self, source: str, target: str) -> None:
        """See each other again; nobody follows by that."""
        self.check(source, target)
        if self._ground.blocks.pop((source, target), None) is not None:
            self._ground.tell("unblock", among(source), source=source, target=target)

    def mute(self, source: str, target: str) -> None:
        """Hear nothing of somebody, who is not told."""
        self.check(source, target)
        if (source, target) not in self._ground.mutes:
            self._ground.mutes[source, target] = self._ground.tick()
            self._ground.tell("mute", among(source), source=source, target=target)

    def unmute(self, source: str, target: str) -> None:
        """Hear of somebody again."""
        self.check(source, target)
        if self._ground.mutes.pop((source, target), None) is not None:
            self._ground.tell("unmute", among(source), source=source, target=target)

    # -- what is read

    def followed(self, viewer: str, uid: str) -> list[str]:
        self._eyes.need_person(viewer, uid)
        return self._known(viewer, targets(self._ground.follows, uid))

    def followers(self, viewer: str, uid: str) -> list[str]:
        self._eyes.need_person(viewer, uid)
        return self._known(viewer, sources(self._ground.follows, uid))

    def received(self, uid: str) -> list[str]:
        return self._known(uid, sources(self._ground.asks, uid))

    def sent(self, uid: str) -> list[str]:
        return self._known(uid, targets(self._ground.asks, uid))

    def blocked(self, uid: str) -> list[str]:
        return self._known(uid, targets(self._ground.blocks, uid))

    def muted(self, uid: str) -> list[str]:
        return self._known(uid, targets(self._ground.mutes, uid))

    def relationship(self, viewer: str, uid: str, other: str) -> dict[str, bool]:
        """What is between two; requests only for the two, blocks and mutes only of the one who looks."""
        self._eyes.need_person(viewer, uid)
        self._eyes.need_person(viewer, other)
        there, back = (uid, other), (other, uid)
        follows, asks = self._ground.follows, self._ground.asks
        found = {
            "following": there in follows,
            "followed_by": back in follows,
        }
        if viewer in there:
            mine = there if viewer == uid else back
            found |= {"requested": there in asks, "requested_by": back in asks}
            found |= {"blocking": mine in self._ground.blocks, "muting": mine in self._ground.mutes}
        return found

    def common_following(self, viewer: str, uid: str, other: str) -> set[str]:
        theirs = set(self.followed(viewer, other))
        return {one for one in self.followed(viewer, uid) if one in theirs}

    def common_followers(self, viewer: str, uid: str, other: str) -> set[str]:
        theirs = set(self.followers(viewer, other))
        return {one for one in self.followers(viewer, uid) if one in theirs}

    # -- inside

    def _known(self, viewer: str, uids: list[str]) -> list[str]:
        return [uid for uid in uids if self._eyes.knows(viewer, uid)]

    def may_follow(self, source: str, target: str) -> None:
        """Nobody follows whom they block."""
        self.check(source, target)
        if (source, target) in self._ground.blocks:
            raise Refused("invalid_parameter")

    def check(self, source: str, target: str) -> None:
        """What every verb between two refuses."""
        self._ground.writer(source)
        if source == target:
            raise Refused("invalid_parameter")
        self._eyes.need_person(source, target)

    def _asked(self, uid: str, source: str) -> None:
        self._ground.writer(uid)
        if source == uid:
            raise Refused("invalid_parameter")
        if (source, uid) not in self._ground.asks or not self._eyes.knows(uid, source):
            raise Refused("not_found")

    def _ask(self, source: str, target: str) -> None:
        if (source, target) not in self._ground.asks:
            self._ground.asks[source, target] = self._ground.tick()
            self._ground.tell("request", among(source, target), source=source, target=target)
            self._notices.give(target, Notice("request", source))

    def _unask(self, source: str, target: str) -> None:
        if self._ground.asks.pop((source, target), None) is not None:
            self._ground.tell("unrequest", among(source, target), source=source, target=target)
            self._notices.take(target, Notice("request", source))

    def _join(self, source: str, target: str) -> None:
        self._ground.follows[source, target] = self._ground.tick()
        self._ground.tell("follow", "public", source=source, target=target)
        self._timelines.followed(source, target)

    def _cut(self, source: str, target: str) -> None:
        if self._ground.follows.pop((source, target), None) is not None:
            self._ground.tell("unfollow", "public", source=source, target=target)
            self._notices.take(target, Notice("follow", source))
            self._notices.take(source, Notice("approve", target))
            self._timelines.unfollowed(source, target)
