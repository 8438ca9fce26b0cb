"""The pictures and figures of docs/gallery.md and docs/graph-matching.md: an image, metro flow, ratings, two graphs.

python -m benchmarks.gallery [--out docs] [--only image|metro|ratings|matching]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.graph_matching import noisy_pair
from condgrad.learn import GraphMatcher, RobustCompletion
from condgrad.learn.images import Image, restore

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


# ------------------------------------------------------------------------------------------------------------- an image


def facade(size: int = 256) -> np.ndarray:
    """A house front in colour, size x size x 3 in 0..255: courses of brick, rows of windows, a door, the sun above the roof."""
    y, x = np.mgrid[0:size, 0:size] * (256 / size)
    picture = np.empty((size, size, 3))
    sky = np.clip(1 - y / 120, 0, 1)[..., None]
    picture[:] = sky * (120, 170, 225) + (1 - sky) * (225, 232, 240)
    wall = y > 56
    course = np.floor((y - 56) / 8)
    joints = ((y - 56) % 8 < 1.2) | ((x + 8 * (course % 2)) % 16 < 1.2)
    tint = 12 * np.sin(course * 2.1) + 10 * np.sin(x / 19)
    brick = np.where(joints[..., None], (205, 190, 175), np.stack([168 + tint, 84 + tint / 2, 66 + tint / 2], axis=-1))
    picture[wall] = brick[wall]
    roof = (y > 44) & (y <= 56)
    picture[roof] = np.stack([70 + 14 * (x % 12 < 6), 62 + 8 * (x % 12 < 6), 66 + 0 * x], axis=-1)[roof]
    for top in (74, 122, 170):
        for left in range(20, 240, 48):
            if top == 170 and left == 116:
                continue
            _window(picture, x, y, left, top)
    door = (x >= 114) & (x < 146) & (y >= 172)
    picture[door] = (52, 88, 72)
    picture[door & ((x % 16 < 2) | (np.abs(y - 212) < 2))] = (36, 62, 52)
    picture[(x - 210) ** 2 + (y - 24) ** 2 < 14**2] = (250, 214, 96)
    return np.clip(picture, 0, 255).round()


def _window(picture: np.ndarray, x: np.ndarray, y: np.ndarray, left: int, top: int) -> None:
    frame = (x >= left) & (x < left + 26) & (y >= top) & (y < top + 34)
    pane = (x >= left + 3) & (x < left + 23) & (y >= top + 3) & (y < top + 31)
    bar = (np.abs(x - left - 13) < 1.2) | (np.abs(y - top - 15) < 1.2)
    glass = np.stack([70 + 1.2 * (y - top), 104 + 1.1 * (y - top), 140 + (y - top)], axis=-1)
    picture[frame] = (238, 232, 220)
    picture[pane & ~bar] = glass[pane & ~bar]


def damaged(picture: np.ndarray, lost: float = 0.5, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    """The picture with some pixels lost (NaN), and some of the others black or white in each channel."""
    rng = np.random.default_rng(seed)
    salt = rng.random(picture.shape) < noise
    found = np.where(salt, rng.choice([0.0, 255.0], size=picture.shape), picture)
    found[rng.random(picture.shape[:2]) < lost] = np.nan
    return found


def restored(picture: np.ndarray, loss: str = "welsch") -> np.ndarray:
    """A squared loss believes every pixel: there the model is taken for all of them, which is better for it."""
    image = Image(picture, 255.0, "RGB")
    if loss != "squared":
        return restore(image, RobustCompletion(loss)).image.pixels
    fit = restore(image, RobustCompletion(loss)).fit
    height, width, channels = picture.shape
    return np.clip(fit.fill("nothing"), 0, 255).reshape(height, channels, width).transpose(0, 2, 1)


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    """In decibels, for pixels up to 255."""
    return float(10 * np.log10(255**2 / np.mean((found - truth) ** 2)))


def draw_image(out: Path) -> list[list[str]]:
    """The picture: damaged, by squared loss, by the smoothed l0 loss, the truth; with decibels under each."""
    truth = facade()
    given = damaged(truth)
    panels = {"50 % lost, 5 % wrong": np.nan_to_num(given, nan=255.0)}
    table = []
    for label, loss in (("squared", "squared"), ("Huber", "huber"), ("smoothed l0", "welsch")):
        found = restored(given, loss)
        table.append([label, f"{psnr(found, truth):.1f} dB"])
        if loss != "huber":
            panels[f"{label}: {psnr(found, truth):.1f} dB"] = found
    panels["truth"] = truth
    with _figure(11, 3.1, out / "gallery-image.png") as figure:
        for panel, (label, picture) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
            panel.imshow(picture / 255, interpolation="nearest")
            panel.set_title(label, fontsize=10)
            panel.set_axis_off()
    return [["loss", "PSNR"], *table]


# ------------------------------------------------------------------------------------------------------------ metro flow


def flow() -> np.ndarray:
    """Passengers in Hangzhou's metro: 80 stations x 25 days x 108 times of day."""
    from scipy.io import loadmat

    return loadmat(_data("traffic/Hangzhou_tensor.mat"))["tensor"].astype(float)


