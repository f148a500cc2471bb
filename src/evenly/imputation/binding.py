"""What was learned from the codes of a table, bound to the table itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evenly.imputation.settings import resolve
from evenly.tables import Table

if TYPE_CHECKING:
    from evenly.imputation.imputer import Imputer


def bind(imputer: Imputer, fitted: Imputer, table: Table) -> Imputer:
    """Give an imputer what another one learned from some cells of a table, as numbers and codes of its classes.

    Parameters
    ----------
    imputer : Imputer
        It becomes fitted, in place.
    fitted : Imputer
        One that was fitted to the table's numbers and codes, with the columns of the imputer's own settings.
    table : Table
        The opened table.

    Examples
    --------
    >>> import numpy as np
    >>> from evenly import Imputer
    >>> from evenly.tables import open_table
    >>> cells = np.array([["a", 1.5], ["b", 2.5], ["a", None], [None, 1.25]], object)
    >>> codes = np.array([[0.0, 1.5], [1.0, 2.5], [0.0, np.nan], [np.nan, 1.25]])
    >>> learned = Imputer("marginal", kinds={0: "binary"}).fit(codes)
    >>> bind(Imputer("marginal"), learned, open_table(cells)).transform(cells)[3].tolist()
    ['a', 1.25]
    """
    scaler = resolve(imputer).fit_scaler(table)
    columns = [
        replace(own, statistics=spec.fitted.statistics, fits=spec.fitted.fits)
        for own, spec in zip(scaler.columns_, fitted.ensemble_.specs, strict=True)
    ]
    specs = tuple(replace(spec, fitted=own) for own, spec in zip(columns, fitted.ensemble_.specs, strict=True))
    scaler.columns_, scaler.target_, scaler.seed_ = columns, fitted.scaler_.target_, fitted.seed_
    ensemble, panel = replace(fitted.ensemble_, specs=specs), fitted.ensemble_.panel
    if panel is not None:
        key = [one.column.name for one in columns].index(panel.key.name)
        panel = panel.bound(columns[key].column, table.columns[key].fresh(), ensemble.modelled)
    return imputer._become(scaler, replace(ensemble, panel=panel))
