"""Cells held out from the observed ones: networks are trained without them, stopped on them, and settled by them.

What is chosen here is chosen on cells that the table has, never on those that anyone wants imputed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenly._support import EvenlyWarning, require
from evenly.imputation.calibration import FARTHEST_LOSS, believe, lean_all, settle
from evenly.imputation.encoding import Part
from evenly.imputation.gaussian import (
    MOST_FEATURES,
    MOST_ROWS,
    PRIOR,
    PRIORS,
    Joint,
    Usual,
    expect,
    fit_joint,
    owners,
    place_cells,
    speak,
)
from evenly.imputation.neighbours import Memory, Twins, find_twins, remember
from evenly.likelihoods import UNIT_NORMAL
from evenly.metrics import hold_out
from evenly.models import Data, Fitted, History, Info, Layout, Model, Stream, Watched
from evenly.scaling import FittedColumn
from evenly.tables import Floats

Flags = npt.NDArray[np.bool_]
Feeding = Callable[[int, Flags | None], AbstractContextManager[Stream]]

SMALL = 2_000
"""A table with fewer rows than this is small."""
CHUNK, SMALL_CHUNK = 4096, 512
"""Rows that are predicted together, of a table with many rows and of one with few. Always as many, so that a row's
prediction does not go by the rows around it, and that what is compiled for one table serves the others."""
MOST_COMPARED = 4_096
"""Rows with held-out cells whose twins are looked for."""


class Learned(NamedTuple):
    """What came of training: networks (their shared parameters), how to use them, and how the first one went."""

    networks: list[Any]
    parts: list[Part]
    history: History
    watched: Watched
    joint: Joint | None
    """The joint normal, if any column leans on it."""
    memory: Memory | None
    """Rows to look for twins in, if any column takes over their cells."""


def learn(
    fit: Callable[..., Fitted],
    model: Model,
    layout: Layout,
    data: Data,
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    *,
    n_networks: int,
    seed: int,
    told: Callable[[int, float, Info], Any] | None = None,
    feed: Feeding | None = None,
) -> Learned:
    """Train one or several networks; those that predict cell by cell, with other cells held out each.

    One after the other in this process, unless `joblib.parallel_config` names a cluster or several jobs.

    Parameters
    ----------
    fit : function
        The model's, with all that is the same for every network.
    columns, parts, values
        The table's columns, what is known of each, and their values or codes.
    told : function of (network, epoch, info), optional
        Called after each epoch.
    feed : function of (network, held-out cells), optional
        Gives each network the stream of a table that is too large to be here: then the data and values are those of
        some of its rows, from which cells are held out and among which twins are looked for.
    """
    joblib = require("joblib", "models")
    train = partial(_train, fit, model, layout, data, seed)
    if n_networks > 1 and feed is None and joblib.effective_n_jobs(None) > 1:
        trained = joblib.Parallel()(joblib.delayed(train)(i) for i in range(n_networks))
    else:
        trained = []
        for i in range(n_networks):
            try:
                trained.append(train(i, told=told and partial(told, i), feed=feed))
            except KeyboardInterrupt:  # between two epochs, where a network keeps nothing of itself
                if not trained:
                    raise
                said = f"interrupted: {i} of {n_networks} networks were trained; these are used"
                warnings.warn(said, EvenlyWarning, stacklevel=2)
                break
            if trained[-1].history.interrupted:
                break
    networks = [one.shared for one in trained]
    held = [one.held for one in trained if one.held is not None] if model.by_cell else []
    predicted = [_predict_held(model, layout, data, *one) for one in zip(held, networks, strict=False)]
    rng = np.random.default_rng((seed, n_networks))
    joint, lines = _draw_lines(columns, parts, values, held, rng)
    chosen = _settle_all(layout, columns, parts, values, predicted, lines)
    if not any(part.lean for part in chosen):
        joint = None
    memory = None
    if held:
        chosen = _believe_all(layout, columns, chosen, values, held[0], predicted[0], lines[0], rng)
        if any(part.belief for part in chosen):
            memory = remember_table(columns, chosen, values, rng)
    return Learned(networks, chosen, trained[0].history, trained[0].watched, joint, memory)


class _Trained(NamedTuple):
    """One network: the cells held out from it, its shared parameters, and how its training went."""

    held: Flags | None
    shared: Any
    history: History
    watched: Watched


def _train(
    fit: Callable[..., Fitted],
    model: Model,
    layout: Layout,
    data: Data,
    seed: int,
    i: int,
    told: Callable[[float, Info], Any] | None = None,
    feed: Feeding | None = None,
) -> _Trained:
    """Train the i-th network; a function of its arguments alone, which may run on another machine."""
    judge, shown, held = None, data, None
    if model.hides:
        held = hold_out(data.mask[:, : layout.n_columns], np.random.default_rng((seed, i)))
        shown = data._replace(mask=without(data.mask, held))
        judge = make_judge(model, layout, shown, held)
    with nullcontext() if feed is None else feed(i, held) as stream:
        return _Trained(held, *fit(data=shown, seed=seed + i, judge=judge, callback=told, stream=stream))


def without(mask: Flags, held: Flags) -> Flags:
    """Return the mask of a table's arrays, which may have more columns, without held-out cells."""
    shown = mask.copy()
    shown[:, : held.shape[1]] &= ~held
    return shown


