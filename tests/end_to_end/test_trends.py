"""Trends of a real server: from posts to the answer, also after a restart."""

import uuid
from pathlib import Path

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.waiting import eventually

pytestmark = pytest.mark.extended

AUTHORS = 3


async def test_a_tag_of_many_authors_is_a_trend_also_after_a_restart(own_folder: Path) -> None:
    """The counts come back from the log's newest entries when the server starts again."""
    tag = "t" + uuid.uuid4().hex[:12]
    for is_first in (True, False):
        async with Server(own_folder) as server, Api(server) as api:
            if is_first:
                await api.post(api.admin, "the first entry of a log is not read again")
                ids = await api.users([f"{tag}{n}"[:20] for n in range(AUTHORS)])
                for uid in ids.values():
                    await api.post(uid, f"a kettle of #{tag}")
                for _ in range(5):
                    await api.post(api.admin, "#spam all day long")

            async def shows(kind: str, text: str, api: Api = api) -> bool:
                found = await api.done("GET", f"/v1/trends?kind={kind}", token=mint(api.admin))
                assert "spam" not in {trend["text"] for trend in found["trends"]}
                shown = {trend["text"]: trend["count"] for trend in found["trends"]}
                return bool(shown.get(text) == AUTHORS and found["posts"] >= AUTHORS + 5)

            await eventually(lambda: shows("tag", tag), what="a tag")
            await eventually(lambda: shows("word", "kettle"), what="a word")
