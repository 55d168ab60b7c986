"""The other commit of a comparison."""

import pytest

from bench import against
from bench.site import ROOT


@pytest.mark.extended
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the checkout has no history")
def test_a_commit_is_copied_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is a checkout of its own."""
    monkeypatch.setattr(against, "_python_of", lambda _: "python")
    with against.checkout("HEAD") as other:
        assert (other.folder / "stream_server" / "__init__.py").exists()
        assert other.name
        assert other.python == "python"
    assert not other.folder.exists()
