"""All filters of one client together, and how they are parsed from the parameters of its stream."""

from collections.abc import Collection, Hashable, Iterator, Mapping
from functools import lru_cache, reduce
from typing import NamedTuple

from filters.base import ROLES, Filter, FilterFailure, MatchedItem, validate_index_terms
from filters.error import ParameterError
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import IndexTerms, Key
from filters.location import Location
from filters.narrowing import DEFAULT_KINDS, KINDS, Kinds, Language
from filters.parts import Parts
from filters.possible_kinds import kinds_in_languages, possible_kinds
from filters.registry import Registry
from filters.rule import Rules
from filters.rules.words import WORD_OPERATOR_HINT
from filters.suggestion import did_you_mean
from filters.tables import whole_language
from filters.track import Track

ALWAYS_INDEXED = frozenset({Track, Follow, Location})
"""Filters that always have index terms, so that nobody must compute these to know it."""

NEVER_MATCHES = "never_matches"
"""Code of the doubt about a filter, or about terms or rules of it, that can match nothing."""

WORD_OPERATOR = "word_operator"
"""Code of the doubt about rules with the words ``or``, ``and`` and ``not``, which other languages use as operators."""


class Doubt(NamedTuple):
    """A filter that probably does not do what was meant. ``terms`` are its doubtful terms or rules, empty for all.

    ``code`` is :data:`NEVER_MATCHES` or :data:`WORD_OPERATOR`.
    """

    code: str
    filter: str
    terms: tuple[str, ...]
    message: str


class _Narrowing(NamedTuple):
    """Narrowing filters and their summary. Subscriptions with equal ones share it, because its key takes 300 bytes."""

    filters: tuple[Filter, ...]
    key: Hashable
    kinds: frozenset[str]
    scopes: frozenset[str]


@lru_cache(64)
def _summarize(narrowing: tuple[Filter, ...]) -> _Narrowing:
    kind_sets = [part.kinds for part in narrowing if isinstance(part, Kinds)]
    return _Narrowing(
        narrowing,
        frozenset([(type(part), part.canonical_form) for part in narrowing]),
        reduce(frozenset.__and__, kind_sets) if kind_sets else frozenset(KINDS),
        frozenset[str]().union(*[part.scopes for part in narrowing]),
    )


