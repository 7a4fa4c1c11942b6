"""A Gaussian process with a length scale for each feature, and fast enough to be fitted between micro-batches.

The kernel is Matérn's with smoothness 3/2 plus noise. Its parameters are learnt on a part of the samples, by following
the sign of the gradient of their likelihood (Rprop); then the process remembers a larger part.
Nothing but numpy is needed, and a fit takes a second where a general library takes half a minute.

Invariants
1. Same samples, same process: which part is chosen depends on their number alone.
2. The standard deviation is that of a new observation, noise included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latecomer.slack.features import Floats

LEARN_SAMPLES, KEEP_SAMPLES = 300, 800
_STEPS = 60
_FIRST_LENGTH, _FIRST_NOISE = 0.3, 0.1  # in standard deviations, and of the variance
_LOW, _HIGH = np.log(1e-5), np.log(100.0)
_USUAL, _SPREAD = np.log(1.0), 1.5  # where length scales are believed to lie, and how firmly
_LEAST_NOISE = 1e-5
_JITTER = 1e-8


class Learnt(NamedTuple):
    """Logarithms: a length scale for each feature, the variance and the noise."""

    values: Floats

    @property
    def inverse_squares(self) -> Floats:
        """1 / length scale squared, for each feature."""
        return np.exp(-2.0 * self.values[:-2])

    @property
    def variance(self) -> float:
        """Of the process."""
        return float(np.exp(self.values[-2]))

    @property
    def noise(self) -> float:
        """The variance of the noise."""
        return float(np.exp(self.values[-1])) + _LEAST_NOISE


class GaussianProcess:
    """Regression with a standard deviation for every prediction."""

    def __init__(self, learn: int = LEARN_SAMPLES, keep: int = KEEP_SAMPLES) -> None:
        self._learn, self._keep = learn, keep

    def fit(self, x: Floats, y: Floats) -> GaussianProcess:
        """Learn the kernel from some samples, then remember more of them."""
        order = np.random.default_rng(0).permutation(len(y))
        few, many = np.sort(order[: self._learn]), np.sort(order[: self._keep])
        self._middle, self._scale = float(y.mean()), float(y.std()) or 1.0
        scaled = (y - self._middle) / self._scale
        self.learnt = learn_kernel(x[few], scaled[few])
        self._x = x[many]
        covariance = _matern(_distances(self._x, self._x, self.learnt), self.learnt)
        covariance[np.diag_indices_from(covariance)] += self.learnt.noise + _JITTER
        self._root = np.linalg.inv(np.linalg.cholesky(covariance))
        self._weights = self._root.T @ (self._root @ scaled[many])
        return self

    def predict(self, x: Floats, return_std: bool = False) -> Any:
        """The mean; with `return_std` also the standard deviation."""
        covariance = _matern(_distances(x, self._x, self.learnt), self.learnt)
        mean = covariance @ self._weights * self._scale + self._middle
        if not return_std:
            return mean
        explained = ((covariance @ self._root.T) ** 2).sum(axis=1)
        left = np.maximum(0.0, self.learnt.variance - explained) + self.learnt.noise
        return mean, np.sqrt(left) * self._scale


def learn_kernel(x: Floats, y: Floats) -> Learnt:
    """Likely parameters: steps grow while the gradient keeps its sign, and shrink where it turns (Rprop)."""
    squares = ((x[:, None, :] - x[None, :, :]) ** 2).reshape(-1, x.shape[1])
    values = np.concatenate([np.full(x.shape[1], np.log(_FIRST_LENGTH)), [0.0, np.log(_FIRST_NOISE)]])
    step, before = np.full(len(values), 0.2), np.zeros(len(values))
    best, most_likely = Learnt(values), -np.inf
    for _ in range(_STEPS):
        likelihood, gradient = log_likelihood(squares, y, Learnt(values))
        if likelihood > most_likely:
            best, most_likely = Learnt(values), likelihood
        turned = np.sign(gradient) * np.sign(before)
        step = np.clip(step * np.where(turned > 0, 1.2, np.where(turned < 0, 0.5, 1.0)), 1e-3, 0.8)
        before = np.where(turned < 0, 0.0, gradient)
        values = np.clip(values + np.sign(before) * step, _LOW, _HIGH)
    return best


def log_likelihood(squares: Floats, y: Floats, learnt: Learnt) -> tuple[float, Floats]:
    """The log likelihood of samples and its gradient, with a mild belief about the length scales."""
    count = len(y)
    root_3r = np.sqrt(3.0 * np.maximum(0.0, squares @ learnt.inverse_squares)).reshape(count, count)
    falling = learnt.variance * np.exp(-root_3r)
    smooth = (1.0 + root_3r) * falling
    covariance = smooth + (learnt.noise + _JITTER) * np.eye(count)
    root = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(covariance)
    weights = inverse @ y
    pull = np.outer(weights, weights) - inverse
    lengths = 1.5 * ((pull * falling).ravel() @ squares) * learnt.inverse_squares
    believed = (learnt.values[:-2] - _USUAL) / _SPREAD
    value = -0.5 * float(y @ weights) - float(np.log(np.diag(root)).sum()) - 0.5 * float(believed @ believed)
    others = [0.5 * float(np.sum(pull * smooth)), 0.5 * learnt.noise * float(np.trace(pull))]
    return value, np.concatenate([lengths - believed / _SPREAD, others])


def _distances(one: Floats, other: Floats, learnt: Learnt) -> Floats:
    """Distances between all pairs, in length scales."""
    scale = np.sqrt(learnt.inverse_squares)
    a, b = one * scale, other * scale
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    distances: Floats = np.sqrt(np.maximum(0.0, squared))
    return distances


def _matern(distance: Floats, learnt: Learnt) -> Floats:
    root_3r = np.sqrt(3.0) * distance
    covariance: Floats = learnt.variance * (1.0 + root_3r) * np.exp(-root_3r)
    return covariance
