"""How often the best test is right against Google's noise, by one who knows everybody else.

    python benchmarks/google_flows.py

Each of somebody's different trips in a week adds 1 to a count with Laplace noise of scale 1/0.66.
Half of the time that one is in. Thresholds, which hide counts below 100, are left out.
"""

import numpy as np

SCALE, DRAWS = 1 / 0.66, 400_000


def main() -> None:
    """Print a line for each number of trips."""
    rng = np.random.default_rng(1)
    for trips in (8, 16, 32):
        score = np.zeros(DRAWS)
        for _ in range(trips):
            noise = rng.laplace(0, SCALE, DRAWS)
            # The log of how much likelier the count is with this person, who is in.
            score += (np.abs(noise + 1) - np.abs(noise)) / SCALE
        right = (score > 0).mean() + (score == 0).mean() / 2
        print(f"{trips} trips: right in {right:.1%} ± {np.sqrt(right * (1 - right) / DRAWS):.2%}")


if __name__ == "__main__":
    main()
