"""Small random values for constants of the program that determine when rarely executed code runs
(src/base/tuned.h). A build with tests takes them from the environment. All processes of a store must use the
same values."""

import os
import random

KIB, MIB = 1 << 10, 1 << 20
NAME = "TORTURE_SIZES"
LOG_MOVED = 32 * MIB  # the default


def draw(seed, smallest=False):
    """Returns random {name: value}; with `smallest`, runs of the index are written and merged continuously,
    within hundreds of events."""
    chosen = random.Random(f"sizes {seed}")
    log_moved = chosen.choice((64 * KIB, 512 * KIB, 4 * MIB, LOG_MOVED))
    return {
        "refs_gathered": chosen.choice((20, 40) if smallest else (30, 100, 400, 1500)),
        "refs_bucket_entries": chosen.choice((2, 4) if smallest else (2, 8, 40)),
        "refs_group_buckets": chosen.choice((2, 3) if smallest else (2, 7, 96)),
        "refs_moved_per_new": chosen.choice((2, 3, 8)),
        "refs_moved_at_least": chosen.choice((1, 16, 64)),
        "refs_read": chosen.choice((100, 10_000)),
        "refs_checked": chosen.choice((300, 1_000_000)),
        "log_moved": log_moved,
        "log_left": log_moved // 32,
        "log_rest": log_moved // 8,
        "log_tried": log_moved // 8,
        "batch": chosen.choice((3, 40, 1024)),
        "page_size": chosen.choice((512, 2048, 4096)),
    }


def use(sizes):
    """Sets the values for processes started from now on; without any: the defaults."""
    if sizes:
        os.environ[NAME] = ",".join(f"{name}={value}" for name, value in sizes.items())
    else:
        os.environ.pop(NAME, None)
    return sizes


def use_drawn(seed, smallest=False):
    """Draws, sets and prints the values."""
    sizes = use(draw(seed, smallest))
    print("sizes:", os.environ[NAME], flush=True)
    return sizes
