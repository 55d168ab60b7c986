"""A user who opens many sockets takes no more of a server than by one, and an honest user goes on."""

from pathlib import Path

import pytest

from tests.attacks.arena import arena
from tests.attacks.sockets import attacking
from tests.waiting import eventually

pytestmark = pytest.mark.extended

ROUNDS = 20

SOCKETS = 31

BURST = 100
"""Answers after which the attacker has used up what it may take at once."""


async def test_many_sockets_of_a_user_get_no_more_than_one(tmp_path: Path) -> None:
    """While the honest client does its rounds, the answers to the attacker are counted.

    With limits for each socket alone, 31 sockets got hundreds of times as many, because they also held up the rounds.
    """
    answered = {}
    async with arena(tmp_path, defended=True) as site:
        for sockets in (1, SOCKETS):
            async with attacking(site.server, await site.api.user(), sockets) as attack:
                await eventually(lambda attack=attack: attack.answered > 0, what="an answer to the attacker")  # type: ignore[misc]  # this attack
                for _ in range(ROUNDS):
                    await site.honest.round()
                answered[sockets] = attack.answered
    assert answered[SOCKETS] <= 3 * answered[1] + BURST, answered
