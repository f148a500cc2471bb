"""Cells held out from the observed ones: when to stop, and how far to trust a model, column by column.

What is chosen here is chosen on cells that the table has, never on those that anyone wants imputed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evenly.bins import Bins
from evenly.features import Part, estimate_part, recover_part
from evenly.likelihoods import UNIT_NORMAL
from evenly.models.bbvi import Data, Layout, Model, held_out_log_likelihood
from evenly.scaler import FittedColumn
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]

SHARE, SMALL_SHARE, SMALL = 0.05, 0.1, 2_000
"""The share of a column's observed cells that is held out, and that of a table with few rows."""
MOST = 2_000
"""Cells of a column held out at most: their mean error is known to some 2 % then."""
FEWEST = 10
"""A column with fewer observed cells gives none away."""
CHUNK = 4096
BLENDS = (0.5, 0.0, 1.0)
"""Shares of the bins in the mean of a number that are tried; the first is kept unless another is clearly better."""
CLEARLY = 1.0
"""Standard errors by which an alternative must be better."""
POWERS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Powers of probabilities that are tried."""
LEVELS = (0.5, 0.8, 0.9)
"""Central intervals that numbers are to be covered by."""
DOUBT = 5.0
"""With how many cells' weight a model is trusted as it is, before any held-out cell was looked at."""


def hold_out(observed: Flags, rng: np.random.Generator) -> Flags:
    """Choose cells to hold out, a share of each column's observed ones."""
    share = SMALL_SHARE if len(observed) < SMALL else SHARE
    held = np.zeros(observed.shape, bool)
    for j in range(observed.shape[1]):
        rows = np.flatnonzero(observed[:, j])
        n = min(MOST, round(share * len(rows))) if len(rows) >= FEWEST else 0
        held[rng.choice(rows, n, replace=False), j] = True
    return held


def make_judge(model: Model, layout: Layout, data: Data, held: Flags) -> Callable[[Any], float] | None:
    """Return a score of parameters: the mean over columns of the log-likelihood of held-out cells.

    None if there are none. The model's data must not show them. Of a number only the squared error counts: bins grow
    too sure of themselves before its mean is learned, which `settle` undoes.
    """
    again = [layout.columns[f] == layout.columns[f - 1] for f in range(layout.n_features)]
    after = [f > 0 and again[f] and layout.likelihoods[f - 1] is UNIT_NORMAL for f in range(layout.n_features)]
    rows = np.flatnonzero(held.any(1))
    if not len(rows):
        return None
    padded = np.concatenate([rows, np.repeat(rows[:1], -len(rows) % CHUNK)]) if len(rows) > CHUNK else rows
    size = min(CHUNK, len(padded))
    parts = []
    for start in range(0, len(padded), size):
        where = padded[start : start + size]
        mine = held[where][:, np.array(layout.columns)]
        mine[max(0, len(rows) - start) :] = False  # the padding counts for nothing
        mine[:, np.array(after)] = False
        parts.append((Data(*(part[where] for part in data)), mine))
    counts = np.maximum(held.sum(0), 1)

    def judge(shared: Any) -> float:
        found = sum(np.asarray(held_out_log_likelihood(model, layout, shared, some, mine)) for some, mine in parts)
        score = float(np.mean(found / counts))
        return score if np.isfinite(score) else -np.inf

    return judge


def settle(fitted: FittedColumn, part: Part, truth: Floats, naturals: Sequence[Floats]) -> Part:
    """Return how much of each prediction to take, from what was predicted for held-out cells of a column.

    `temper` makes probabilities less, or more, sure; `trust` moves a prediction towards the mean, or the shares, of
    the column alone, as far as the held-out cells say; `blend` chooses between the two means of a number.
    """
    if len(truth) < FEWEST or not (part.bins or fitted.column.has_classes):
        return part
    shares = recover_part(fitted, part, naturals).get("probabilities")
    if shares is not None:
        score = partial(_likely, truth.astype(int)) if part.bins is None else partial(_covering, part.bins, truth)
        doubt = DOUBT / len(truth) * np.log(POWERS) ** 2
        part = replace(part, temper=POWERS[int(np.argmax([score(_power(shares, one)) for one in POWERS] - doubt))])
    if part.bins is None:
        wrong = estimate_part(fitted, part, recover_part(fitted, part, naturals), "mode") != truth
        alone = truth != float(np.argmax(fitted.frequencies))
        return replace(part, trust=0.0 if _better(alone, wrong) else 1.0)
    ends = [recover_part(fitted, replace(part, blend=end, trust=1.0), naturals)["mean"] for end in (0.0, 1.0)]
    normal, binned, wanted = ((values - part.mean) / part.std for values in (*ends, truth))
    moved = {blend: blend * binned + (1.0 - blend) * normal for blend in BLENDS}
    chosen = BLENDS[0]
    for blend in BLENDS[1:]:
        if _better((moved[blend] - wanted) ** 2, (moved[chosen] - wanted) ** 2):
            chosen = blend
    # Least squares through the column's mean, with some cells' weight on 1: a slope below 1 says "too sure".
    best = moved[chosen]
    weight = 5.0 * DOUBT * float(np.mean(best**2)) + 1e-12
    slope = (float(best @ wanted) + weight) / (float(best @ best) + weight)
    return replace(part, blend=chosen, trust=float(np.clip(slope, 0.0, 1.0)))


def _power(shares: Floats, power: float) -> Floats:
    raised = (shares / shares.max(-1, keepdims=True)) ** power
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def _likely(codes: npt.NDArray[np.int_], shares: Floats) -> float:
    """Return the mean log-probability of classes."""
    return float(np.log(np.maximum(shares[np.arange(len(codes)), codes], 1e-12)).mean())


def _covering(bins: Bins, truth: Floats, shares: Floats) -> float:
    """Return how near central intervals come to holding the share of numbers that they should: 0 at best."""
    away = np.abs(bins.ranks(shares, truth, np.random.default_rng(0)) - 0.5)
    return -10.0 * float(sum(((away < 0.5 * level).mean() - level) ** 2 for level in LEVELS))


def _better(one: Floats | Flags, other: Floats | Flags) -> bool:
    """Whether losses are smaller than others on the same cells, by more than chance makes likely."""
    gain = np.asarray(other, np.float64) - np.asarray(one, np.float64)
    return bool(gain.mean() > CLEARLY * gain.std() / np.sqrt(len(gain)))
