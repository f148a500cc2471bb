"""How far to trust a model, column by column, from what it predicted for cells held out from the observed ones.

What share the joint normal and twins have in a prediction, which mean of a number is taken, and how sure to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from evenly.imputation.bins import Bins
from evenly.imputation.encoding import (
    Part,
    calibrate,
    class_shares,
    estimate_part,
    mix_twins,
    recover_part,
    standardize,
)
from evenly.imputation.gaussian import Usual
from evenly.imputation.neighbours import BELIEFS, Belief, Twins, weigh
from evenly.metrics import clearly_better
from evenly.scaling import FittedColumn
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

BLENDS = (0.5, 0.0, 1.0)
"""Shares of the bins in the mean of a number that are tried; the first is kept unless another is clearly better."""
LEANS = tuple(np.linspace(0.0, 1.0, 9).tolist())
"""Shares of the joint normal in a prediction that are tried."""
PULL = 25.0
"""With how many cells' weight a column's share is that of all columns together."""
FEWEST_TWINS, LEAST_SHARE = 5, 0.2
"""A column whose held-out cells have fewer twins, of so large a share in the prediction, believes in none."""
POWERS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Powers of probabilities that are tried."""
REACH = 4.0
"""Where predictions of held-out cells are not clearly better than the mean, how many times as far as the farthest of
them others may go. A few values far out (one e-mail full of #) make a network expect more of them, and held-out cells
are too few to have seen it be wrong there."""
TRUSTS: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of the model in the probabilities of classes that are tried, with each power."""
FARTHEST_LOSS = 25.0
"""Squared standard deviations that a cell counts for at most where shares are chosen: one must not decide."""
LEVELS = (0.5, 0.8, 0.9)
"""Central intervals that numbers are to be covered by."""
DOUBT = 5.0
"""With how many cells' weight a model is trusted as it is, before any held-out cell was looked at."""
FEWEST = 10
"""A column with fewer observed cells gives none away."""
FEWEST_OTHERS = 10
"""Where one number fills most of a column and fewer cells have another, the held-out ones may have none of these."""


def settle(
    fitted: FittedColumn, part: Part, truth: Floats, naturals: Sequence[Floats], said: Usual | None = None
) -> Part:
    """Return how much of each prediction to take, from what was predicted for held-out cells of a column.

    `temper` makes probabilities less, or more, sure; `trust` moves a prediction towards the mean, or the shares, of
    the column alone, as far as the held-out cells say (and all the way where hardly any number differs from the
    others); `blend` chooses between the two means of a number. Classes are given the `temper` and `trust` that make
    them likeliest, together: what is too sure is not thereby ignorant. Of a number the squared error says the
    `trust`, and with it the `temper` makes intervals cover what they should.
    """
    if part.bins and _hardly_varies(fitted, part.bins):
        return replace(part, trust=0.0)
    if len(truth) < FEWEST or not (part.bins or fitted.column.has_classes):
        return part
    shares = class_shares(recover_part(fitted, part, naturals, said))
    if part.bins is None:
        score, alone, trusts = partial(_likely, truth.astype(int)), np.asarray(fitted.frequencies), TRUSTS
    else:
        score, alone = partial(_covering, part.bins, truth), np.asarray(part.bins.share)
        part = _settle_mean(fitted, part, truth, naturals, said)
        trusts = (part.trust,)
    tried = [replace(part, temper=power, trust=trust) for trust in trusts for power in POWERS]
    doubts = [np.log(one.temper) ** 2 + (part.trust - one.trust) ** 2 for one in tried]
    scores = [score(calibrate(shares, one, alone)) for one in tried]
    return tried[int(np.argmax(scores - DOUBT / len(truth) * np.array(doubts)))]


def _hardly_varies(fitted: FittedColumn, bins: Bins) -> bool:
    """Whether so few numbers differ from the most frequent one that nothing can be known about who has them."""
    most = max(bins.share)
    return most > 0.5 and (1.0 - most) * fitted.statistics.n < FEWEST_OTHERS


