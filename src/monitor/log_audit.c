#include "monitor/log_audit.h"

#include <stdlib.h>

#include "monitor/span_table.h"

/* Tiles as the entries make them, which are compared with those of the log. */
struct made_tile {
	uint64_t index;
	unsigned width;
	struct sha256 hashes[TILE_WIDTH];
};

struct audit {
	struct log_source *source;
	struct audit_result *result;
	struct span_table spans;
	struct made_tile tiles[TILE_LEVELS]; /* the last one of each level */
	struct tile_store store;             /* of these */
	uint64_t size;                       /* leaves in the tiles */
};

/* ---- tiles ---- */

static int compare_tile(struct audit *audit, int level, struct error *error)
{
	const struct made_tile *made = &audit->tiles[level];
	const struct tile_id id = {level, made->index, made->width};
	struct sha256 found[TILE_WIDTH];
	char path[TILE_PATH_SIZE];
	int result = log_source_read_tile(audit->source, &id, found, error);
	if (result)
		return result;
	audit->result->tiles++;
	for (unsigned i = 0; i < made->width; i++) {
		if (sha256_equal(&found[i], &made->hashes[i]))
			continue;
		tile_path(&id, path);
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "hash %u of %s is not that which follows from the entries of the log", i,
		                   path);
	}
	return OK;
}

static int read_made(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                     struct error *error)
{
	const struct audit *audit = context;
	(void)error;
	memcpy(ret_hashes, audit->tiles[id->level].hashes, id->width * sizeof *ret_hashes);
	return OK;
}

/* Full tiles are final. The last partial ones are compared at the end. */
static int write_made(void *context, const struct tile_id *id, const struct sha256 *hashes,
                      struct error *error)
{
	struct audit *audit = context;
	struct made_tile *made = &audit->tiles[id->level];
	made->index = id->index;
	made->width = id->width;
	memcpy(made->hashes, hashes, id->width * sizeof *hashes);
	return id->width == TILE_WIDTH ? compare_tile(audit, id->level, error) : OK;
}

static int take_leaves(void *context, uint64_t bundle, const struct sha256 *leaves, unsigned count,
                       struct error *error)
{
	struct audit *audit = context;
	(void)bundle;
	int result = tiles_append(&audit->store, audit->size, leaves, count, error);
	audit->size += count;
	return result;
}

static int compare_last_tiles(struct audit *audit, struct error *error)
{
	int result = OK;
	for (int level = 0; level < TILE_LEVELS && !result; level++)
		if (audit->tiles[level].width % TILE_WIDTH > 0)
			result = compare_tile(audit, level, error);
	return result;
}

/* ---- entries ---- */

static int take_entry(void *context, uint64_t index, const struct tlog_entry *entry,
                      struct slice text, struct error *error)
{
	struct audit *audit = context;
	struct audit_result *found = audit->result;
	struct chain_span *span;
	(void)text;
	int result = span_table_find(&audit->spans, &entry->tag, &span, error);
	if (result)
		return result;
	const struct chain_span before = *span;
	enum span_verdict verdict = chain_span_add(span, entry);
	found->begun_later += before.entries == 0 && entry->first_sequence > 1;
	if (verdict == SPAN_FOLLOWS)
		return OK;
	if (found->finding_count < AUDIT_FINDINGS_MAX)
		found->findings[found->finding_count] = (struct audit_finding){
			.is_overlap = verdict == SPAN_OVERLAPS,
			.index = index,
			.tag = entry->tag,
			.first_sequence = entry->first_sequence,
			.last_sequence = entry->last_sequence,
			.covered_from = before.first,
			.covered_to = before.last,
		};
	found->finding_count++;
	return OK;
}

int log_audit(struct log_source *source, const struct audit_options *options, struct arena *arena,
              struct audit_result *ret, struct error *error)
{
	*ret = (struct audit_result){0};
	struct audit *audit = calloc(1, sizeof *audit);
	if (!audit)
		return ERR_NO_MEMORY;
	audit->source = source;
	audit->result = ret;
	audit->store = (struct tile_store){read_made, write_made, audit};
	const struct frontier empty = {0};
	const struct log_scan scan = {
		.source = source,
		.checkpoint = &ret->head.checkpoint,
		.take = take_entry,
		.take_leaves = take_leaves,
		.context = audit,
		.progress = options->progress,
		.progress_context = options->progress_context,
	};
	int result = log_head_read(arena, source, options->policy, &ret->head, error);
	if (!result)
		result = log_scan_run(&scan, &empty, error);
	if (!result)
		result = compare_last_tiles(audit, error);
	ret->chains = audit->spans.count;
	span_table_free(&audit->spans);
	free(audit);
	return result;
}
