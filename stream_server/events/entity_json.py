"""The ``entities`` member of a status as JSON, in pieces between which the ids of mentioned users can be put."""

import msgspec

from filters.entities import Entities

_encode = msgspec.json.encode


def entity_pieces(entities: Entities) -> list[bytes]:
    """Return the entities as JSON, cut after the login of each mention.

    There is one piece more than there are mentions. Joined as they are, the pieces are valid JSON without user ids.
    """
    mentions = [_encode({"login": m.login, "indices": m.indices}) for m in entities.mentions]
    heads = [b'{"login":%b' % _encode(m.login) for m in entities.mentions]
    pieces, rest = [], b'{"mentions":['
    for number, (mention, head) in enumerate(zip(mentions, heads, strict=True)):
        pieces.append(rest + (b"," if number else b"") + head)
        rest = mention[len(head) :]
    others = {
        "hashtags": [{"text": tag.text, "indices": tag.indices} for tag in entities.hashtags],
        "cashtags": [{"text": tag.text, "indices": tag.indices} for tag in entities.cashtags],
        "urls": [
            {"url": u.url, "display_url": u.display_url, "expanded_url": u.expanded_url, "indices": u.indices}
            for u in entities.urls
        ],
    }
    return [*pieces, rest + b"]," + _encode(others)[1:]]
