"""How the mentions of a text are passed to a script, which looks up the ids of the users."""

from filters.entities import Entities
from stream_server.events.entity_json import entity_pieces


def mention_arguments(entities: Entities) -> list[str | bytes | int]:
    """Return the arguments of ``lua/parts/mentions.lua``.

    These are the number of mentions, their logins in lower case, and the JSON of the entities cut into pieces. The
    script puts the ids of the mentioned users between the pieces.
    """
    return [len(entities.mentions), *(mention.login.lower() for mention in entities.mentions), *entity_pieces(entities)]