class Subscription:
    """All filters of one client. An event matches if it matches one of the bases and passes all narrowing filters.

    Immutable. Two subscriptions are equal if they have the same filters in any order and the same options.

    Attributes:
        bases: The combinable filters, or the one standalone filter.
        narrowing: The narrowing filters. An event must match all of them in addition to one of the bases.
        explain: Whether the client asked for the reasons of each match.
        viewer_independent: Whether every user gets the same events: public ones only, regardless of blocks and mutes.
            The default is True for a standalone base.
        reports_matches: Whether messages list the matched items.
        narrowing_key: Canonical form of ``narrowing``. The index checks equal narrowing filters once per event.
        canonical_form: Hashable form of all filters and options. Clients with equal forms get the same events.
        kinds: The kinds of events that can match.
        required_scopes: The scopes that a token needs to use all filters of the subscription.
        uses_me: Whether the client wrote ``follow=@me``, so that the matches depend on the users whom it follows.
    """

    __slots__ = (
        "_plugin_index_terms", "_unindexed_bases", "bases", "canonical_form", "explain", "kinds", "narrowing",
        "narrowing_key", "reports_matches", "required_scopes", "uses_me", "viewer_independent",
    )  # fmt: skip

    def __init__(
        self,
        bases: Collection[Filter],
        narrowing: Collection[Filter] = (),
        *,
        explain: bool = False,
        viewer_independent: bool | None = None,
    ) -> None:
        self.bases = tuple(bases)
        self.explain = explain
        self.narrowing, self.narrowing_key, self.kinds, self.required_scopes = _summarize(tuple(narrowing))
        self.uses_me, self.reports_matches, is_standalone = False, explain, True
        for base in self.bases:
            if base.scopes:  # a plug-in's may be any collection
                self.required_scopes = self.required_scopes.union(base.scopes)
            self.uses_me |= isinstance(base, Follow) and base.includes_me
            self.reports_matches |= base.reports_matches
            is_standalone &= base.role == "standalone"
        self.viewer_independent = is_standalone if viewer_independent is None else viewer_independent
        self._unindexed_bases: tuple[str, ...] | None = None
        self._plugin_index_terms: tuple[tuple[Filter, IndexTerms | None], ...] = ()
        forms = [(type(base), base.canonical_form) for base in self.bases]
        base_forms = forms[0] if len(forms) == 1 else (frozenset(forms),)
        self.canonical_form: Hashable = (*base_forms, self.narrowing_key, explain, self.viewer_independent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subscription) and other.canonical_form == self.canonical_form

    def __hash__(self) -> int:
        return hash(self.canonical_form)

    def __repr__(self) -> str:
        return f"<Subscription {[*self.bases, *self.narrowing]!r}>"

    def candidate_keys(self) -> frozenset[Key] | None:
        """Return index keys of which every matching event has at least one.

        Returns None if there are none, because one of ``bases`` can match events of any keys.
        """
        found: set[Key] = set()
        for terms in self.index_terms():
            keys = None if terms is None else terms.keys()
            if keys is None:
                return None
            found |= keys
        return frozenset(found)

    def matches(self, event: Event) -> bool:
        """Whether the event matches the subscription. Raises FilterFailure if a filter raises."""
        return self.passes_narrowing(event) and self.matches_base(event)

    def matches_base(self, event: Event) -> bool:
        """Whether the event matches one of the filters in ``bases``. Raises FilterFailure if a filter raises."""
        for base in self.bases:
            try:
                if base.matches(event):
                    return True
            except Exception as error:
                raise _as_filter_failure(base, error) from error
        return False

    def passes_narrowing(self, event: Event) -> bool:
        """Whether the event matches all narrowing filters. Raises FilterFailure if a filter raises."""
        for part in self.narrowing:
            try:
                if not part.matches(event):
                    return False
            except Exception as error:
                raise _as_filter_failure(part, error) from error
        return True

    def matched_items(self, event: Event) -> list[MatchedItem]:
        """Return what matched the event, as JSON objects for the member ``matched`` of a message.

        Matching rules are always listed, other filters only with ``explain``. Raises FilterFailure if a filter raises.
        """
        return [item for base in self.bases for item in self.base_matched_items(base, event)]

    def base_matched_items(self, base: Filter, event: Event) -> list[MatchedItem]:
        """Return what the filter ``base`` adds to a message's member ``matched``. Raises FilterFailure if it raises."""
        try:
            return list(base.explain(event) if self.explain else base.matched_items(event))
        except Exception as error:
            raise _as_filter_failure(base, error) from error

    @property
    def unindexed_bases(self) -> tuple[str, ...]:
        """Names of the combinable filters without index terms. The server must call these filters for every event.

        The result is cached, because computing index terms takes milliseconds. Raises FilterFailure if a filter raises.
        """
        if self._unindexed_bases is None:
            if ALWAYS_INDEXED.issuperset(map(type, self.bases)):
                self._unindexed_bases = ()
            else:
                pairs = zip(self.bases, self.index_terms(), strict=True)
                names = [base.name for base, terms in pairs if base.role == "combinable" and terms is None]
                self._unindexed_bases = tuple(names)
        return self._unindexed_bases

    @property
    def doubts(self) -> list[Doubt]:
        """The filters, terms and rules that probably do not do what was meant: they never match, or are strange."""
        # Each base finds posts, so only terms and rules can fail where these are asked for.
        suspects = [
            base for base in self.bases
            if "post" not in self.kinds or isinstance(base, Rules)
            or (isinstance(base, Track) and base.unmatchable_terms)
        ]  # fmt: skip
        if not suspects:
            return []
        spoken = [part.languages for part in self.narrowing if isinstance(part, Language)]
        kinds = reduce(frozenset.__and__, map(kinds_in_languages, spoken), self.kinds)
        languages = frozenset(map(whole_language, spoken[0])) if spoken else frozenset[str]()
        return [found for base in suspects for found in _doubts_about(base, kinds, languages)]

    def index_terms(self) -> list[IndexTerms | None]:
        """Return the index terms of each filter in ``bases``, in their order. None stands for a filter without terms.

        The result of a plug-in filter is validated and kept, because a second call may raise or answer differently.
        Built-in filters compute their terms each time, so that thousands of ids are not stored twice. Raises
        FilterFailure if a filter raises or if the index cannot hold its terms.
        """
        return [
            base.index_terms() if type(base).__module__.startswith("filters.") else self._plugin_terms(base)
            for base in self.bases
        ]

    def _plugin_terms(self, base: Filter) -> IndexTerms | None:
        for known_base, terms in self._plugin_index_terms:  # by identity: comparing plug-in filters may raise
            if known_base is base:
                return terms
        try:
            terms = validate_index_terms(base.index_terms())
        except Exception as error:
            raise _as_filter_failure(base, error) from error
        self._plugin_index_terms = (*self._plugin_index_terms, (base, terms))
        return terms

    def find_base(self, name: str) -> Filter | None:
        """Return the combinable or standalone filter with this name, or None."""
        return next((base for base in self.bases if base.name == name), None)

    def replace_base(self, new_base: Filter) -> "Subscription":
        """Return a copy in which ``new_base`` replaces the filter with the same name."""
        bases = [new_base if base.name == new_base.name else base for base in self.bases]
        return self._replace_filters(bases, self.narrowing)

    def with_following(self, following: Collection[str]) -> "Subscription":
        """Return a copy in which ``follow=@me`` means the users in ``following``. The caller may change this set later.

        After each change the caller must update every :class:`filters.subscription_index.SubscriptionIndex` that holds
        the subscription.
        """
        bases = [base.with_following(following) if isinstance(base, Follow) else base for base in self.bases]
        return self._replace_filters(bases, self.narrowing)

    def narrowed(self, narrowing: Filter) -> "Subscription":
        """Return a copy with one more narrowing filter."""
        return self._replace_filters(self.bases, (*self.narrowing, narrowing))

    def find_parts(self) -> Parts | None:
        """Return the filter for parts of a shared subscription, or None."""
        return next((part for part in self.narrowing if isinstance(part, Parts)), None)

    def for_everybody(self, narrowing: Filter | None) -> "Subscription":
        """Return a copy that shows each user the same public events, narrowed by one more filter if it is given."""
        parts = self.narrowing if narrowing is None else (*self.narrowing, narrowing)
        changed = Subscription(self.bases, parts, explain=self.explain, viewer_independent=True)
        changed._plugin_index_terms = self._plugin_index_terms
        return changed

    def without_failed(self, failed: FilterFailure) -> "Subscription":
        """Return a copy in which the failed filter matches no event. If one rule failed, only this rule is removed."""

        def remaining(parts: Collection[Filter]) -> list[Filter]:
            return [part.without_failed(failed.rule_id) if part == failed.filter else part for part in parts]

        return self._replace_filters(remaining(self.bases), remaining(self.narrowing))

    def _replace_filters(self, bases: Collection[Filter], narrowing: Collection[Filter]) -> "Subscription":
        changed = Subscription(bases, narrowing, explain=self.explain, viewer_independent=self.viewer_independent)
        changed._plugin_index_terms = self._plugin_index_terms
        return changed


