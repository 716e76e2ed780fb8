#include "monitor/log_scan.h"

#include <assert.h>
#include <inttypes.h>

#define ENTRY_MEMORY_MAX ((size_t)64 << 10)

struct scanning {
	const struct log_scan *scan;
	struct frontier frontier;
	struct arena arena; /* of one entry */
	struct sha256 leaves[TILE_WIDTH];
};

static int take_entry(struct scanning *scanning, uint64_t index, struct slice text,
                      struct error *error)
{
	const struct log_scan *scan = scanning->scan;
	struct tlog_entry entry;
	struct error detail = {0};
	arena_reset(&scanning->arena);
	int result = tlog_entry_read(&scanning->arena, text, &entry, &detail);
	if (result == ERR_INVALID_EVIDENCE)
		return error_cause(error, result, "entry %" PRIu64 " is not valid: %.*s", index,
		                   ERROR_CAUSE_MAX / 2, detail.cause);
	return result ? result : scan->take(scan->context, index, &entry, text, error);
}

static int take_bundle(struct scanning *scanning, uint64_t bundle, struct error *error)
{
	const struct log_scan *scan = scanning->scan;
	struct slice entries[TILE_WIDTH];
	unsigned width = tile_width(TILE_ENTRIES, bundle, scan->checkpoint->size);
	int result = log_source_read_bundle(scan->source, bundle, width, entries, error);
	for (unsigned i = 0; !result && i < width; i++) {
		uint64_t index = bundle * TILE_WIDTH + i;
		scanning->leaves[i] = merkle_leaf(entries[i]);
		if (index < scanning->frontier.size)
			continue; /* the tree at the beginning has it */
		frontier_add(&scanning->frontier, &scanning->leaves[i]);
		result = take_entry(scanning, index, entries[i], error);
	}
	if (!result && scan->take_leaves)
		result = scan->take_leaves(scan->context, bundle, scanning->leaves, width, error);
	return result;
}

int log_scan_run(const struct log_scan *scan, const struct frontier *begin, struct error *error)
{
	struct scanning scanning = {.scan = scan, .frontier = *begin};
	const uint64_t size = scan->checkpoint->size;
	assert(begin->size <= size);
	arena_init(&scanning.arena, ENTRY_MEMORY_MAX);
	int result = OK;
	while (!result && scanning.frontier.size < size) {
		result = take_bundle(&scanning, scanning.frontier.size / TILE_WIDTH, error);
		if (!result && scan->progress)
			result =
				scan->progress(scan->progress_context, "entries", scanning.frontier.size, size);
	}
	arena_free(&scanning.arena);
	if (result)
		return result;
	const struct sha256 root = frontier_root(&scanning.frontier);
	return sha256_equal(&root, &scan->checkpoint->root)
	           ? OK
	           : error_cause(error, ERR_INVALID_EVIDENCE,
	                         "the entries of the log do not lead to the root of its checkpoint of "
	                         "%" PRIu64 " entries",
	                         size);
}
