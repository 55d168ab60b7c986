"""From the parameters of a stream to its subscription."""

from collections.abc import Collection, Mapping

from filters.base import Failed, Filter, Role
from filters.combine import Subscription
from filters.error import ParameterError
from filters.kind import DEFAULT_KINDS
from filters.registry import Registry
from filters.rule import Rules

__all__ = ["DEFAULTS", "ParameterError", "parse_subscription"]

DEFAULTS = {"kinds": DEFAULT_KINDS}
"""The parameters that hold also where a client does not write them."""


def parse_subscription(
    params: Mapping[str, str],
    registry: Registry,
    *,
    me: Collection[str] | None = None,
    explain: bool = False,
    impersonal: bool | None = None,
) -> Subscription:
    """What a client asks for by ``params``, which holds filters' parameters only, repeated ones joined.

    ``me`` is the live set of those whom the client follows, for ``@me``; without it that stays open until
    :meth:`filters.combine.Subscription.with_following`. ``explain`` and ``impersonal`` are those of
    :class:`filters.combine.Subscription`. Raises ParameterError.
    """
    filters = _parse(params, registry)
    whole, union = _of_role(filters, "whole"), _of_role(filters, "any")
    _check_bases(whole, union, registry)
    _check_needs(filters)
    narrows = _of_role(filters, "narrow")
    subscription = Subscription([*whole, *union], narrows, explain=explain, impersonal=impersonal)
    _check_leads(subscription)
    return subscription if me is None else subscription.with_following(me)


def _parse(params: Mapping[str, str], registry: Registry) -> list[Filter]:
    known = registry.names()
    for name in params:
        if name not in known:
            raise ParameterError(f"there is no parameter {name[:40]!r}", param=name[:40], code="unknown_parameter")
    defaults = {name: value for name, value in DEFAULTS.items() if name in known}
    return [_read(registry.get(name), value, registry) for name, value in {**defaults, **params}.items()]


def _read(filter_class: type[Filter], value: str, registry: Registry) -> Filter:
    """A filter that can be shared; whatever else a third party's raises is a refusal."""
    try:
        parsed = filter_class.read(value, registry) if issubclass(filter_class, Rules) else filter_class.parse(value)
        hash(parsed.key)
    except ParameterError:
        raise
    except Exception as error:
        raise _refused(filter_class.name, error) from error
    return parsed


def _check_leads(subscription: Subscription) -> None:
    """The index will ask for these too: better that they fail here, where somebody can be told."""
    try:
        _ = subscription.costly
    except Failed as failed:
        raise _refused(failed.culprit.name, failed.error) from failed


def _refused(name: str, error: Exception) -> ParameterError:
    return ParameterError(f"the filter {name} raised {error!r}", param=name)


def _of_role(filters: list[Filter], role: Role) -> list[Filter]:
    return [parsed for parsed in filters if parsed.role == role]


def _check_bases(whole: list[Filter], union: list[Filter], registry: Registry) -> None:
    """Exactly one base: one that stands alone, or one or more that are OR-ed."""
    if not whole and not union:
        bases = [name for name in registry.names() if registry.get(name).role != "narrow"]
        raise ParameterError(
            f"one of {', '.join(bases)} is needed",
            param="track" if "track" in bases else ", ".join(bases),
            code="missing_parameter",
        )
    if whole and len(whole) + len(union) > 1:
        alone, *others = [base.name for base in (*whole, *union)]
        raise ParameterError(
            f"{alone} stands alone and cannot be combined with {', '.join(others)}",
            param=alone,
            code="conflicting_parameters",
        )


def _check_needs(filters: list[Filter]) -> None:
    given = {parsed.name for parsed in filters}
    for parsed in filters:
        for name in sorted(parsed.needs - given):
            raise ParameterError(f"{parsed.name} is only for {name}", param=parsed.name, code="conflicting_parameters")
