"""All nouns of the model together."""

from tests.property.model.comments import Comments
from tests.property.model.ground import Ground, Refused
from tests.property.model.groups import Groups
from tests.property.model.lists import Lists
from tests.property.model.marks import Marks
from tests.property.model.notices import Notices
from tests.property.model.people import People
from tests.property.model.posts import Posts
from tests.property.model.relations import Relations
from tests.property.model.sight import Eyes
from tests.property.model.talks import Talks
from tests.property.model.timelines import Timelines


class World:
    """The whole model; ``cap`` is the length of a timeline."""

    def __init__(self, cap: int) -> None:
        self.ground = Ground(cap)
        self.eyes = Eyes(self.ground)
        self.notices = Notices(self.ground, self.eyes)
        self.timelines = Timelines(self.ground, self.eyes)
        self.people = People(self.ground, self.eyes)
        self.relations = Relations(self.ground, self.eyes, self.timelines, self.notices)
        self.posts = Posts(self.ground, self.eyes, self.timelines, self.notices)
        self.marks = Marks(self.ground, self.eyes, self.notices)
        self.comments = Comments(self.ground, self.eyes, self.notices)
        self.lists = Lists(self.ground, self.eyes, self.timelines)
        self.groups = Groups(self.ground, self.eyes)
        self.talks = Talks(self.ground, self.eyes)

    def batched(self, verb: str, source: str, target: str) -> tuple[str, str]:
        """One of a batch: refusals that concern it alone are its outcome."""
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
        """Follow, or ask to, and put on a list; one refusal refuses both."""
        self.relations.may_follow(source, target)
        roll = self.lists.mine(source, list_id)
        self.relations.follow(source, target)
        self.lists.put(roll, target)

    def unfollow_listed(self, source: str, target: str, list_id: str) -> None:
        """Unfollow, and take from a list."""
        self.relations.check(source, target)
        roll = self.lists.mine(source, list_id)
        self.relations.unfollow(source, target)
        self.lists.take(roll, target)
