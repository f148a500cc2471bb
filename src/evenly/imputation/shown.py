"""How an imputer shows itself: a small table in notebooks, and pictures."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly._support import Bar, TableError, bars, estimator_html, html_table, new_axes
from evenly.imputation.columns import ModelledColumn
from evenly.imputation.ensemble import Ensemble
from evenly.imputation.filling import OpenedColumn, OpenedTable
from evenly.imputation.plots import draw_curves, draw_imputed, draw_intervals, trailing_mean
from evenly.imputation.predictor import Predictor
from evenly.predictive import Predictive
from evenly.tables import Floats, Schema

SIZE = (7.0, 3.6)
"""Inches of a picture."""


class Shown:
    """An imputer's side that people look at."""

    ensemble_: Ensemble
    schema_: Schema
    history_: dict[str, Any]
    baseline_: dict[str, float]
    _table: Any = None
    """A weak reference to the table of fit: it is looked at while others keep it, and never saved."""

    if TYPE_CHECKING:

        def _open_quietly(self, X: Any) -> OpenedTable: ...
        def _predictor(self) -> Predictor: ...
        def _ends(self, opened: OpenedTable, level: float) -> list[list[Floats]]: ...
        def _choose(self, found: Predictive) -> Floats: ...

    def _remember(self, table: Any) -> None:
        self._table = None
        with suppress(TypeError):  # a list, or the path of a file, has no weak references
            self._table = weakref.ref(table)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_table"}

    # --- in a notebook --------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """Show the parameters and, once fitted, one row a column."""
        if not hasattr(self, "ensemble_"):
            return estimator_html(self)
        specs = self.ensemble_.specs
        gains = dict(
            zip((one.name for one in specs), bars([self._gain(one.name) for one in specs], ".2f"), strict=True)
        )
        rows: list[list[str | Bar]] = []
        for one in specs:
            missing = f"{1.0 - one.observed:.0%}" if isinstance(one, ModelledColumn) else "–"
            note = self.schema_[one.name].note if one.column.may_have_classes else ""
            note = note if isinstance(one, ModelledColumn) else one.column.note or "not modelled"
            rows.append([one.name, one.column.kind, missing, gains[one.name], note])
        title = f"Fitted to {self.ensemble_.n_rows:,} rows of {len(rows)} columns"
        headers = ["column", "kind", "missing", "gain over its own distribution (nats a cell)", "note"]
        return estimator_html(self) + html_table(title, headers, rows)

    def _repr_mimebundle_(self, **wanted: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _gain(self, name: str) -> float:
        curve = trailing_mean(np.asarray(self.history_["log_likelihood"].get(name, ()), np.float64))
        curve = curve[np.isfinite(curve)]
        return float(curve[-1] - self.baseline_[name]) if len(curve) and name in self.baseline_ else float("nan")

    # --- pictures -------------------------------------------------------------------------------------------------

    def plot_imputed(self, column: Any, table: Any = None, *, ax: Any = None) -> Any:
        """Draw a column's observed cells against imputed ones, which are drawn at random as in `sample`.

        Best guesses would be less spread than the column. Rows with missing cells may differ from others, and so may
        their imputed cells.

        Parameters
        ----------
        column : label
            A modelled column.
        table : dataframe or array, optional
            By default the one that was given to `fit`, as long as it is in memory.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes

        Examples
        --------
        Needs `pip install "evenly[models,tool]"`.

        >>> from evenly import Imputer, load_heart
        >>> table = load_heart()
        >>> imputer = Imputer("marginal", random_state=0).fit(table)
        >>> imputer.plot_imputed("thal").get_title(loc="left")
        'Observed and imputed cells: thal'
        """
        opened = self._open_quietly(self._table_of_fit(table))
        j, found = self._column(opened, column)
        drawn = next(iter(self._predictor().draw_some(opened.encoded, opened.missing, 1)))[j]
        values = found.values if found.values is not None else np.zeros(0)
        ax = new_axes(*SIZE) if ax is None else ax
        draw_imputed(ax, found.fitted.column, values[~np.isnan(values)], drawn[found.missing])
        return ax

    def plot_intervals(self, column: Any, table: Any = None, *, level: float = 0.9, ax: Any = None) -> Any:
        """Draw the missing cells of a column of numbers in order, each with its interval.

        Parameters are those of `plot_imputed`, and the level of the intervals.

        Examples
        --------
        Needs `pip install "evenly[models,tool]"`.

        >>> import numpy as np
        >>> from evenly import Imputer
        >>> table = np.random.default_rng(0).normal(size=(30, 2))
        >>> table[:9, 1] = np.nan
        >>> Imputer("marginal").fit(table).plot_intervals("x1").get_xlabel()
        '9 missing cells, by estimate'
        """
        opened = self._open_quietly(self._table_of_fit(table))
        j, found = self._column(opened, column)
        if found.fitted.column.has_classes:
            hint = "plot_imputed shows classes"
            raise TableError("classes", "expected numbers or dates", hint, column=found.fitted.column.name)
        ends = [one[j][found.missing] for one in self._ends(opened, level)]
        middle = self._predictor().choose(opened.encoded, opened.missing, [self._choose])[0][j]
        ax = new_axes(*SIZE) if ax is None else ax
        draw_intervals(ax, found.fitted.column, middle[found.missing], ends, level)
        return ax

    def plot_convergence(self, *, ax: Any = None) -> Any:
        """Draw the learning curves: by how much each column's log-likelihood exceeds that of its own distribution.

        A column that stays at 0 is overlooked, or does not depend on the others.

        Examples
        --------
        Needs `pip install "evenly[models,tool]"`.

        >>> from evenly import Imputer
        >>> Imputer("marginal").fit([[1.5, 2.0], [2.5, 0.5], [0.5, 1.0]]).plot_convergence().get_xlabel()
        'epoch'
        """
        check_is_fitted(self, "scaler_")
        ax = new_axes(*SIZE) if ax is None else ax
        draw_curves(ax, self.history_["log_likelihood"], self.baseline_)
        return ax

    def _table_of_fit(self, table: Any) -> Any:
        check_is_fitted(self, "scaler_")
        if table is None and (self._table is None or (table := self._table()) is None):
            raise TableError(
                "no table", "the one given to fit is not in memory", "give it: plot_imputed(column, table)"
            )
        return table

    def _column(self, opened: OpenedTable, label: Any) -> tuple[int, OpenedColumn]:
        modelled = {one.name for one in self.ensemble_.modelled}
        for j, one in enumerate(opened.columns):
            if label in (one.fitted.label, one.fitted.column.name) and one.fitted.column.name in modelled:
                return j, one
        raise TableError("no such modelled column", f"expected one of {', '.join(sorted(modelled))}", column=label)
