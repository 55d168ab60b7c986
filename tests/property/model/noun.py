"""What every noun of the model works with."""

from tests.property.model.access import Access
from tests.property.model.notices import Notices
from tests.property.model.state import State
from tests.property.model.timelines import Timelines


class Noun:
    """A part of the model: it changes the state by the rules of visibility, and timelines and notifications with it."""

    def __init__(self, ground: State, access: Access, timelines: Timelines, notices: Notices) -> None:
        self._state = ground
        self._access = access
        self._timelines = timelines
        self._notices = notices