def remember_table(
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    rng: np.random.Generator,
    hidden: Flags | None = None,
) -> Memory:
    """Remember the modelled columns of a table, without hidden cells."""
    own = modelled_values(parts, values)
    if hidden is not None:
        own = [np.where(hidden[:, place], np.nan, one) for place, one in enumerate(own)]
    classes = [one.column.has_classes for one, part in zip(columns, parts, strict=True) if part.modelled]
    return remember(own, classes, rng)


def modelled_values(parts: Sequence[Part], values: Sequence[Floats | None]) -> list[Floats]:
    """Return the values or codes of the columns that are modelled."""
    return [own for own, part in zip(values, parts, strict=True) if part.modelled and own is not None]


class Predicted(NamedTuple):
    """What a network says of a feature's held-out cells: their rows, and their natural parameters."""

    rows: npt.NDArray[np.intp]
    naturals: Floats


def _predict_held(model: Model, layout: Layout, data: Data, held: Flags, shared: Any) -> list[Predicted]:
    """Predict the cells that a network did not see, feature by feature."""
    found: list[list[Predicted]] = [[] for _ in layout.columns]
    for where, padded in chunks(np.flatnonzero(held.any(1)), chunk_size(len(held))):
        some = data.rows(padded)
        some = some._replace(mask=without(some.mask, held[padded]))
        for f, natural in enumerate(model.predict_natural(layout, shared, some)):
            mine = held[where, layout.columns[f]]
            found[f].append(Predicted(where[mine], np.asarray(natural[: len(where)][mine], np.float64)))
    return [_together(of_feature) for of_feature in found]


def _together(some: Sequence[Predicted]) -> Predicted:
    any_of_them = [one for one in some if len(one.rows)] or [Predicted(np.zeros(0, np.intp), np.zeros((0, 0)))]
    rows, naturals = zip(*any_of_them, strict=True)
    return Predicted(np.concatenate(rows), np.concatenate(naturals))


def _draw_lines(
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    held: Sequence[Flags],
    rng: np.random.Generator,
) -> tuple[Joint | None, list[list[Usual]]]:
    """Fit a joint normal to the table, and tell what one without each network's held-out cells says of these.

    By network and column, as usual parameters; empty where there is nothing to be said.
    """
    owner = owners(parts)
    if len(owner) > MOST_FEATURES or not any(one.any() for one in held):
        return None, [[{} for part in parts if part.modelled] for _ in held]
    n_rows = len(held[0])
    some = np.arange(n_rows)
    if n_rows > MOST_ROWS:
        some = np.sort(rng.choice(n_rows, MOST_ROWS, replace=False))
        # Only rows to fit on and rows to speak of: a table of a million others need not be placed.
        needed = np.flatnonzero(np.isin(np.arange(n_rows), some) | np.any([one.any(1) for one in held], axis=0))
        held, some = [one[needed] for one in held], np.searchsorted(needed, some)
        values = [None if own is None else own[needed] for own in values]
    table = place_cells(columns, parts, values)
    hidden = [one[:, owner] for one in held]
    joints, prior = _choose_prior(table, hidden, some)
    said = []
    for one, own, joint in zip(held, hidden, joints, strict=True):
        rows = np.flatnonzero(one.any(1))
        usuals = speak(columns, parts, joint, np.where(own, np.nan, table)[rows])
        said.append([{name: cells[one[rows, at]] for name, cells in usual.items()} for at, usual in enumerate(usuals)])
    return fit_joint(table[some], prior, joints[0]), said


def _choose_prior(table: Floats, hidden: Sequence[Flags], some: npt.NDArray[np.intp]) -> tuple[list[Joint], float]:
    """Choose the weight of the prior by the squared error of hidden cells, and return the normals without these.

    Where rows are many it hardly matters.
    """
    shown = [np.where(one, np.nan, table) for one in hidden]
    if len(table) >= SMALL:
        return [fit_joint(one[some], PRIOR) for one in shown], PRIOR
    start: Sequence[Joint | None] = [None] * len(hidden)
    tried = []
    for prior in PRIORS:
        joints = [fit_joint(one, prior, joint) for one, joint in zip(shown, start, strict=True)]
        lost = [
            np.minimum((expect(joint, one)[0] - table)[own & ~np.isnan(table)] ** 2, FARTHEST_LOSS)
            for joint, one, own in zip(joints, shown, hidden, strict=True)
        ]
        tried.append((float(np.concatenate(lost).mean()), joints, prior))
        start = joints
    return min(tried, key=lambda one: one[0])[1:]


