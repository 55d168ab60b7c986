"""JSON that is nested too deeply is refused at the same depth on every Python."""

import pytest

from stream_server.errors import BadRequest
from stream_server.web.http.body import MAX_JSON_DEPTH, refuse_deep_json


@pytest.mark.parametrize("opening", ["[", '{"a":', '["]}",'])
def test_the_last_level_is_read_and_the_next_is_refused(opening: str) -> None:
    """Open brackets of both kinds count, closed ones do not."""
    refuse_deep_json((opening * MAX_JSON_DEPTH).encode())
    with pytest.raises(BadRequest, match="nested too deeply"):
        refuse_deep_json((opening * MAX_JSON_DEPTH + "[").encode())


@pytest.mark.parametrize(
    "body", ["[" + "[]," * 1000 + "[]]", '["' + "[" * 1000 + '"]', '["' + '\\"[' * 1000 + '"]', '{"a": "' + "{" * 1000]
)
def test_many_brackets_side_by_side_or_in_texts_are_not_deep(body: str) -> None:
    """Only nested brackets count."""
    refuse_deep_json(body.encode())
