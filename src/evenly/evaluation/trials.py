"""Trials of imputers on the user's own table: known cells are hidden from them, imputed and scored."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.utils import check_random_state

from evenly._support import EvenlyWarning, Stages, showing
from evenly.evaluation.hidden_cells import HiddenCells
from evenly.evaluation.peers import PeerImputer, as_peer
from evenly.evaluation.sampling import Rows, check_rows, sample_size
from evenly.evaluation.trial_results import Trial
from evenly.imputation import Imputer, fill_seconds, fit_seconds, read_seconds
from evenly.tables import open_table

CHOOSING = "choosing cells to hide"


def try_imputer(imputer: Imputer, table: Any, *, share: float = 0.1, random_state: Any = 0) -> Trial:
    """Hide a share of each column's known cells, impute them and score the imputed values.

    The imputer itself is not changed: a clone is fitted to the other cells.

    Parameters
    ----------
    imputer : Imputer
        Only its settings are used; it need not be fitted.
    table : dataframe or array
        The table to try it on.
    share : float
        The share of each column's known cells to hide. Columns with fewer than ten, or all equal, are skipped.
    random_state : int, RandomState or None
        Seeds the choice of hidden cells.

    Examples
    --------
    Needs `pip install "evenly[models]"`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(50.0, 2.0, 200)
    >>> table = np.column_stack([x, 3.0 * x + rng.normal(size=200)])
    >>> from evenly import Training
    >>> small = Training(epochs=60, n_networks=1, sizes={"hidden_size": 16})
    >>> trial = try_imputer(Imputer(training=small, random_state=0), table)
    >>> [one.n_cells for one in trial.columns], trial.error < 0.8 * trial.baseline
    ([20, 20], True)
    """
    return next(compare_imputers([imputer], table, share=share, random_state=random_state, rows="all"))


def compare_imputers(
    imputers: Sequence[Any],
    table: Any,
    *,
    share: float = 0.1,
    random_state: Any = 0,
    like: Imputer | None = None,
    rows: Rows = "auto",
) -> Iterator[Trial]:
    """Try several imputers on the same hidden cells, one after the other; see `try_imputer`.

    Ctrl-C ends the comparison; an imputer whose training it cut short is left out, unless it is the first.

    Parameters
    ----------
    imputers : sequence of Imputer, str or estimator
        Imputers; `"forest"`, `"knn"` and `"linear"`, which are built on scikit-learn; or any imputer of scikit-learn,
        which gets numbers standardized and classes one-hot. None of these has intervals. On more than 100,000 cells,
        those with names learn from a sample of the rows, with a warning.
    table, share, random_state
        As in `try_imputer`.
    like : Imputer, optional
        Whose declarations of columns count; by default those of the first `Imputer`.
    rows : int, "all" or "auto"
        On how many rows to compare, drawn at random, the same for every candidate. "auto": all rows of tables of up to
        100,000 cells, else as many as have 50,000 cells, but at least 2,000, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal(size=(60, 2))
    >>> some = [Imputer("marginal"), "knn", Imputer("marginal", estimate="median")]
    >>> [trial.model for trial in compare_imputers(some, table)]
    ['marginal', 'knn', 'marginal']
    """
    check_rows(rows)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    found = [one for one in imputers if isinstance(one, Imputer)]
    first = like or (found[0] if found else Imputer("marginal"))
    opened = open_table(table, estimator="Imputer", keep=True)
    candidates = [one if isinstance(one, Imputer) else as_peer(one, seed) for one in imputers]
    planned = _plan(candidates, opened.n_rows, len(opened.columns), rows)
    with showing(first.verbose), Stages(planned).at(CHOOSING):
        hidden = HiddenCells.choose(first, opened, share, seed, rows)
    if hidden.n_sampled is not None:
        _warn_of_sample(hidden.n_sampled, opened.n_rows)
    for i, (candidate, name) in enumerate(zip(candidates, list(planned)[1:], strict=True)):
        with showing(first.verbose), Stages(planned).at(name):
            if isinstance(candidate, PeerImputer):
                trial, interrupted = hidden.try_peer(candidate), False
            else:
                fitted = hidden.fit(candidate, quiet=i > 0)
                interrupted = fitted[0].ensemble_.interrupted
                if interrupted and i:
                    return
                trial = hidden.score(candidate, fitted)
        yield trial
        if interrupted:
            return


def _name(candidate: Imputer | PeerImputer, i: int, n: int) -> str:
    """Return the name of a candidate's stage; a single one is not named itself."""
    if n == 1:
        return "_0"
    if isinstance(candidate, PeerImputer):
        return f"{candidate.name} ({i + 1} of {n})"
    named = [one for one in (candidate.method, candidate.balance) if one != "auto"]
    return f"{' '.join([candidate.model_name, *named])} ({i + 1} of {n})"


def trial_seconds(candidate: Imputer | PeerImputer, n_rows: int, n_columns: int, *, again: bool = False) -> float:
    """Return the expected number of seconds of a trial, or of another one of the same model."""
    if isinstance(candidate, PeerImputer):
        return candidate.seconds(n_rows, n_columns)
    return fit_seconds(candidate, n_rows, n_columns, again=again) + 2.0 * fill_seconds(n_rows, n_columns)


def comparison_seconds(imputers: Sequence[Any], n_rows: int, n_columns: int, rows: Rows = "auto") -> float:
    """Return the expected number of seconds of `compare_imputers`.

    Examples
    --------
    >>> one, two = (comparison_seconds(["linear"] * n, 200_000, 12) for n in (1, 2))
    >>> one < two < 60.0
    True
    """
    candidates = [one if isinstance(one, Imputer) else as_peer(one, 0) for one in imputers]
    return sum(_plan(candidates, n_rows, n_columns, rows).values())


def _plan(candidates: Sequence[Imputer | PeerImputer], n_rows: int, n_columns: int, rows: Rows) -> dict[str, float]:
    """Return the stages of a comparison, choosing cells and a trial of each candidate, with their expected seconds."""
    n, seen = sample_size(rows, n_rows, n_columns), set()
    planned = {CHOOSING: read_seconds(n_rows, n_columns)}
    for i, one in enumerate(candidates):
        model = one.name if isinstance(one, PeerImputer) else one.model_name
        planned[_name(one, i, len(candidates))] = trial_seconds(one, n, n_columns, again=model in seen)
        seen.add(model)
    return planned


def _warn_of_sample(n: int, n_rows: int) -> None:
    warnings.warn(
        f"compared on {n:,} of the {n_rows:,} rows, drawn at random, to save time; "
        "rows='all' (--rows all) compares on all of them",
        EvenlyWarning,
        stacklevel=3,
    )
