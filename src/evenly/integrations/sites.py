"""Which columns of a fitted scaler the sites of a program are, whatever the library: looked up once, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenly._support import TableError
from evenly.likelihoods import Array, Likelihood, is_registered, namespace
from evenly.scaling import FittedColumn, LipschitzScaler

Columns = Any
"""What a site is mapped to: a column, or a list of columns along the last axis of its event."""


def site_error(site: str, got: str, expected: str, hint: str = "") -> TableError:
    """Return the error of a site: what was got there, what can be had, and how to leave the site as it is."""
    skip = f"skip=[{site!r}] leaves the site as it is"
    return TableError(f"{got} at site {site!r}", expected, f"{hint}; {skip}" if hint else skip)


@dataclass(frozen=True)
class Site:
    """An observed site of a program, and the columns that it observes."""

    name: str
    columns: tuple[FittedColumn, ...]
    several: bool
    """Whether the columns lie along the last axis of the site; else all its cells are of one column."""
    tricks: bool = False
    """Whether the Gamma trick stands in for a discrete likelihood."""

    @property
    def family(self) -> Likelihood:
        """The likelihood of its columns, without a trick."""
        family = self.columns[0].family
        assert family is not None  # ignored columns are refused
        return family

    @property
    def is_tricked(self) -> bool:
        """Whether its distribution is replaced by that of the Gamma trick's features."""
        return self.tricks and self.columns[0].features[0].trick == "gamma"

    @property
    def is_left(self) -> bool:
        """Whether the site stays as it is, because nothing scales its likelihood."""
        return not self.family.scalable and not self.is_tricked

    @property
    def is_own(self) -> bool:
        """Whether the likelihood is one that a user defined."""
        return not is_registered(self.family)

    @cached_property
    def scale(self) -> Any:
        """The scale of its column, or an array of those of its columns."""
        scales = [one.fits[0].scale for one in self.columns]
        return np.array(scales) if self.several else scales[0]

    @cached_property
    def shift(self) -> Any:
        """What its columns are shifted by before they are scaled; 0.0 if none of them is."""
        shifts = [one.column.shift for one in self.columns]
        return np.array(shifts) if self.several and any(shifts) else shifts[0]

    def scale_like(self, x: Array) -> Array:
        """Return the scale as the arrays of a program have it."""
        return namespace(x).asarray(self.scale, x)

    def widened(self) -> Site:
        """Return the site with its columns along the last axis but one, as components of a mixture have them."""
        wide = Site(self.name, self.columns, self.several, self.tricks)
        if self.several:
            wide.__dict__["scale"] = self.scale[:, None]
        return wide

    def error(self, got: str, expected: str, hint: str = "") -> TableError:
        """Return an error that names the site."""
        return site_error(self.name, got, expected, hint)

    @property
    def columns_said(self) -> str:
        """Its columns, as messages name them."""
        names = ", ".join(repr(one.column.name) for one in self.columns)
        return f"columns {names}" if len(self.columns) > 1 else f"column {names}"


def read_sites(
    scaler: LipschitzScaler, sites: Mapping[str, Columns], *, tricks: bool = False, skip: Sequence[str] = ()
) -> dict[str, Site]:
    """Return the sites by name, with the columns of a fitted scaler that they observe.

    Examples
    --------
    >>> scaler = LipschitzScaler("lip-none", kinds={0: "real"}).fit(np.array([[0.5], [-2.0], [4.5]]))
    >>> read_sites(scaler, {"y": "x0"})["y"].family
    <likelihood normal>
    >>> read_sites(scaler, {"y": "x1"})
    Traceback (most recent call last):
    evenly.TableError: got the column 'x1' at site 'y', but expected one of the scaler's: 'x0'. Hint: skip=['y'] \
leaves the site as it is.
    """
    check_is_fitted(scaler, "columns_")
    if not isinstance(sites, Mapping) or not sites:
        raise TableError(f"{sites!r} as sites", "expected a mapping of site to column", 'such as {"obs": "income"}')
    if isinstance(skip, str):
        raise TableError(f"skip={skip!r}", "expected a list of sites", f"write [{skip!r}]")
    read = {str(name): _site(scaler, str(name), given, tricks) for name, given in sites.items() if name not in skip}
    if tricks and not any(one.trick == "gamma" for column in scaler.columns_ for one in column.features):
        raise TableError(
            f"tricks=True and a scaler fitted by {scaler.method!r}",
            "expected one with the Gamma trick",
            'fit LipschitzScaler("lip-gamma")',
        )
    return read


