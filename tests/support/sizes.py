"""Small random values for constants of the program that determine when rarely executed code runs
(src/base/tuned.h). A build with tests takes them from the environment. All processes of a store must use the
same values.

usage: sizes.py (SEED | least)   prints a value of TORTURE_SIZES
"""

import os
import random
import sys

KIB, MIB = 1 << 10, 1 << 20
MS, SECOND, HOUR = 1000, 1_000_000, 3600 * 1_000_000
NAME = "TORTURE_SIZES"
LOG_MOVED = 32 * MIB  # the default

# name: (usual value, smaller values in ascending order). With any combination the ordinary service works: it
# takes requests of every documented size, and no work waits for ever. The usual value is that of the program.
TABLE = {
    # The index of client_refs on the embedded store (store/events/client_refs.h).
    "refs_gathered": (97_000, (30, 100, 400, 1500)),
    "refs_bucket_entries": (40, (2, 8)),
    "refs_group_buckets": (96, (2, 7)),
    "refs_moved_per_new": (2, (3, 8)),
    "refs_moved_at_least": (64, (1, 16)),
    "refs_read": (10_000, (100,)),
    "refs_checked": (1_000_000, (300,)),
    "refs_run_max": ((1 << 31) - 2, (300, 1000)),  # numbers of runs, which are reused after the last
    # The index of digests (store/events/digest_index.h).
    "digests_gathered": (16_384, (20, 100, 700)),
    "digests_of_chain": (8192, (20, 100, 700)),
    "digest_block": (190, (1, 7)),
    "digests_merged": (128, (1, 5)),
    "digests_deleted": (512, (1, 5)),
    "digests_scanned": (65_536, (20_000,)),  # less, and lookups get 503
    "digests_scanned_directly": (256, (1, 20)),
    "digests_us": (SECOND, (20 * MS,)),
    "digests_failed_us": (10 * SECOND, (20 * MS,)),
    "test_notices": (1000, (3, 20)),  # kept of a channel (store/notices/test_notices.h)
    # The write-ahead log and the file of the embedded store. `draw` derives the other sizes of the log.
    "log_moved": (LOG_MOVED, (64 * KIB, 512 * KIB, 4 * MIB)),
    "log_piece": (64 * KIB, (1 * KIB, 10_000)),
    "log_cut": (2 * MIB, (4 * KIB, 100_000)),
    "page_size": (2048, (512, 4096)),
    "append_runs": (32, (1, 3)),
    # Connections and results.
    "readers": (8, (2, 4)),
    "registrars": (4, (1, 2)),
    "rows_fetched": (500, (1, 7)),
    "statements_sent": (1016, (1, 5, 40)),
    # Registration.
    "batch": (1024, (3, 40)),
    "gathered": (128, (1, 5)),
    "queue": (16_384, (64, 1000)),
    "head_cache": (16_384, (1, 4)),  # powers of two, like key_cache
    "key_cache": (8192, (1, 2)),
    "key_life_us": (2 * SECOND, (1, 50 * MS)),
    "quarantine": (256, (1, 3)),
    "channels_before": (None, (3_300_000,)),  # high numbers of chains: at 78 % of the limit
    # Pages and batches of what is read or written as a whole.
    "events_listed": (2000, (1, 7, 60)),
    "accounts_reported": (100, (1, 3)),
    "audit_page": (4 * MIB, (100_000,)),  # more than a page of the default length
    "objects_listed": (500, (1, 3)),
    "page_list_window": (4096, (1, 2, 7, 100)),
    "checked": (256, (1, 3)),
    "key_uses_noted": (500, (1, 3)),
    "forgotten": (500, (1, 3)),
    "replayed": (500, (1, 3)),
    "filled": (1 << 18, (1, 3)),
    # Sealing and renewal.
    "segment_events": (16_384, (5, 20, 127, 300)),
    "chain_segments": (64, (1, 3)),
    "block_events": (1 << 20, (10, 500)),
    "block_segments": (1024, (5, 100)),
    "small_block_segments": (256, (1, 30)),
    "round_blocks": (4096, (4, 50)),
    "rounds_recorded": (64, (1, 3)),
    "renewal_leaves": (1024, (2, 20)),
    "renewal_blocks": (1024, (3, 20)),
    "requeued": (1024, (1, 3)),
    "sealed_of_notice": (100, (1, 3)),
    "sealed_notices": (50, (20,)),
    "lost_at_once": (1024, (1, 3)),
    "missing_us": (6 * HOUR, (1 * SECOND, 20 * SECOND)),
    "revocation_cache": (64, (1, 3)),
    "issuers_cached": (32, (1,)),
    # Certifications and content.
    "archive_rounds": (1024, (1, 3)),
    "archive_history": (1024, (1, 3)),
    "seals_at_once": (64, (1, 3)),
    "seals_whole": (256 * KIB, (1, 2000)),
    "part_entries": (None, (20, 500)),
    "part_bytes": (None, (12 * MIB, 50 * MIB)),  # more than the largest file
    "progress_us": (SECOND // 2, (1,)),
    "overdue_us": (60 * SECOND, (1 * SECOND,)),
    "spool": (64 * KIB, (1, 1000)),
    "stream_piece": (128 * KIB, (1000, 20_000)),
    "s3_single": (16 * MIB, (6 * MIB,)),
    "s3_part": (8 * MIB, (5 * MIB,)),  # the smallest that the protocol allows
    "s3_listed": (1000, (1, 3)),
    "s3_sessions": (32, (1, 2)),
    "content_us": (30 * SECOND, (1 * SECOND,)),
    # Webhooks.
    "deliveries": (512, (4, 40)),
    "deliveries_in_doubt": (128, (2, 3)),  # less than deliveries
    "deliveries_of_endpoint": (4, (1, 2)),
    "deliveries_unrecorded": (64, (1, 5)),
    "deliveries_loaded": (32, (1, 3)),
    "deliveries_recorded": (512, (1, 5)),
    # Other jobs.
    "work_accounts": (8192, (1, 7)),
    "lease_us": (12 * SECOND, (4 * SECOND,)),
    "key_uses_us": (60 * SECOND, (SECOND // 5, 5 * SECOND)),
    "request_log_us": (SECOND, (SECOND // 20, SECOND // 3)),
    "receipt_stuck_us": (30 * SECOND, (2 * SECOND,)),
    "log_poll_us": (SECOND, (SECOND // 20, SECOND // 3)),
    "housekeeping_us": (6 * HOUR, (SECOND // 2, 5 * SECOND)),
}
# For faults planted in the index: runs are written and merged continuously, within hundreds of events.
SMALLEST = {
    "refs_gathered": (20, 40),
    "refs_bucket_entries": (2, 4),
    "refs_group_buckets": (2, 3),
}


def complete(sizes):
    """Adds the sizes that follow from others, and leaves out those that the program has anyway (None)."""
    sizes = {name: value for name, value in sizes.items() if value is not None}
    moved = sizes["log_moved"]
    sizes |= {"log_left": moved // 32, "log_rest": moved // 8, "log_tried": moved // 8}
    sizes["deliveries_in_doubt"] = min(sizes["deliveries_in_doubt"], sizes["deliveries"] - 1)
    return sizes


def draw(seed, smallest=False):
    """Returns random {name: value}, a third of them usual. With `smallest`, runs of the index are written and
    merged continuously."""
    chosen = random.Random(f"sizes {seed}")
    sizes = {}
    for name, (usual, smaller) in TABLE.items():
        is_usual = chosen.random() < 1 / 3
        value = chosen.choice(smaller)
        sizes[name] = usual if is_usual else value
    if smallest:
        sizes |= {name: chosen.choice(values) for name, values in SMALLEST.items()}
    return complete(sizes)


def least():
    """Returns the smallest value of each."""
    return complete({name: smaller[0] for name, (_, smaller) in TABLE.items()})


def text_of(sizes):
    return ",".join(f"{name}={value}" for name, value in sizes.items())


def use(sizes):
    """Sets the values for processes started from now on; without any: the defaults."""
    if sizes:
        os.environ[NAME] = text_of(sizes)
    else:
        os.environ.pop(NAME, None)
    return sizes


def use_drawn(seed, smallest=False):
    """Draws, sets and prints the values."""
    sizes = use(draw(seed, smallest))
    print("sizes:", os.environ[NAME], flush=True)
    return sizes


if __name__ == "__main__":
    print(text_of(least() if sys.argv[1] == "least" else draw(int(sys.argv[1]))))
