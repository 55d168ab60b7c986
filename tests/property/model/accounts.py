"""Accounts that are deleted, with all that belongs to them."""

from tests.property.model.comments import Comments
from tests.property.model.noun import Noun
from tests.property.model.posts import Posts
from tests.property.model.state import Refused


class Accounts(Noun):
    """The deletion of accounts in the model. The jobs run at once."""

    def delete(self, uid: str, posts: Posts, comments: Comments) -> None:
        """Remove a user. Posts and comments on posts of others have an event each, and relations have none."""
        state = self._state
        if uid not in state.people:
            raise Refused("not_found")
        state.log_event("suspend", "-", uid=uid)
        state.log_event("user_delete", "public", user=uid)
        for pairs in (state.follows, state.asks, state.blocks, state.mutes, state.likes, state.favorites):
            for pair in [pair for pair in pairs if uid in pair]:
                del pairs[pair]
        self._timelines.erased(uid)
        for status in [one for one in state.statuses.values() if one.uid == uid]:
            posts.remove(status)
        for comment in [one for one in state.comments.values() if one.uid == uid]:
            comments.remove(comment)
        self._leave_circles(uid)
        self._leave_talks(uid)
        self._notices.forget(uid)
        self._timelines.forget(uid)
        del state.people[uid]

    def _leave_circles(self, uid: str) -> None:
        """Delete the lists of the user. The groups pass to the member in good standing who joined first."""
        state = self._state
        for named in [*state.lists.values()]:
            named.members.pop(uid, None)
            if named.uid == uid:
                del state.lists[named.id]
                self._timelines.dropped(named.id)
        for group in [one for one in state.groups.values() if uid in one.members]:
            del group.members[uid]
            if group.uid != uid:
                continue
            heirs = [one for one in group.members if not state.people[one].suspended]
            if heirs:
                group.uid = min(heirs, key=lambda one: group.members[one])
                state.log_event("group_update", f"group:{group.id}", group=group.id)
            else:
                del state.groups[group.id]
                state.log_event("group_delete", f"group:{group.id}", group=group.id)

    def _leave_talks(self, uid: str) -> None:
        """Remove the messages of the user. A talk stays as long as another user has it."""
        state = self._state
        for talk in [one for one in state.talks.values() if uid in one.people]:
            talk.messages[:] = [message for message in talk.messages if message[1] != uid]
            talk.marks.pop(uid, None)
            if not any(other in state.people for other in talk.people - {uid}):
                del state.talks[talk.id]