def _settle_mean(
    fitted: FittedColumn, part: Part, truth: Floats, naturals: Sequence[Floats], said: Usual | None
) -> Part:
    """Choose which mean of a number to take, how much of it, and how far to follow it."""
    ends = [recover_part(fitted, replace(part, blend=end, trust=1.0), naturals, said)["mean"] for end in (0.0, 1.0)]
    normal, binned, wanted = (standardize(values, part.mean, part.std) for values in (*ends, truth))
    means = {blend: blend * binned + (1.0 - blend) * normal for blend in BLENDS}
    chosen = BLENDS[0]
    for blend in BLENDS[1:]:
        if clearly_better((means[blend] - wanted) ** 2, (means[chosen] - wanted) ** 2):
            chosen = blend
    # Least squares through the column's mean, with some cells' weight on 1: a slope below 1 says "too sure".
    best = means[chosen]
    weight = 5.0 * DOUBT * float(np.mean(best**2)) + 1e-12
    slope = (float(best @ wanted) + weight) / (float(best @ best) + weight)
    trust = float(np.clip(slope, 0.0, 1.0))
    moved = trust * best
    part = replace(part, blend=chosen, trust=trust)
    if clearly_better((moved - wanted) ** 2, wanted**2):
        return part
    return replace(part, reach=REACH * float(np.abs(moved).max()) * part.std)


def _likely(codes: npt.NDArray[np.int_], shares: Floats) -> float:
    """Return the mean log-probability of classes."""
    return float(np.log(np.maximum(shares[np.arange(len(codes)), codes], 1e-12)).mean())


def _covering(bins: Bins, truth: Floats, shares: Floats) -> float:
    """Return how near central intervals come to holding the share of numbers that they should: 0 at best."""
    away = np.abs(bins.ranks(shares, truth, np.random.default_rng(0)) - 0.5)
    return -10.0 * float(sum(((away < 0.5 * level).mean() - level) ** 2 for level in LEVELS))


def lean_all(held: Sequence[tuple[FittedColumn, Part, Floats, Sequence[Floats], Usual]]) -> list[float]:
    """Choose the share of the joint normal in the predictions of each column, from those for held-out cells.

    One for all numbers and one for all classes, from which a column departs as far as its own cells say.

    Parameters
    ----------
    held : sequence of (column, part, truth, naturals, said)
        As `settle` takes them.
    """
    curves = [_lean_losses(*one) for one in held]
    leans = []
    for one, curve in zip(held, curves, strict=True):
        alike = [
            other
            for column, other in zip(held, curves, strict=True)
            if other is not None and column[0].column.has_classes == one[0].column.has_classes
        ]
        if not one[4] or not alike:
            leans.append(0.0)
            continue
        shared = LEANS[int(np.argmin(np.mean(alike, axis=0)))]
        if curve is not None:
            doubts = PULL / len(one[2]) * (np.array(LEANS) - shared) ** 2
            shared = LEANS[int(np.argmin(curve + doubts))]
        leans.append(shared)
    return leans


def _lean_losses(
    fitted: FittedColumn, part: Part, truth: Floats, naturals: Sequence[Floats], said: Usual
) -> Floats | None:
    """Return the mean loss of a column's held-out cells for each of `LEANS`, relative to that without the normal."""
    if len(truth) < FEWEST or not said:
        return None
    lost = []
    for lean in LEANS:
        usual = recover_part(fitted, replace(part, lean=lean), naturals, said)
        if part.bins is None:
            lost.append(-_likely(truth.astype(int), class_shares(usual)))
        else:
            away = standardize(usual["mean"], truth, part.std)
            lost.append(float(np.minimum(away**2, FARTHEST_LOSS).mean()))
    return np.array(lost) / max(lost[0], 1e-12)


def believe(
    fitted: FittedColumn,
    part: Part,
    truth: Floats,
    naturals: Sequence[Floats],
    twins: Twins,
    place: int,
    said: Usual | None = None,
) -> Part:
    """Return how much of a twin's cell to take over, from held-out cells of a column: nothing unless it helps."""
    if len(truth) < FEWEST or not (part.bins or fitted.column.has_classes):
        return part
    usual = recover_part(fitted, part, naturals, said)

    def losses(belief: Belief | None) -> Floats | Flags:
        mixed = mix_twins(replace(part, belief=belief), usual, twins, place)
        if part.bins is None:
            return np.asarray(estimate_part(fitted, part, mixed, "mode") != truth)
        return standardize(mixed["mean"], truth, part.std) ** 2

    best, least = None, losses(None)
    for belief in BELIEFS:
        found = losses(belief)
        enough = (weigh(twins, place, belief)[1] > LEAST_SHARE).sum() >= FEWEST_TWINS
        if enough and clearly_better(found, least):
            best, least = belief, found
    return replace(part, belief=best)
