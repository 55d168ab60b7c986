"""A wrong clock of this machine is told: by the times of tokens that others signed."""

import pytest

from stream_server.errors import Unauthorized
from stream_server.security.clock_check import TOKENS_LATE
from stream_server.security.tokens import TokenAuthority
from tests.stream_server import tokens

NOW = tokens.NOW


def shown(authority: TokenAuthority, user: str, **claims: object) -> bool:
    """Show a token of a user. Return whether it is accepted."""
    try:
        authority.verify(tokens.token(tokens.payload(NOW, sub=user, **claims)), NOW)
    except Unauthorized:
        return False
    return True


WRONG_TIMES = {
    "expired": {"iat": int(NOW) - 7200, "exp": int(NOW) - 3600},
    "issued in the future": {"iat": int(NOW) + 60, "exp": int(NOW) + 3600},
    "valid in the future": {"nbf": int(NOW) + 60},
}


@pytest.mark.parametrize("claims", WRONG_TIMES.values(), ids=WRONG_TIMES)
def test_tokens_of_several_users_with_wrong_times_make_the_clock_suspect(
    claims: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    authority = TokenAuthority(tokens.config(), tokens.SECRET)
    for user in ("1", "1", "1", "2"):
        assert not shown(authority, user, **claims)
        assert authority.clock_check.warnings == ()
    for user in ("3", "4", "5"):
        assert not shown(authority, user, **claims)
        assert authority.clock_check.warnings == (TOKENS_LATE,)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [TOKENS_LATE]
    assert shown(authority, "6")
    assert authority.clock_check.warnings == ()
    for user in ("1", "2", "3"):
        assert not shown(authority, user, **claims)
        assert authority.clock_check.warnings == (), "the token of 6 is still valid"


def test_other_faults_say_nothing_of_the_clock() -> None:
    authority = TokenAuthority(tokens.config(), tokens.SECRET)
    for user in ("1", "2", "3", "4"):
        assert not shown(authority, user, iss="another")
    for user in ("1", "2", "3", "4"):
        forged = tokens.token(tokens.payload(NOW, sub=user, exp=int(NOW) - 1), key="x" * 64)
        with pytest.raises(Unauthorized):
            authority.verify(forged, NOW)
    assert authority.clock_check.warnings == ()