def _site(scaler: LipschitzScaler, name: str, given: Columns, tricks: bool) -> Site:
    several = isinstance(given, (list, tuple))
    columns = tuple(find_column(scaler, one, name) for one in (given if several else [given]))
    if not columns:
        raise site_error(name, "no columns", "expected one at least")
    site = Site(name, columns, several, tricks)
    families = {one.family.name: one.column.name for one in columns if one.family is not None}
    if len(families) > 1:
        listed = ", ".join(f"{family} of {column!r}" for family, column in families.items())
        raise site.error(f"columns of the likelihoods {listed}", "expected one likelihood", "write a site for each")
    if site.is_tricked and several:
        raise site.error(f"several columns of the {site.family.name} likelihood", "the Gamma trick takes one a site")
    return site


def find_column(scaler: LipschitzScaler, given: Any, site: str | None = None) -> FittedColumn:
    """Return the fitted column of a name, or of a label such as the position in an array."""
    by_name: dict[Any, FittedColumn] = {one.column.name: one for one in scaler.columns_} | {
        one.label: one for one in scaler.columns_ if not isinstance(one.label, str)
    }
    try:
        column = by_name.get(given)
    except TypeError:  # not hashable
        column = None

    def refuse(got: str, expected: str, hint: str = "") -> TableError:
        return TableError(got, expected, hint) if site is None else site_error(site, got, expected, hint)

    if column is None:
        names = [repr(one.column.name) for one in scaler.columns_]
        more = ", ..." if len(names) > 12 else ""
        raise refuse(f"the column {given!r}", f"expected one of the scaler's: {', '.join(names[:12])}{more}")
    if not column.is_variable:
        raise refuse(f"the column {given!r}", "the scaler ignores it", "declare its kind when the scaler is fitted")
    if column.column.clip is not None:
        raise refuse(f"the column {given!r}", "its zeros are clipped, which has no inverse", 'fit with zeros="shift"')
    return column


# --- shapes and missing cells -----------------------------------------------------------------------------------------


def check_shapes(site: Site, shape: tuple[int, ...], observed: tuple[int, ...] | None) -> None:
    """Refuse a distribution whose shape is not that of the columns, and observations that do not fit it."""
    n = len(site.columns)
    if site.several and shape[-1:] != (n,):
        raise site.error(
            f"a distribution of shape {shape}",
            f"expected its {n} columns along the last axis",
            "give them an event dimension by to_event(1)",
        )
    if observed is None:
        return
    try:
        together = np.broadcast_shapes(shape, observed)
    except ValueError:
        together = None
    if together not in (shape, observed) or (site.several and observed[-1:] != (n,)):
        raise site.error(f"observations of shape {observed}", f"its distribution has the shape {shape}")


def check_missing(site: Site, unmasked: int) -> None:
    """Refuse missing cells that no mask hides."""
    if unmasked:
        raise site.error(
            f"{unmasked} missing cells without a mask",
            "the log-density there is not a number",
            'mask them, or pass missing="mask"',
        )


# --- the parameters of distributions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """A class of distributions, which NumPyro, Pyro and PyTorch call the same, and the likelihood that it is."""

    likelihood: str
    arguments: tuple[str, ...]
    """What the library calls the likelihood's usual parameters, in their order."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Array]:
        """Return the arguments in the table's units from those of the scaled column."""
        given = [getattr(fn, name) for name in self.arguments]
        xp = namespace(*given)
        like = next((one for one in given if namespace(one) is xp), None)
        usual = xp.stack([xp.asarray(one, like) for one in given])
        usual = site.family.unscale_usual(usual, site.scale_like(usual))
        return {name: usual[..., i] for i, name in enumerate(self.arguments)}


