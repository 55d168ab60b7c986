"""All parts of the model together."""

from tests.property.model.access import Access
from tests.property.model.accounts import Accounts
from tests.property.model.comments import Comments
from tests.property.model.groups import Groups
from tests.property.model.lists import Lists
from tests.property.model.marks import Marks
from tests.property.model.notices import Notices
from tests.property.model.people import People
from tests.property.model.posts import Posts
from tests.property.model.relations import Relations
from tests.property.model.state import Refused, State
from tests.property.model.talks import Talks
from tests.property.model.timelines import Timelines


class World:
    """The whole model. ``cap`` is the maximum length of a timeline."""

    def __init__(self, cap: int) -> None:
        self.ground = State(cap)
        self.access = Access(self.ground)
        self.notices = Notices(self.ground, self.access)
        self.timelines = Timelines(self.ground, self.access)
        parts = (self.ground, self.access, self.timelines, self.notices)
        self.people = People(*parts)
        self.relations = Relations(*parts)
        self.posts = Posts(*parts)
        self.marks = Marks(*parts)
        self.comments = Comments(*parts)
        self.lists = Lists(*parts)
        self.groups = Groups(*parts)
        self.talks = Talks(*parts)
        self.accounts = Accounts(*parts)

    def batched(self, verb: str, source: str, target: str) -> tuple[str, str]:
        """The outcome of one action of a batch."""
        try:
            asked = getattr(self.relations, verb)(source, target)
        except Refused as refusal:
            if refusal.code == "suspended" or source not in self.ground.people:
                raise
            if refusal.code == "not_found":
                return target, "not_found"
            return target, "oneself" if source == target else "blocked"
        return target, "requested" if asked else f"{verb}ed"

    def follow_listed(self, source: str, target: str, list_id: str) -> None:
        """Follow, or request to, and put the user on a list. One refusal refuses both."""
        self.relations.may_follow(source, target)
        named = self.lists.mine(source, list_id)
        self.relations.follow(source, target)
        self.lists.put(named, target)

    def unfollow_listed(self, source: str, target: str, list_id: str) -> None:
        self.relations.check(source, target)
        named = self.lists.mine(source, list_id)
        self.relations.unfollow(source, target)
        self.lists.take(named, target)
