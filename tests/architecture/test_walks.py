"""A deed runs through few functions and files."""

import pytest

from tests.architecture.walks import walks

CEILINGS = {"post": (63, 25), "event": (53, 22), "stream": (111, 43)}
"""Most functions and files of each walk. Lower them with the walks, and raise none.

Without the loop in C, an event runs through two more files.
"""

SLACK = 6
"""A walk that is shorter than its ceiling by more functions than this asks for a lower ceiling."""


def test_the_walks_are_no_longer_than_they_were(redis_url: str, subtests: pytest.Subtests) -> None:
    """``python -m tests.architecture.walks`` lists the functions of each walk."""
    for deed, walk in walks(redis_url).items():
        functions, files = CEILINGS[deed]
        with subtests.test(deed=deed):
            assert len(walk.functions) <= functions, walk.describe(deed)
            assert len(walk.files) <= files, walk.describe(deed)
            shorter = f"the ceiling of {deed!r} can be {len(walk.functions)}, {len(walk.files)}"
            assert len(walk.functions) >= functions - SLACK, shorter
            assert len(walk.files) >= files - SLACK, shorter