@dataclass(frozen=True)
class Joint(Family):
    """A normal of several columns at once."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Array]:
        """Divide means by the scale, rows of a root of the covariance likewise, variances by its square."""
        moved = {}
        for name in self.arguments:
            given = getattr(fn, name)
            scale = site.scale_like(given)
            power = 2.0 if name.endswith("diag") else 1.0
            moved[name] = given / (scale if name == "loc" or power == 2.0 else scale[..., None]) ** power
        return moved


@dataclass(frozen=True)
class OfKnownShape(Family):
    """A Weibull: its scale is multiplied with the column, its shape is not."""

    def unscale(self, fn: Any, site: Site) -> dict[str, Array]:
        """Unscale the scale as a cell of the column."""
        return {
            "scale": site.family.unscale_data(fn.scale, site.scale_like(fn.scale)),
            "concentration": fn.concentration,
        }


OWN = "your own"
FAMILIES: dict[str, Family] = {
    "Normal": Family("normal", ("loc", "scale")),
    "MultivariateNormal": Joint("normal", ("loc", "scale_tril")),
    "LowRankMultivariateNormal": Joint("normal", ("loc", "cov_factor", "cov_diag")),
    "LogNormal": Family("log-normal", ("loc", "scale")),
    "Gamma": Family("gamma", ("concentration", "rate")),
    "InverseGamma": Family("inverse-gamma", ("concentration", "rate")),
    "Exponential": Family("exponential", ("rate",)),
    "Weibull": OfKnownShape(OWN, ("scale", "concentration")),
}
"""By the name of the class. A Weibull belongs to a likelihood that a user defined, or, with shape 2, to a Rayleigh."""


def family_of(
    site: Site, kind: str, families: Mapping[str, Family] = FAMILIES, *, beside: str = "from_likelihood"
) -> Family | None:
    """Return how a distribution is unscaled; None for one that only the scale law of the user's likelihood can move.

    Parameters
    ----------
    site : Site
        What it observes.
    kind : str
        The name of its class.
    families : mapping
        Those that the library has.
    beside : str
        The function that makes distributions of all other likelihoods, if there is one.

    Examples
    --------
    >>> scaler = LipschitzScaler("lip-none", kinds={0: "real"}).fit(np.array([[0.5], [-2.0], [4.5]]))
    >>> site = read_sites(scaler, {"y": "x0"})["y"]
    >>> family_of(site, "Normal").arguments
    ('loc', 'scale')
    >>> family_of(site, "Cauchy")
    Traceback (most recent call last):
    evenly.TableError: got the distribution Cauchy at site 'y', but its column 'x0' was scaled for the normal \
likelihood: expected Normal, MultivariateNormal, LowRankMultivariateNormal or from_likelihood("normal", ...). Hint: \
declare the likelihood when the scaler is fitted; skip=['y'] leaves the site as it is.
    """
    found, name = families.get(kind), site.family.name
    if found is not None and found.likelihood == name:
        return found
    multiplied = float(site.family.unscale_data(np.float64(3.0), 2.0)) == 1.5
    if isinstance(found, OfKnownShape) and multiplied and (site.is_own or name == "rayleigh"):
        return found
    if site.is_own and (found is None or isinstance(found, OfKnownShape)):
        return None
    suitable = [one for one, family in families.items() if family.likelihood == name]
    suitable += ["Weibull"] if name == "rayleigh" else []
    made = [f'{beside}("{name}", ...)'] if beside else []
    expected = " or ".join(part for part in (", ".join(suitable), *made) if part)
    raise site.error(
        f"the distribution {kind}",
        f"its {site.columns_said} was scaled for the {name} likelihood: expected {expected}",
        "declare the likelihood when the scaler is fitted",
    )
