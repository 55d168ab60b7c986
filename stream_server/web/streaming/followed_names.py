"""Names of users in the filter ``follow``: logins, and ids of another site.

When a stream opens, they become ids, and an unknown name is refused.
A login never changes and an id of another site never names another user, so the ids hold for the whole stream.
"""

from collections.abc import Mapping

from filters.base import split_list
from filters.error import ParameterError
from filters.follow import MAX_IDS, ME, USER_ID
from stream_server.store.social.users import Users
from stream_server.web.http.fields import FOREIGN_ID_PATTERN, LOGIN_PATTERN

FOREIGN = "foreign:"
"""Beginning of an entry that has the id of another site. No login has a colon."""

PARAMETER = "follow"


async def resolve_followed(users: Users, parameters: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters with user ids in the place of logins and ``foreign:<id>`` in ``follow``.

    Without names, Redis is not asked. Raises ParameterError for an entry of another form, for an unknown name, and for
    too many entries.
    """
    names = find_names(parameters.get(PARAMETER, ""))
    if not names:
        return parameters
    items = split_list(parameters[PARAMETER], param=PARAMETER, max_items=MAX_IDS, noun="ids")
    for name in names:
        pattern = FOREIGN_ID_PATTERN if name.startswith(FOREIGN) else LOGIN_PATTERN
        if not pattern.fullmatch(name.removeprefix(FOREIGN)) or name.isdecimal():
            message = f"follow takes user ids, logins, {FOREIGN} with an id of another site, and @me, not {name[:40]!r}"
            raise ParameterError(message, param=PARAMETER)
    logins = [name for name in names if not name.startswith(FOREIGN)]
    foreign_ids = [name.removeprefix(FOREIGN) for name in names if name.startswith(FOREIGN)]
    by_login, by_foreign_id = await users.resolve_names(logins, foreign_ids)
    known = {name: by_login.get(name.lower()) for name in logins}
    known |= {FOREIGN + foreign_id: by_foreign_id.get(foreign_id) for foreign_id in foreign_ids}
    for name in names:
        if known[name] is None:
            raise ParameterError(f"no user is named {name[:140]!r}", param=PARAMETER)
    return {**parameters, PARAMETER: ",".join(known.get(item) or item for item in items)}


def find_names(text: str) -> list[str]:
    """Return the entries of ``follow`` that are no ids. Raises ParameterError for too many entries."""
    if not text or text.replace(",", "").isdecimal():
        return []
    items = split_list(text, param=PARAMETER, max_items=MAX_IDS, noun="ids")
    return [item for item in items if item != ME and not USER_ID.fullmatch(item)]
