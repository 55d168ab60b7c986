"""The JSON of entities in pieces is the JSON that an encoder makes of them."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from filters.entities import extract_entities
from stream_server.events.status_json import entity_pieces

WORDS = st.sampled_from(
    ["@ada", "@Bob_7", "\uff20eve", "#tag", "#d\u00e9j\u00e0", "$TWTR", 'http://a.co/"x', "a.b", "\U0001f60d", "word"]
)


@given(st.lists(WORDS | st.text(max_size=5), max_size=12).map(" ".join))
def test_the_pieces_are_the_encoded_entities(text: str) -> None:
    found = extract_entities(text)
    pieces = entity_pieces(found)
    whole = {name: [each._asdict() for each in family] for name, family in found._asdict().items()}
    assert b"".join(pieces) == msgspec.json.encode(whole)
    for mention, piece in zip(found.mentions, pieces, strict=False):
        assert piece.endswith(b'"login":"%b"' % mention.login.encode())
    assert len(pieces) == len(found.mentions) + 1
