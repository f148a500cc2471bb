"""One set of functions for NumPy, JAX and PyTorch arrays, and the few that table expressions have.

The maths of a likelihood is written once, against the namespace of its argument.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np

from evenly._support import EvenlyError, require

Array = Any
"""A NumPy array, a JAX array or a PyTorch tensor; where a docstring says so, a Narwhals expression."""


class Namespace(Protocol):
    """The functions that likelihoods use; each takes and returns arrays of one library.

    `asarray(x, like)` gives what is not yet an array of the library the precision and the device of `like`, and so do
    the draws.
    """

    def asarray(self, x: Any, like: Any = None) -> Array: ...
    def log(self, x: Array) -> Array: ...
    def log1p(self, x: Array) -> Array: ...
    def exp(self, x: Array) -> Array: ...
    def sqrt(self, x: Array) -> Array: ...
    def softplus(self, x: Array) -> Array: ...
    def abs(self, x: Array) -> Array: ...
    def floor(self, x: Array) -> Array: ...
    def where(self, condition: Array, x: Any, y: Any) -> Array: ...
    def stack(self, parts: list[Array]) -> Array: ...
    def concatenate(self, parts: list[Array]) -> Array: ...
    def broadcast_to(self, x: Array, shape: tuple[int, ...]) -> Array: ...
    def zeros_like(self, x: Array) -> Array: ...
    def eye_like(self, size: int, x: Array) -> Array: ...
    def argmax(self, x: Array) -> Array: ...
    def gammaln(self, x: Array) -> Array: ...
    def digamma(self, x: Array) -> Array: ...
    def trigamma(self, x: Array) -> Array: ...
    def logsumexp(self, x: Array) -> Array: ...
    def one_hot(self, x: Array, size: int) -> Array: ...
    def cumsum(self, x: Array) -> Array: ...
    def gamma_quantile(self, shape: Array, level: float) -> Array: ...
    def scipy_quantile(self, distribution: str, level: float, *parameters: Array, **named: Array) -> Array: ...
    def draw_normal(self, rng: Any, shape: tuple[int, ...], like: Array) -> Array: ...
    def draw_uniform(self, rng: Any, shape: tuple[int, ...], like: Array) -> Array: ...
    def draw_gamma(self, rng: Any, shape: Array) -> Array: ...
    def draw_poisson(self, rng: Any, rate: Array) -> Array: ...
    def split(self, rng: Any) -> tuple[Any, Any]: ...


def _absent(library: str) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        hint = "convert the parameters to NumPy"
        raise EvenlyError(f"{library} has no function for this quantile. Hint: {hint}.")

    return fail


def _quiet(function: Any) -> Any:
    def call(x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return function(x)

    return call


class _NumPy:
    """NumPy and SciPy."""

    def __init__(self) -> None:
        import scipy  # which loads scipy.stats, half a second, when it is first asked for
        import scipy.special as special

        self.asarray = lambda x, like=None: np.asarray(x)
        # The log of 0 is -infinity, silently, as in JAX and PyTorch: the parameter of what never occurs.
        self.log, self.log1p = _quiet(np.log), _quiet(np.log1p)
        self.exp, self.sqrt = np.exp, np.sqrt
        self.softplus = lambda x: np.logaddexp(x, 0.0)
        self.abs, self.floor, self.where = np.abs, np.floor, np.where
        self.zeros_like = np.zeros_like
        self.stack = lambda parts: np.stack(np.broadcast_arrays(*parts), axis=-1)
        self.concatenate = lambda parts: np.concatenate(parts, axis=-1)
        self.broadcast_to = np.broadcast_to
        self.eye_like = lambda size, x: np.eye(size, dtype=np.result_type(x, np.float32))
        self.argmax = lambda x: np.argmax(x, axis=-1)
        self.gammaln, self.digamma = special.gammaln, special.digamma
        # trigamma(x) = zeta(2, x): several times faster than polygamma, which forms a factorial too.
        self.trigamma = lambda x: special.zeta(2.0, x)
        self.logsumexp = lambda x: special.logsumexp(x, axis=-1)
        self.one_hot = lambda x, size: (np.asarray(x)[..., None] == np.arange(size)).astype(np.float64)
        self.cumsum = lambda x: np.cumsum(x, axis=-1)
        self.gamma_quantile = lambda shape, level: special.gammaincinv(shape, level)
        self.scipy_quantile = lambda distribution, level, *parameters, **named: getattr(scipy.stats, distribution).ppf(
            level, *parameters, **named
        )
        self.draw_normal = lambda rng, shape, like: rng.standard_normal(shape)
        self.draw_uniform = lambda rng, shape, like: rng.random(shape)
        self.draw_gamma = lambda rng, shape: rng.standard_gamma(shape)
        self.draw_poisson = lambda rng, rate: np.asarray(rng.poisson(rate), np.float64)
        self.split = lambda rng: (rng, rng)


class _Jax:
    """JAX; imported only for a JAX array."""

    def __init__(self) -> None:
        jax = require("jax", "models")
        jnp, special = jax.numpy, require("jax.scipy.special", "models")

        def asarray(x: Any, like: Any = None) -> Any:
            if isinstance(x, jax.Array) or not isinstance(like, jax.Array):
                return jnp.asarray(x)
            return jnp.asarray(x, dtype=like.dtype if jnp.issubdtype(like.dtype, jnp.floating) else None)

        self.asarray = asarray
        self.log, self.log1p, self.exp, self.sqrt = jnp.log, jnp.log1p, jnp.exp, jnp.sqrt
        self.softplus = jax.nn.softplus
        self.abs, self.floor, self.where = jnp.abs, jnp.floor, jnp.where
        self.zeros_like = jnp.zeros_like
        self.stack = lambda parts: jnp.stack(jnp.broadcast_arrays(*parts), axis=-1)
        self.concatenate = lambda parts: jnp.concatenate(parts, axis=-1)
        self.broadcast_to = jnp.broadcast_to
        self.eye_like = lambda size, x: jnp.eye(size, dtype=x.dtype)
        self.argmax = lambda x: jnp.argmax(x, axis=-1)
        self.gammaln, self.digamma = special.gammaln, special.digamma
        self.trigamma = lambda x: special.polygamma(1, x)
        self.logsumexp = lambda x: special.logsumexp(x, axis=-1)
        self.one_hot = lambda x, size: (x[..., None] == jnp.arange(size)).astype(float)
        self.cumsum = lambda x: jnp.cumsum(x, axis=-1)
        self.gamma_quantile = self.scipy_quantile = _absent("JAX")
        self.draw_normal = lambda rng, shape, like: jax.random.normal(rng, shape, like.dtype)
        self.draw_uniform = lambda rng, shape, like: jax.random.uniform(rng, shape, like.dtype)
        self.draw_gamma = lambda rng, shape: jax.random.gamma(rng, shape, dtype=shape.dtype)
        self.draw_poisson = lambda rng, rate: jax.random.poisson(rng, rate).astype(rate.dtype)
        self.split = jax.random.split


class _Torch:
    """PyTorch; imported only for a tensor."""

    def __init__(self) -> None:
        torch = require("torch", "torch")

        def asarray(x: Any, like: Any = None) -> Any:
            # Alone, a plain number becomes double precision: as_tensor would round it to single.
            known = isinstance(like, torch.Tensor)
            dtype = like.dtype if known and like.is_floating_point() else torch.float64
            if not isinstance(x, torch.Tensor):
                return torch.as_tensor(x, dtype=dtype, device=like.device if known else None)
            return x.to(dtype) if known and not x.is_floating_point() else x

        self.asarray = asarray
        self.log, self.log1p, self.exp, self.sqrt = torch.log, torch.log1p, torch.exp, torch.sqrt
        self.softplus = torch.nn.functional.softplus
        self.abs, self.floor, self.where = torch.abs, torch.floor, torch.where
        self.zeros_like = torch.zeros_like
        self.stack = lambda parts: torch.stack(torch.broadcast_tensors(*parts), dim=-1)
        self.concatenate = lambda parts: torch.cat(parts, dim=-1)
        self.broadcast_to = torch.broadcast_to
        self.eye_like = lambda size, x: torch.eye(size, dtype=x.dtype, device=x.device)
        self.argmax = lambda x: torch.argmax(x, dim=-1)
        self.gammaln, self.digamma = torch.special.gammaln, torch.special.digamma
        # trigamma(x) = zeta(2, x): polygamma's is good to 1e-9 only.
        self.trigamma = lambda x: torch.special.zeta(torch.full_like(x, 2.0), x)
        self.logsumexp = lambda x: torch.logsumexp(x, dim=-1)
        self.one_hot = lambda x, size: (x[..., None] == torch.arange(size, device=x.device)).to(
            x.dtype if x.is_floating_point() else torch.get_default_dtype()
        )
        self.cumsum = lambda x: torch.cumsum(x, dim=-1)
        self.gamma_quantile = self.scipy_quantile = _absent("PyTorch")
        self.draw_normal = lambda rng, shape, like: torch.randn(
            shape, generator=rng, dtype=like.dtype, device=like.device
        )
        self.draw_uniform = lambda rng, shape, like: torch.rand(
            shape, generator=rng, dtype=like.dtype, device=like.device
        )
        # The only gamma draw in PyTorch that takes a generator; the public class draws from the global one.
        self.draw_gamma = lambda rng, shape: torch._standard_gamma(shape, generator=rng)
        self.draw_poisson = lambda rng, rate: torch.poisson(rate, generator=rng)
        self.split = lambda rng: (rng, rng)


class _Expression:
    """Narwhals expressions: what a likelihood's terms need, so that any table engine can average them."""

    def __init__(self) -> None:
        import narwhals as nw

        self.log, self.exp, self.sqrt = nw.Expr.log, nw.Expr.exp, nw.Expr.sqrt
        self.abs = nw.Expr.abs
        self.where = lambda condition, x, y: nw.when(condition).then(x).otherwise(y)


_NAMESPACES = {"jax": _Jax, "jaxlib": _Jax, "torch": _Torch, "narwhals": _Expression}


@cache
def _load(library: str) -> Any:
    return _NAMESPACES.get(library, _NumPy)()


def namespace(*arrays: Any) -> Namespace:
    """Return the functions for the library that the arrays belong to; NumPy for plain numbers.

    Examples
    --------
    >>> import numpy as np
    >>> xp = namespace(np.array([1.0, 2.0]))
    >>> float(xp.trigamma(np.array(1.0)))  # pi^2 / 6
    1.6449340668482266
    >>> namespace(3.0) is xp
    True
    """
    for array in arrays:
        library = type(array).__module__.partition(".")[0]
        if library in _NAMESPACES:
            return _load(library)  # type: ignore[no-any-return]  # each class has the protocol's functions
    return _load("numpy")  # type: ignore[no-any-return]  # as above


def to_numpy(x: Any) -> Any:
    """Return numbers, lists or an array of any library as a NumPy array in double precision, without gradients.

    Examples
    --------
    >>> to_numpy([1, 2])
    array([1., 2.])
    """
    if type(x).__module__.partition(".")[0] == "torch":
        x = x.detach().cpu()
    return np.asarray(x, np.float64)
