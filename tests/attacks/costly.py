"""Attacks with rules and texts that were chosen to be slow."""

import itertools
import string
from functools import partial

from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

LETTERS = string.ascii_lowercase + string.digits
MAX_RULE_CHARS = 1024
LINKS = " ".join(f"http://a.co/{'-'.join(LETTERS[at : at + 12])}" for at in (0, 6, 12, 18, 24))
"""The message of a status with as many words in links as fit."""

PERIODIC = "tea b " + "a " * 130
"""A message in which each search for a nearly periodic phrase takes long."""


def rule(first: str, *operators: str) -> str:
    """Return a rule of ``first`` and as many of the operators, repeated, as fit into a rule."""
    text, nth = first, 0
    while len(longer := f"{text} {operators[nth % len(operators)]}") <= MAX_RULE_CHARS:
        text, nth = longer, nth + 1
    return text


def phrase_rule(nth: int) -> str:
    """Return a rule that matches PERIODIC at the end of all its slow searches. Rules with other numbers differ."""
    phrases = [f'-"{"a " * length}b"' for length in range(3, 9)]
    return rule(f"tea -x{nth}", *phrases)


def link_rule(nth: int) -> str:
    return rule(f"http -x{nth}", *(f"-url:{letter}x" for letter in LETTERS))


async def explain(api: Api) -> int:
    """Ask why long rules do not match made-up statuses. Return the number of answers with status 200."""
    uid = await api.user()
    words = rule("a", *("".join(pair) for pair in itertools.product(LETTERS, LETTERS)))
    phrases = rule("a", *(f'"{one} {other}"' for one, other in itertools.pairwise(LETTERS)))
    bodies = [{"rule": text, "status": {"message": LINKS}} for text in (phrases, words, link_rule(0))]
    answers = [await api.call("POST", "/v1/rules/explain", token=mint(uid), json=body) for body in bodies * 10]
    return sum(answer.status == 200 for answer in answers)


async def unbounded_explain(api: Api) -> int:
    """Send a made-up status of 60 KB. Return the status of the answer."""
    uid = await api.user()
    message = " ".join(f"http://a.co/{nth}" for nth in range(4000))
    body = {"rule": link_rule(0), "status": {"message": message}}
    return (await api.call("POST", "/v1/rules/explain", token=mint(uid), json=body)).status


async def saved_rules(api: Api) -> list[str]:
    """Open two streams with 200 long rules each, and post what is slow to match. Return the codes of warnings."""
    uids = [await api.user() for _ in range(2)]
    for uid in uids:
        for start in range(0, 200, 50):
            body = {"rules": [{"rule": phrase_rule(nth)} for nth in range(start, start + 50)]}
            await eventually(partial(_are_saved, api, uid, body), what=f"200 rules of {uid}")
    streams = [await api.stream({"rules": "saved"}, uid=uid) for uid in uids]
    for _ in range(5):
        await api.post(uids[0], PERIODIC)
    codes = []
    for stream in streams:
        await stream.until(lambda c: c.of("warning") or len(c.events) >= 5)
        codes += [str(warning["code"]) for warning in stream.of("warning")]
        await stream.close()
    return codes


async def _are_saved(api: Api, uid: str, body: object) -> bool:
    """Send rules, and return whether the server took them. It refuses more than the share of processor time."""
    answer = await api.call("POST", "/v1/rules", token=mint(uid), json=body)
    assert answer.status in {201, 429}, answer
    return answer.status == 201


async def long_parameters(api: Api) -> list[int]:
    """Open four streams with a hundred long rules each. Return the statuses of the answers.

    A user who has taken too much processor time gets 429. How many streams that takes depends on the machine.
    """
    uid = await api.user()
    headers = {"Authorization": f"Bearer {mint(uid)}"}
    statuses = []
    for attempt in range(4):
        rules = [("rule", phrase_rule(attempt * 1000 + nth)) for nth in range(100)]
        async with api.session.post("/v1/stream", data=rules, headers=headers) as answer:
            await answer.content.readline()  # `hello`, or the error
            statuses.append(answer.status)
    return statuses
