"""Which likelihood fits a column of numbers: chosen by the log-likelihood of cells that its parameters did not see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evenly._support import align
from evenly.likelihoods import FAMILIES, Likelihood, get_likelihood
from evenly.metrics import clearly_better
from evenly.scaling import choose_pivot, take_moments
from evenly.tables import (
    Column,
    Floats,
    Markers,
    Rule,
    Schema,
    TableColumn,
    encode,
    infer_column,
    make_rules,
    open_table,
    prepare,
    profile_column,
)

N_FOLDS = 5
SURE = 2.0
"""Standard errors by which another likelihood must be better than the default to be chosen."""
LEVELS, MOST_SUMMED = (0.9999, 0.99, 0.9), 100_000
"""Up to which of its quantiles a density is summed over whole numbers, if that is not beyond so many."""
FEWEST = 2 * N_FOLDS
"""Cells without which nothing is compared."""


@dataclass(frozen=True)
class LikelihoodChoice:
    """What was found for each column of numbers.

    Attributes
    ----------
    likelihoods : dict of column to str
        The chosen ones, as `Imputer` and `LipschitzScaler` take them; columns that keep their default are not named.
    scores : dict of column to dict of str to float
        The mean log-likelihood of held-out cells under each candidate, in nats and the column's units; minus infinity
        where a candidate has no fit, or no density for a cell.
    """

    likelihoods: dict[Any, str]
    scores: dict[Any, dict[str, float]]

    def __str__(self) -> str:
        names = list(dict.fromkeys(name for scores in self.scores.values() for name in scores))
        rows = [["column", "chosen", *names]]
        for label, scores in self.scores.items():
            chosen = self.likelihoods.get(label, next(iter(scores)))
            rows.append([str(label), chosen, *(f"{scores[name]:.3f}" if name in scores else "" for name in names)])
        return "\n".join(align(rows))


def choose_likelihoods(
    table: Any,
    *,
    kinds: Mapping[Any, str] | None = None,
    schema: Schema | str | Path | None = None,
    missing: Markers | None = None,
    random_state: Any = 0,
) -> LikelihoodChoice:
    """Choose the likelihood of each column of numbers among those that go with its kind.

    The observed cells are cut into five parts at random. Every candidate is fitted to four of them and scored on the
    fifth. The default of the kind stays unless another one is better by more than two standard errors of the
    difference, cell by cell. Classes have nothing to choose. A column that is declared a kind keeps to it; one that was
    inferred to be a count becomes a positive column if that is better, by as much, than every likelihood of counts.

    Parameters
    ----------
    table, kinds, schema, missing
        As in `LipschitzScaler`. A column of the schema is compared under its kind.
    random_state : int, RandomState or None
        Which cells are held out together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.gamma(1.5, 2.0, 2000), np.exp(rng.normal(size=2000))])
    >>> found = choose_likelihoods(table)
    >>> found.likelihoods  # of the first column; the second keeps its log-normal
    {0: 'gamma'}
    >>> found.scores[1]["log-normal"] > found.scores[1]["gamma"]
    True

    Too few cells, or a single value, leave the default:

    >>> choose_likelihoods([[1.0, 2.0], [1.0, 3.0]]).scores
    {}
    """
    opened = open_table(table, estimator="choose_likelihoods")
    drawn = check_random_state(random_state)
    chosen: dict[Any, str] = {}
    scores: dict[Any, dict[str, float]] = {}
    rules = make_rules(opened, kinds=kinds, schema=schema, missing=missing)
    for label, cells, rule in zip(opened.labels, opened.columns, rules, strict=True):
        each = _compare(cells, rule, drawn)
        if each:
            scores[label] = {name: float(one.mean()) for name, one in each.items()}
            own = {name: one for name, one in each.items() if get_likelihood(name).support.whole}
            found = _best(own or each)
            found = _best({found: each[found]} | each) if own else found
            if found != next(iter(each)):
                chosen[label] = found
    return LikelihoodChoice(chosen, scores)


def candidates(kind: str, *, declared: bool = False) -> tuple[str, ...]:
    """Return the likelihoods to compare for a column of numbers: the default first, then its own, then wider ones.

    A count may become a positive column, unless it is declared a count.

    Examples
    --------
    >>> candidates("real"), candidates("count", declared=True)[0]
    (('normal',), 'poisson')
    >>> candidates("positive")
    ('log-normal', 'gamma', 'inverse-gamma', 'inverse-gaussian', 'exponential', 'rayleigh', 'normal')
    """
    going = [(name, family) for name, family in FAMILIES.items() if kind in family.kinds]
    going.sort(key=lambda one: (kind not in one[1].default_for, kind != one[1].kinds[0]))  # stable: in their order
    names = tuple(name for name, _ in going)
    return names if kind != "count" or declared else names + candidates("positive")


def _compare(cells: TableColumn, rule: Rule, drawn: np.random.RandomState) -> dict[str, Floats]:
    """Return the log-likelihood of each observed cell under each candidate; nothing where there is no choice."""
    if rule.ignored or rule.wants_classes:
        return {}
    profile = partial(profile_column, cells, rule.missing)
    column, seen = rule.infer(cells, profile)
    facts = (seen or profile()).reading(spelled=column.is_spelled)
    names = candidates(column.kind, declared=bool(rule.kind or rule.declared))
    if column.has_classes or len(names) < 2 or facts.n < FEWEST or facts.minimum == facts.maximum:
        return {}
    values = encode(column, cells)[0]
    values = values[~np.isnan(values)]
    folds = drawn.permutation(len(values)) % N_FOLDS
    with np.errstate(all="ignore"):
        return {
            name: _held_out(infer_column(cells, facts, likelihood=name), values, folds, column.kind == "count")
            for name in names
        }


def _held_out(column: Column, values: Floats, folds: npt.NDArray[np.intp], counts: bool) -> Floats:
    """Return the log-density of each cell under a fit to the folds that it is not in."""
    family, x = get_likelihood(column.likelihood or ""), np.asarray(prepare(column, values))
    found = np.full(len(x), -np.inf)
    for fold in range(N_FOLDS):
        own, others = folds == fold, x[folds != fold]
        pivot = choose_pivot(family, others.min(), others.max(), float(others.mean()))
        natural = take_moments(family, others, pivot).natural(family)
        unit = pivot.unit if family.needs_unit else 1.0
        if np.isfinite(natural).all():
            found[own] = family.log_density(x[own] / unit, natural) - np.log(unit)
            if counts and not family.support.whole:
                found[own] -= _log_total(column, family, natural, unit)
    return np.where(np.isnan(found), -np.inf, found)


def _log_total(column: Column, family: Likelihood, natural: Floats, unit: float) -> float:
    """Return the log of a density's sum over the whole numbers from 0 on.

    Divided by it, a density at a whole number can be compared with the probability of a count: that of an exponential
    starts with its highest value, and would count half a unit of it twice.
    """
    for level in LEVELS:
        end = float(family.quantile(natural, level)) * unit - column.shift
        if end < MOST_SUMMED:
            k = np.asarray(prepare(column, np.arange(0.0, max(end, 0.0) + 1.0)))
            return float(np.log(np.exp(family.log_density(k / unit, natural)).sum() / unit + 1.0 - level))
    return 0.0  # so wide that units do not matter


def _best(each: Mapping[str, Floats]) -> str:
    """Return the candidate with the best mean, or the first one if that is not clearly worse."""
    default = next(iter(each))
    best = max(each, key=lambda name: float(each[name].mean()))
    if not np.isfinite(each[default].mean()):
        return best  # the default has no fit, or no density for a cell
    return best if clearly_better(-each[best], -each[default], SURE) else default
