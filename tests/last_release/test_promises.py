"""What the last release offered to programs and people is still there. ``docs/release.md`` has the promises."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.clients.npm import TEST_SECONDS
from tests.end_to_end.server import ROOT, environment
from tests.last_release.client_types import PREFIX, type_facts
from tests.last_release.code import FACTS, git, last_release, unpack, variables
from tests.last_release.surface import CONSOLE, facts

FETCH = "the extra `server` installs a Valkey and the model that detects languages"

CLUSTER = "it is a program of the checkout, `make cluster`: a package for servers needs no cluster to try"

GENERATED = "servers take it, and the document only names it: generated code had two arguments of one name"

TYPED = "the document says the form of each message"

GREW = "it has one more, by which clients learn that an account is deleted"

REMOVED = {
    "command stream-server cluster demo --port VALUE": CLUSTER,
    "command stream-server cluster demo needs: nothing": CLUSTER,
    "command stream-server cluster needs: nothing": CLUSTER,
    "object Deed has deed: 'create_users' | 'decide' | 'grant_admin' | 'ingest' | 'reinstate' | 'revoke_admin' | "
    "'suspend'": GREW,
    "object ErrorDetail has code: 'conflicting_parameters' | 'duplicate' | 'email_taken' | 'insufficient_scope' | "
    "'internal' | 'invalid_cursor' | 'invalid_parameter' | 'invalid_token' | 'login_taken' | 'malformed_body' | "
    "'method_not_allowed' | 'missing_parameter' | 'not_acceptable' | 'not_found' | 'not_yours' | 'origin_not_allowed' "
    "| 'outcome_unknown' | 'rate_limited' | 'suspended' | 'token_expired' | 'token_revoked' | 'too_large' | 'too_many' "
    "| 'unanswered' | 'unavailable' | 'unknown_parameter' | 'unsupported_media_type' | 'upgrade_required' | "
    "'wrong_password'": GREW,
    "object ReportedContent has user: User": "it is null if the account is deleted",
    "route GET /v1/admin/suspensions answers 200 application/json: UserPage": "each user has a suspension, too",
    "route POST /v1/ingest takes application/x-ndjson: BlockLine | DeleteLine | FollowLine | MuteLine | PostLine | "
    "ReinstateLine | SuspendLine | UnblockLine | UnfollowLine | UnmuteLine | UserLine": GREW,
    "command stream-server export needs: since, target": "a lake begins by default with the oldest entry of the log",
    "command stream-server fetch --json": FETCH,
    "command stream-server fetch names VALUE": FETCH,
    "command stream-server fetch names cld2": FETCH,
    "command stream-server fetch names valkey-server": FETCH,
    "command stream-server fetch needs: nothing": FETCH,
    "command stream-server token needs: login": "a reader token has no user, so --reader takes its place",
    "operator has: hashtags, cashtags, links, mentions, media, images, video_link, geo": GREW,
    "object PolledEvents has events: [object]": TYPED,
    "object PasswordChange has current_password: string": "it is `password`, as the design of the wire says",
    "object PasswordChange needs: current_password, password": "they are `password` and `new_password`",
    "route DELETE /v1/streams/{connection} takes header Idempotency-Key: string": "it never had an effect",
    "route PUT /v1/users/me/password takes header Idempotency-Key: string": "it never had an effect",
    **{
        f"route {method} {path} takes query lastEventId: string": GENERATED
        for method in ("GET", "POST")
        for path in ("/v1/events", "/v1/stream", "/v1/stream/user")
    },
    **{
        f"route {method} {path} answers 200 {media_type}: string": TYPED
        for method in ("GET", "POST")
        for path in ("/v1/stream", "/v1/stream/user")
        for media_type in ("application/x-ndjson", "text/event-stream")
    },
}
"""Facts of the last release that are gone, each with the reason. The CHANGELOG has them, too."""


PROMISED = {
    "types ApiError.code", "types Client takes 2: options", "types Client.request needs 2 arguments",
    "types Client.request takes 3: more", "types Client.stream takes 2: options", "types ClientOptions.WebSocket?",
    "types RequestOptions.body?", "types SessionStore needs: load, lock, save", "types Stream.[Symbol.asyncIterator]",
    "types Stream.cursor", "types Stream.update takes 1: parameters", "types StreamOptions.path?", "types Gap.reason",
}  # fmt: skip
"""Some facts of the JavaScript client, of each form, that its page shows."""


def _before() -> list[str]:
    return FACTS.read_text(encoding="utf-8").splitlines()[1:]


def _gone(present: Iterable[str], *, types: bool) -> set[str]:
    """Return the facts of the last release that this version lacks: those of the types of JavaScript, or the others."""
    return {fact for fact in _before() if fact.startswith(PREFIX) == types} - {*present}


def test_only_what_is_listed_is_gone() -> None:
    """No setting, command, metric, route, member, error code or name for programs is gone or means something else.

    A line of the list that a change has left behind would hide a later removal.
    """
    assert _gone(facts(), types=False) == {fact for fact in REMOVED if not fact.startswith(PREFIX)}


@pytest.mark.extended
@pytest.mark.timeout(TEST_SECONDS)
def test_only_what_is_listed_is_gone_from_the_javascript_client() -> None:
    """No name and no argument is gone. A release before the package for npm has none that its types declare."""
    present = type_facts(CONSOLE)
    assert _gone(present, types=True) == {fact for fact in REMOVED if fact.startswith(PREFIX)}
    assert PROMISED - {*present} == set()


def test_the_last_release_is_the_newest_tag() -> None:
    """After a tag, the next commit makes it the last release. Without tags, or without history, nothing is compared."""
    tag = git("describe", "--tags", "--match", "v[0-9]*", "--abbrev=0", "HEAD^")
    if tag is None:
        pytest.skip("no tag of a release before this commit")
    assert tag.decode().strip() == f"v{last_release().version}"


@pytest.mark.extended
@pytest.mark.timeout(TEST_SECONDS)
def test_the_facts_are_those_of_its_code(tmp_path: Path) -> None:
    """The program of this version finds the written facts in the code of the last release."""
    code = unpack()
    program = f"import sys; sys.path.append({str(ROOT)!r}); from tests.last_release import surface; surface.main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment() | variables(code), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted([*done.stdout.splitlines(), *type_facts(code / "stream_server" / "console")]) == _before()