def _doubts_about(base: Filter, kinds: frozenset[str], languages: frozenset[str]) -> Iterator[Doubt]:
    """Yield the doubts about a base of a stream with these kinds, and in one of the languages if any is given."""
    name = base.name
    if possible_kinds(base).isdisjoint(kinds):
        yield Doubt(NEVER_MATCHES, name, (), f"{name} can match no event of these kinds and languages")
    elif isinstance(base, Track) and base.unmatchable_terms:
        terms = base.unmatchable_terms
        yield Doubt(NEVER_MATCHES, name, terms, f"these terms of {name} can match no text: {', '.join(terms)}")
    elif isinstance(base, Rules):
        never, worded = base.unmatchable(kinds, languages), base.with_word_operators()
        if never:
            yield _doubt_rules(NEVER_MATCHES, name, never, "can match no event")
        if worded:
            yield _doubt_rules(WORD_OPERATOR, name, worded, WORD_OPERATOR_HINT)


def _doubt_rules(code: str, name: str, rules: list[str], what: str) -> Doubt:
    told = tuple(rules[:10])
    more = "" if len(rules) == len(told) else f", and {len(rules) - len(told)} more"
    return Doubt(code, name, told, f"these rules of {name} {what}: {', '.join(told)}{more}")


def _as_filter_failure(part: Filter, error: Exception) -> FilterFailure:
    """Return a FilterFailure for the exception of a filter. If the exception names the failed rule, keep its id."""
    if isinstance(error, FilterFailure):
        return FilterFailure(part, error.error, error.rule_id)
    return FilterFailure(part, error)


