"""The part of PromQL that the alert rules use, over samples of a test. It is an oracle only for their shapes.

A vector maps label sets to numbers. ``rate`` and ``increase`` need two samples, as in Prometheus, and extrapolate
nothing.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

STALE_SECONDS = 300
TOKEN = re.compile(r'\s*("[^"]*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|=~|!~|!=|==|>=|<=|[-+/(){}\[\],<>=])')
SECONDS = {"s": 1, "m": 60, "h": 3600}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b, "<": lambda a, b: a < b, "==": lambda a, b: a == b,
}  # fmt: skip
JOINS: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}
MATCHES: dict[str, Callable[[str, str], bool]] = {
    "=": lambda value, wanted: value == wanted,
    "=~": lambda value, wanted: re.fullmatch(wanted, value) is not None,
    "!~": lambda value, wanted: re.fullmatch(wanted, value) is None,
}


class Samples:
    """What Prometheus has scraped from one server."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, Labels], list[tuple[float, float]]] = defaultdict(list)

    def scrape(self, at: float, text: str, *, up: int = 1) -> None:
        """Take the samples of a scrape at a time in seconds; ``up`` is 0 if the server did not answer."""
        target = {"job": "stream-server", "instance": "10.0.0.11:8000"}
        self._series["up", frozenset(target.items())].append((at, up))
        for family in text_string_to_metric_families(text if up else ""):
            for sample in family.samples:
                labels = frozenset({**sample.labels, **target}.items())
                self._series[sample.name, labels].append((at, sample.value))

    def select(
        self, name: str, matchers: Iterable[tuple[str, str, str]], begin: float, end: float
    ) -> dict[Labels, list[float]]:
        """Return the values of the matching series after ``begin`` and up to ``end``, oldest first."""
        found = {}
        for (of, labels), samples in self._series.items():
            own = dict(labels)
            if of == name and all(MATCHES[op](own.get(label, ""), wanted) for label, op, wanted in matchers):
                values = [value for at, value in samples if begin < at <= end]
                if values:
                    found[labels] = values
        return found


class Evaluation:
    """Evaluates one expression at one moment."""

    def __init__(self, expression: str, samples: Samples, now: float) -> None:
        self._tokens = TOKEN.findall(expression)
        assert "".join(self._tokens) == re.sub(r"\s", "", expression), expression
        self._samples, self._now = samples, now

    def value(self) -> Vector:
        """Return the vector of the whole expression. It is empty if an alert does not fire."""
        result = self._any()
        assert not self._tokens, self._tokens
        return result

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self, expected: str = "") -> str:
        token: str = self._tokens.pop(0)
        assert expected in {"", token}, (expected, token)
        return token

    def _any(self) -> Vector:
        left = self._all()
        while self._next() == "or":
            self._take()
            left = {**self._all(), **left}
        return left

    def _all(self) -> Vector:
        left = self._comparison()
        while self._next() == "and":
            self._take()
            right = self._comparison()
            left = {labels: value for labels, value in left.items() if labels in right}
        return left

    def _comparison(self) -> Vector:
        left = self._quotient()
        if self._next() in COMPARISONS:
            holds, bound = COMPARISONS[self._take()], float(self._take())
            left = {labels: value for labels, value in left.items() if holds(value, bound)}
        return left

    def _quotient(self) -> Vector:
        left = self._operand()
        if self._next() == "/":
            self._take()
            right = self._operand()
            left = {
                labels: value / right[labels] if right[labels] else float("nan")
                for labels, value in left.items() if labels in right
            }  # fmt: skip
        return left

    def _operand(self) -> Vector:
        word = self._take()
        if word == "(":
            return self._closed(self._any())
        if word in {"sum", "max", "min"}:
            return self._aggregate(JOINS[word])
        if word in {"rate", "increase", "min_over_time", "max_over_time"}:
            self._take("(")
            return self._closed(self._over_time(word))
        if word == "histogram_quantile":
            self._take("(")
            share = float(self._take())
            self._take(",")
            return self._closed(quantiles(share, self._any()))
        chosen = self._samples.select(word, self._matchers(), self._now - STALE_SECONDS, self._now)
        return {labels: values[-1] for labels, values in chosen.items()}

    def _closed(self, vector: Vector) -> Vector:
        self._take(")")
        return vector

    def _aggregate(self, join: Callable[[list[float]], float]) -> Vector:
        kept = set()
        self._take("by")
        while self._take() != ")":
            kept.add(self._next())
        self._take("(")
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in self._closed(self._any()).items():
            groups[frozenset(pair for pair in labels if pair[0] in kept)].append(value)
        return {labels: join(values) for labels, values in groups.items()}

    def _over_time(self, function: str) -> Vector:
        name, matchers = self._take(), self._matchers()
        self._take("[")
        count, unit = float(self._take()), SECONDS[self._take()]
        self._take("]")
        seconds = count * unit
        chosen = self._samples.select(name, matchers, self._now - seconds, self._now)
        if function in {"min_over_time", "max_over_time"}:
            return {labels: (min if function == "min_over_time" else max)(values) for labels, values in chosen.items()}
        gains = {labels: values[-1] - values[0] for labels, values in chosen.items() if len(values) > 1}
        return {labels: gain / (seconds if function == "rate" else 1) for labels, gain in gains.items()}

    def _matchers(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        if self._next() != "{":
            return found
        while self._take() != "}":
            if self._next() != "}":
                found.append((self._take(), self._take(), self._take().strip('"')))
        return found


def quantiles(share: float, buckets: Vector) -> Vector:
    """Return the upper bound of the bucket with this share of each histogram."""
    histograms: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in buckets.items():
        rest = frozenset(pair for pair in labels if pair[0] != "le")
        histograms[rest].append((float(dict(labels)["le"]), count))
    found = {}
    for labels, counts in histograms.items():
        ordered = sorted(counts)
        if ordered[-1][1]:
            found[labels] = next(bound for bound, count in ordered if count >= share * ordered[-1][1])
    return found