def lose_days(
    flow: np.ndarray, share: float = 0.2, faulty: float = 0.05, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(the flow with whole days lost at some stations and some readings anything up to the largest, which days are lost)."""
    rng = np.random.default_rng(seed)
    lost = rng.random(flow.shape[:2]) < share
    given = np.where(rng.random(flow.shape) < faulty, rng.uniform(0, flow.max(), flow.shape), flow)
    given[lost] = np.nan
    return given, lost


def fill_days(given: np.ndarray, loss: str) -> np.ndarray:
    """A row for each station and time of day, a column for each day; counts vary as their size, so that roots vary evenly."""
    stations, days, times = given.shape
    roots = np.sqrt(given).transpose(0, 2, 1).reshape(stations * times, days)
    filled = np.maximum(RobustCompletion(loss).fit(roots).fill(), 0) ** 2
    return filled.reshape(stations, times, days).transpose(0, 2, 1)


def historical(given: np.ndarray, middle: str) -> np.ndarray:
    """What the other days were like at the same station and time."""
    usual = {"mean": np.nanmean, "median": np.nanmedian}[middle](given, axis=1, keepdims=True)
    return np.where(np.isnan(given), usual, given)


def rmse(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def typical(truth: np.ndarray, lost: np.ndarray, found: np.ndarray) -> tuple[int, int]:
    """Of the lost days at the ten busiest stations, the one with the middle error."""
    busiest = np.argsort(-truth.sum(axis=(1, 2)))[:10]
    days = [(rmse(found[s, d], truth[s, d]), int(s), int(d)) for s in busiest for d in np.flatnonzero(lost[s])]
    _, station, day = sorted(days)[len(days) // 2]
    return station, day


def draw_metro(out: Path) -> list[list[str]]:
    truth = flow()
    ways = {"historical mean": "mean", "historical median": "median"}
    table = [["", "as it is", "5 % of the readings wrong"]]
    cells: dict[str, list[str]] = {}
    found: dict[str, np.ndarray] = {}
    for faulty in (0.0, 0.05):
        given, lost = lose_days(truth, faulty=faulty)
        found = {label: historical(given, middle) for label, middle in ways.items()}
        for label, loss in (("squared", "squared"), ("Huber", "huber"), ("smoothed l0", "welsch")):
            found[label] = fill_days(given, loss)
        for label, filled in found.items():
            cells.setdefault(label, []).append(f"{rmse(filled[lost], truth[lost]):.1f}")
    station, day = typical(truth, lost, found["smoothed l0"])
    hours = 6 + np.arange(truth.shape[2]) / 6
    with _figure(8, 3.3, out / "gallery-metro.png") as figure:
        panel = figure.subplots()
        panel.plot(hours, truth[station, day], color="black", linewidth=2, label="truth")
        for label, colour, dashes in (
            ("historical mean", "#767676", ":"),
            ("squared", "#D55E00", "--"),
            ("smoothed l0", "#0072B2", "-"),
        ):
            panel.plot(hours, found[label][station, day], dashes, color=colour, label=label)
        title = "A lost day at a busy station, 5 % of the readings wrong"
        panel.set(xlabel="hour", ylabel="passengers in 10 minutes", title=title, xticks=range(6, 25, 3))
        panel.legend(frameon=False)
        panel.spines[["top", "right"]].set_visible(False)
    return table + [[label, *row] for label, row in cells.items()]


# --------------------------------------------------------------------------------------------------------------- ratings


def ratings(gross: float = 0.0) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """MovieLens 100K as ((user, item, rating) to fit, the same to test), a fifth of it; with ``gross`` of the first off by 10."""
    from condgrad.data import load

    seen = load(_data("ml-100k/u.data"))
    users, items, values = seen.row_ids[seen.rows], seen.col_ids[seen.cols], seen.values.copy()
    order = np.random.default_rng(0).permutation(len(values))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    rng = np.random.default_rng(3)
    wrong = train[rng.random(len(train)) < gross]
    values[wrong] += rng.choice([-10.0, 10.0], size=len(wrong))
    return tuple((users[part], items[part], values[part]) for part in (train, test))  # type: ignore[return-value]


def rate() -> list[list[str]]:
    table = [["loss", "clean", "5 % off by 10"]]
    sets = [ratings(), ratings(gross=0.05)]
    for label, loss in (("squared", "squared"), ("Huber", "huber"), ("smoothed l0", "welsch")):
        errors = []
        for train, (users, items, values) in sets:
            model = RobustCompletion(loss).fit(train)
            errors.append(f"{rmse(model.predict(np.column_stack([users, items])), values):.4f}")
        table.append([label, *errors])
    return table


# ------------------------------------------------------------------------------------------------------------- two graphs


def draw_matching(out: Path) -> list[list[str]]:
    """Adjacency matrices of a pair: A, B as it is given, B in the order that was found, and where they differ."""
    A, B, truth = noisy_pair("block", 100, 100)
    matcher = GraphMatcher().fit(A, B)
    p = matcher.permutation_
    found = B[np.ix_(p, p)]
    panels = {"A": A, "B": B, "B in the order found": found, "edges in one of them only": np.abs(A - found)}
    with _figure(11, 3.0, out / "graph-matching.png") as figure:
        for panel, (label, graph) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
            panel.imshow(graph, cmap="Greys", interpolation="nearest")
            panel.set_title(label, fontsize=10)
            panel.set(xticks=[], yticks=[])
    right = f"{np.mean(p == truth):.0%}"
    return [["nodes with their true partner", "edges in both, as a share"], [right, f"{matcher.score_:.1%}"]]


def _data(name: str) -> Path:
    if not (DATA / name).exists():
        raise FileNotFoundError(
            2, "The gallery's data are not in the folder shared/data beside the project", str(DATA / name)
        )
    return DATA / name


@contextmanager
def _figure(width: float, height: float, path: Path) -> Iterator[Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    from condgrad.report.text_table import table

    parts = {"image": draw_image, "metro": draw_metro, "ratings": lambda out: rate(), "matching": draw_matching}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder for the pictures")
    parser.add_argument("--only", choices=parts)
    arguments = parser.parse_args()
    for name, part in parts.items():
        if arguments.only in (None, name):
            header, *rows = part(arguments.out)
            print(table(header, rows), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