DEFAULT_FILTER = Kinds.parse(DEFAULT_KINDS)  # for a client that does not write the parameter ``kinds``


def parse_subscription(
    params: Mapping[str, str],
    registry: Registry,
    *,
    explain: bool = False,
    viewer_independent: bool | None = None,
) -> Subscription:
    """Parse the filters of a stream and return the subscription.

    Raises ParameterError if a parameter is invalid, or if the filters cannot be combined: there must be one standalone
    filter, or one or more combinable ones, and all parameters that each of them requires.

    Args:
        params: The filters' parameters by name. Repeated parameters are joined by their separator.
        registry: The filters that a client may use.
        explain: Whether the client asked for the reasons of each match.
        viewer_independent: Whether every user gets the same events. If None: True for a standalone filter, else False.
    """
    filters = _parse_filters(params, registry)
    combinable, standalone, narrowing = ([part for part in filters if part.role == role] for role in ROLES)
    if not standalone and not combinable:
        known = [name for name in registry.names() if registry.get(name).role != "narrowing"]
        names = ", ".join(known)
        param, message = "track" if "track" in known else names, f"one of these parameters is required: {names}"
        raise ParameterError(message, param=param, code="missing_parameter")
    bases = [*standalone, *combinable]
    if standalone and len(bases) > 1:
        alone, *others = [base.name for base in bases]
        message = f"{alone} cannot be combined with {', '.join(others)}"
        raise ParameterError(message, param=alone, code="conflicting_parameters")
    given = [*bases, *narrowing]
    for part in given:
        missing = part.requires and part.requires.difference([other.name for other in given])
        if missing:
            name = min(missing)
            raise ParameterError(f"{part.name} requires {name}", param=part.name, code="conflicting_parameters")
    subscription = Subscription(bases, narrowing, explain=explain, viewer_independent=viewer_independent)
    try:
        _ = subscription.unindexed_bases
    except FilterFailure as failed:
        raise _plugin_refusal(failed.filter.name, failed.error) from failed
    return subscription


def _parse_filters(params: Mapping[str, str], registry: Registry) -> list[Filter]:
    """Parse each filter and check that it is hashable. Any exception of a plug-in becomes a ParameterError."""
    classes: list[type[Filter]] = []
    for name in params:
        try:
            classes.append(registry.get(name))
        except KeyError:
            shown = name[:40]
            meant = did_you_mean(name, (*registry.names(), "since", "explain"))
            message = f"unknown parameter {shown!r}{meant}"
            raise ParameterError(message, param=shown, code="unknown_parameter") from None
    parsed: list[Filter] = [] if Kinds in classes else [DEFAULT_FILTER]
    for filter_class, value in zip(classes, params.values(), strict=True):
        try:
            if issubclass(filter_class, Rules):
                parsed.append(filter_class.parse_with(value, registry))
            else:
                parsed.append(filter_class.parse(value))
            hash(parsed[-1].canonical_form)
        except ParameterError:
            raise
        except Exception as error:
            raise _plugin_refusal(filter_class.name, error) from error
    return parsed


def _plugin_refusal(name: str, error: Exception) -> ParameterError:
    return ParameterError(f"the filter {name} raised {type(error).__name__}", param=name)