def _believe_all(
    layout: Layout,
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    held: Flags,
    predicted: Sequence[Predicted],
    said: Sequence[Usual],
    rng: np.random.Generator,
) -> list[Part]:
    """Choose, for each column, how much of a twin's cell to take over: by held-out cells again."""
    rows = np.flatnonzero(held.any(1))
    if len(rows) > MOST_COMPARED:
        rows = np.sort(rng.choice(rows, MOST_COMPARED, replace=False))
    if not len(rows):
        return list(parts)
    own, believed = np.array(layout.columns), list(parts)
    memory = remember_table(columns, parts, values, rng, held)
    truth = [one[rows] for one in modelled_values(parts, values)]
    twins = find_twins(memory, [np.where(held[rows, place], np.nan, one) for place, one in enumerate(truth)])
    for place, j in enumerate(j for j, part in enumerate(parts) if part.modelled):
        mine = held[rows, place]
        cells = [predicted[int(f)] for f in np.flatnonzero(own == place)]
        compared = np.isin(cells[0].rows, rows)
        features = [one.naturals[compared] for one in cells]
        lines = {name: one[compared] for name, one in said[place].items()}
        near = Twins(*(one[mine] for one in twins))
        believed[j] = believe(columns[j], parts[j], truth[place][mine], features, near, place, lines)
    return believed


def _settle_all(
    layout: Layout,
    columns: Sequence[FittedColumn],
    parts: Sequence[Part],
    values: Sequence[Floats | None],
    predicted: Sequence[Sequence[Predicted]],
    said: Sequence[Sequence[Usual]],
) -> list[Part]:
    """Choose, for each column, how much of the predictions to take: by the cells that each network did not see."""
    settled = list(parts)
    if not predicted:
        return settled
    found = [_together(of_feature) for of_feature in zip(*predicted, strict=True)]
    lines = [
        {name: np.concatenate([one[name] for one in of_column]) for name in of_column[0]}
        for of_column in zip(*said, strict=True)
    ]
    modelled, own, held = [j for j, part in enumerate(parts) if part.modelled], np.array(layout.columns), []
    for place, j in enumerate(modelled):
        features, truth = [found[f] for f in np.flatnonzero(own == place)], values[j]
        assert truth is not None
        held.append((columns[j], parts[j], truth[features[0].rows], [one.naturals for one in features], lines[place]))
    for j, one, lean in zip(modelled, held, lean_all(held), strict=True):
        settled[j] = settle(one[0], replace(one[1], lean=lean), *one[2:])
    return settled


def chunk_size(n_rows: int) -> int:
    """Return how many rows are predicted together by a model of a table with so many."""
    return SMALL_CHUNK if n_rows < SMALL else CHUNK


def chunks(rows: npt.NDArray[np.intp], size: int) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Go through rows, some at a time: also filled up to a size by the first of them."""
    for start in range(0, len(rows), size):
        where = rows[start : start + size]
        yield where, np.concatenate([where, np.repeat(where[:1], size - len(where))])


def make_judge(model: Model, layout: Layout, data: Data, held: Flags) -> Callable[[Any], float] | None:
    """Return a score of parameters: the mean over columns of the log-likelihood of held-out cells.

    None if there are none. The model's data must not show them. Of a number only the squared error counts: bins grow
    too sure of themselves before its mean is learned, which `settle` undoes.
    """
    rows = np.flatnonzero(held.any(1))
    if not len(rows):
        return None
    parts = [(where, data.rows(padded)) for where, padded in chunks(rows, chunk_size(len(held)))]
    scored = [
        f
        for f in range(layout.n_features)
        if not (f and layout.columns[f] == layout.columns[f - 1] and layout.likelihoods[f - 1] is UNIT_NORMAL)
    ]
    counts = np.maximum(held.sum(0), 1)

    def judge(shared: Any) -> float:
        found = np.zeros(layout.n_columns)
        for where, some in parts:
            naturals = model.predict_natural(layout, shared, some)
            for f in scored:
                mine = np.flatnonzero(held[where, layout.columns[f]])
                natural = np.asarray(naturals[f][mine], np.float64)
                cells = layout.likelihoods[f].log_density(layout.target(some, f)[mine].astype(np.float64), natural)
                found[layout.columns[f]] += cells.sum()
        score = float(np.mean(found / counts))
        return score if np.isfinite(score) else -np.inf

    return judge
