"""The settings of the completion benchmark's peers, chosen on a tenth of the clean training set of MovieLens 100K, held out.

The test set is not read. Those with a robust loss are chosen by the mean of two errors on these clean entries: after training on
the clean rest, and after training on the rest with gross outliers; otherwise every scale of the loss that is too large to be
robust would do. Prints the best of the grid in completion_peers.py for each peer, or for those that are named.
"""

from __future__ import annotations

import sys
from itertools import product
from statistics import fmean

from benchmarks.completion_data import contaminated, held_out, movielens, rmse, split
from benchmarks.completion_peers import PEERS, predict
from benchmarks.harness import table


def main() -> None:
    train, _ = split(movielens())
    rest, held = held_out(train)
    for name in sys.argv[1:] or PEERS:
        peer, found = PEERS[name], []
        sets = [rest, contaminated(rest, "gross")] if peer.robust else [rest]
        for values in product(*peer.grid.values()):
            settings = dict(zip(peer.grid, values, strict=True))
            errors = [rmse(predict(name, one, held, 0, settings)[0], held.values) for one in sets]
            found.append((fmean(errors), str(settings)))
        table(
            f"{name}, now {peer.ratings}",
            ("held-out RMSE", "settings"),
            [(f"{e:.4f}", s) for e, s in sorted(found)[:3]],
        )


if __name__ == "__main__":
    main()
