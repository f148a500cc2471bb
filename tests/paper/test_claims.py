"""The paper's claims against records: pairs, intervals, verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from evenly.paper.agreement import Cell, Comparison, Published, cause_of, comparable, summarize
from evenly.paper.claims import CLAIMS, Claim, bounded_error, check_claims, compare, interval, median_error, paired


def record(method: str, error: float, dataset: str = "wine", mask: int = 1, **run: Any) -> dict[str, Any]:
    settings = {"model": "vae", "percent": 20, "seed": 0, "epochs": 10, **run}
    return {"run": {"dataset": dataset, "mask": mask, "method": method, **settings}, "honest": [error, error]}


def both(ratio: float, *, noise: float = 0.0, masks: int = 5, **run: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(len(run.get("dataset", "")))
    found = []
    for mask in range(1, masks + 1):
        found.append(record("std-none", 0.2, mask=mask, **run))
        found.append(record("lip-gamma", 0.2 * ratio * float(np.exp(noise * rng.normal())), mask=mask, **run))
    return found


ERROR = Claim("lower", "lip-gamma", "std-none", median_error, "error")
EQUAL = Claim("not higher", "lip-gamma", "std-none", median_error, "error", equal=True)
THREE = ("wine", "adult", "spam")


def test_cells_far_off_decide_no_claim_about_the_mean_error() -> None:
    """A column that blows up under one method counts as 1, the whole of its range."""
    runs = both(0.9) + both(0.9, dataset="adult") + both(0.9, dataset="spam")
    for one in runs:
        if one["run"]["method"] == "std-none":
            one["honest"] = [0.2, 56335.9]
    found = compare(runs, "lip-gamma", "std-none", bounded_error)
    assert found is not None
    assert found.ratio == pytest.approx(0.18 / 0.6)


# --- intervals --------------------------------------------------------------------------------------------------------


def test_a_bootstrap_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(3).normal(1.0, 2.0, 400)
    mean, low, high = interval([values], 0.9)
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert mean == pytest.approx(values.mean(), rel=1e-12)
    # A quantile of 10,000 draws is known to about 0.02 standard errors.
    assert [low, high] == pytest.approx(list(stats.norm.interval(0.9, values.mean(), error)), abs=0.06 * error)


def test_with_few_masks_its_width_is_that_of_the_unbiased_variance() -> None:
    """Of two values, a drawn mean is one of them, or their middle, once in two; moved apart by sqrt(2)."""
    mean, low, high = interval([[1.0, 3.0]], 0.6)
    assert (mean, low, high) == pytest.approx((2.0, 2.0 - np.sqrt(2.0), 2.0 + np.sqrt(2.0)))
    assert interval([[1.0, 3.0]], 0.4)[1:] == (2.0, 2.0)


def test_blocks_count_alike_however_many_masks_they_have() -> None:
    a, b = np.random.default_rng(0).normal(0.0, 1.0, 50), np.random.default_rng(1).normal(5.0, 1.0, 200)
    mean, low, high = interval([a, b], 0.95)
    error = 0.5 * np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    assert mean == pytest.approx(0.5 * (a.mean() + b.mean()))
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.05)


# --- pairs ------------------------------------------------------------------------------------------------------------


def test_runs_are_paired_by_mask_and_seed_and_the_rest_is_left_out() -> None:
    records = [
        record("std-none", 0.2),
        record("lip-gamma", 0.1),
        record("std-none", 0.4, seed=1),
        record("lip-gamma", 0.1, seed=1),
        record("lip-gamma", 0.3, mask=2),  # alone
        record("std-none", 0.2, mask=3),
        record("lip-gamma", 0.1, mask=3, optimizer="sgd"),
        record("lip-gamma", 0.1, mask=3, percent=50),
        record("lip-gamma", 0.1, mask=3) | {"failed": "no"},
        record("lip-bern", 0.1),
    ]
    logs = paired(records, "lip-gamma", "std-none", median_error)
    assert logs == {("wine", "vae", 10): {1: pytest.approx([np.log(0.5), np.log(0.25)])}}


def test_of_several_numbers_of_epochs_the_one_with_most_masks_counts() -> None:
    records = both(0.5, masks=3, epochs=100) + both(0.9, masks=1, epochs=400)
    assert compare(records, "lip-gamma", "std-none", median_error).ratio == pytest.approx(0.5)


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict", "equal"),
    [
        (0.8, 0.02, "holds", "holds"),
        (1.0, 1e-4, "does not hold", "holds"),
        (1.2, 0.02, "does not hold", "does not hold"),
        (1.0, 0.3, "untested", "untested"),  # nothing can be told
    ],
)
def test_a_claim_holds_does_not_or_is_untested(ratio, noise, verdict, equal) -> None:
    records = [one for name in THREE for one in both(ratio, noise=noise, dataset=name)]
    assert [one.verdict for one in check_claims(records, [ERROR])] == [verdict]
    assert [one.verdict for one in check_claims(records, [EQUAL])] == [equal]


def test_no_claim_stands_on_one_mask_or_on_two_data_sets() -> None:
    alone = [one for name in THREE for one in both(0.5, masks=1, dataset=name)]
    assert check_claims(alone, [ERROR])[0].evidence == "no pairs of runs"
    two = [one for name in THREE[:2] for one in both(0.5, dataset=name)]
    (checked,) = check_claims(two, [ERROR])
    assert checked.verdict == "untested"
    assert checked.evidence == "error: 0.500 [0.500, 0.500]; 10 pairs of wine, adult"


def test_more_claims_mean_wider_intervals() -> None:
    records = [one for name in THREE for one in both(0.9, noise=0.1, dataset=name)]
    (one,), (many, *_) = check_claims(records, [ERROR]), check_claims(records, [ERROR] * 20)
    assert many.found.low < one.found.low < one.found.high < many.found.high


def test_nothing_is_tested_without_records() -> None:
    assert {one.verdict for one in check_claims([])} == {"untested"}
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


# --- what stands apart ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "kind", "epochs", "n", "cause"),
    [
        ("adult", "discrete", 100, 3, "fewer epochs than published"),
        ("adult", "continuous", 400, 3, "capital gains of 99,999 are missing here"),
        ("adult", "discrete", 400, 3, "not explained"),
        ("wine", "continuous", 2000, 1, "a single run"),
    ],
)
def test_a_cell_that_does_not_agree_has_a_cause_or_none_is_known(dataset, kind, epochs, n, cause) -> None:
    ours = Cell(dataset, "vae", "lip-gamma", kind, 0.5, None, n, epochs)
    assert cause_of(Comparison(20, ours, Published(0.1, 0.01))) == cause


def test_runs_by_gradient_descent_never_stand_among_those_by_adam() -> None:
    adam, sgd = record("std-none", 0.2), record("std-none", 0.9, optimizer="sgd")
    assert comparable([adam, sgd, record("std-none", 0.9, preset="paper-plus")]) == [adam]
    scored = {"kinds": ["count", "count"], "as_published": [0.2, 0.2], "mean_or_mode": [0.3, 0.3]}
    assert [one.mean for one in summarize([adam | scored, sgd | scored], 20, "as-published")] == [0.2, 0.2]
