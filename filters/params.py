"""From the parameters of a stream to its subscription."""

from collections.abc import Collection, Mapping

from filters.base import ROLES, Filter, FilterFailure
from filters.error import ParameterError
from filters.kind import DEFAULT_KINDS
from filters.registry import Registry
from filters.rule import Rules
from filters.subscription import Subscription

DEFAULT_PARAMETERS = {"kinds": DEFAULT_KINDS}  # for parameters that the client does not write


def parse_subscription(
    params: Mapping[str, str],
    registry: Registry,
    *,
    following: Collection[str] | None = None,
    explain: bool = False,
    viewer_independent: bool | None = None,
) -> Subscription:
    """Parse the filters of a stream and return the subscription. Raises ParameterError if a parameter is invalid.

    Args:
        params: The filters' parameters by name. Repeated parameters are joined by their separator.
        registry: The filters that a client may use.
        following: The set of users whom the client follows, for ``follow=@me``. The caller may change it later. If it
            is None, the caller sets it later with :meth:`filters.subscription.Subscription.with_following`.
        explain: Whether the client asked for the reasons of each match.
        viewer_independent: Whether every user gets the same events. If None: True for a standalone filter, else False.
    """
    filters = _parse_filters(params, registry)
    combinable, standalone, narrowing = ([part for part in filters if part.role == role] for role in ROLES)
    _check_bases(standalone, combinable, registry)
    _check_required(filters)
    bases = [*standalone, *combinable]
    subscription = Subscription(bases, narrowing, explain=explain, viewer_independent=viewer_independent)
    _check_index_terms(subscription)
    return subscription if following is None else subscription.with_following(following)


def _parse_filters(params: Mapping[str, str], registry: Registry) -> list[Filter]:
    known = registry.names()
    for name in params:
        if name not in known:
            raise ParameterError(f"unknown parameter {name[:40]!r}", param=name[:40], code="unknown_parameter")
    defaults = {name: value for name, value in DEFAULT_PARAMETERS.items() if name in known}
    return [_parse_filter(registry.get(name), value, registry) for name, value in {**defaults, **params}.items()]


def _parse_filter(filter_class: type[Filter], value: str, registry: Registry) -> Filter:
    """Parse one filter and check that it is hashable. Any exception of a plug-in becomes a ParameterError."""
    try:
        parsed = (
            filter_class.parse_with(value, registry) if issubclass(filter_class, Rules) else filter_class.parse(value)
        )
        hash(parsed.canonical_form)
    except ParameterError:
        raise
    except Exception as error:
        raise _plugin_refusal(filter_class.name, error) from error
    return parsed


def _check_index_terms(subscription: Subscription) -> None:
    try:
        _ = subscription.unindexed_bases
    except FilterFailure as failed:
        raise _plugin_refusal(failed.filter.name, failed.error) from failed


def _plugin_refusal(name: str, error: Exception) -> ParameterError:
    return ParameterError(f"the filter {name} raised {type(error).__name__}", param=name)


def _check_bases(standalone: list[Filter], combinable: list[Filter], registry: Registry) -> None:
    """Raise ParameterError unless the client gave either one standalone filter, or one or more combinable ones."""
    if not standalone and not combinable:
        bases = [name for name in registry.names() if registry.get(name).role != "narrowing"]
        names = ", ".join(bases)
        param, message = "track" if "track" in bases else names, f"one of these parameters is required: {names}"
        raise ParameterError(message, param=param, code="missing_parameter")
    if standalone and len(standalone) + len(combinable) > 1:
        alone, *others = [base.name for base in (*standalone, *combinable)]
        message = f"{alone} cannot be combined with {', '.join(others)}"
        raise ParameterError(message, param=alone, code="conflicting_parameters")


def _check_required(filters: list[Filter]) -> None:
    given = {parsed.name for parsed in filters}
    for parsed in filters:
        for name in sorted(parsed.requires - given):
            raise ParameterError(f"{parsed.name} requires {name}", param=parsed.name, code="conflicting_parameters")
