/* Obtains one token over everything that is staged. */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "evidence/renewal_leaf.h"
#include "evidence/timestamp_roots.h"
#include "seal/authority.h"
#include "seal/evidence_tree.h"
#include "seal/level.h"
#include "seal/validation_set.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)

static int read_root(struct store *store, const struct staged_stamp *staged, int64_t block,
                     struct digest *ret_root, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct slice bytes;
	size_t count = 0;
	int result = store_read_leaves(store, staged->stamp, block, &arena, &bytes, error);
	struct digest *leaves =
		!result ? evidence_hashes_read(bytes, staged->algorithm, &arena, &count) : NULL;
	if (result == ERR_NOT_FOUND || (!result && !leaves))
		return error_cause(error, ERR_CORRUPT, "archive timestamp %lld: block %lld is damaged",
		                   (long long)staged->stamp, (long long)block);
	return result ? result : evidence_tree_root(leaves, count, ret_root);
}

/* Adds revocation data if the authority publishes it; the token is valid without it, too. */
static int add_revocations(const struct renewal *renewal, const struct authority_result *stamped,
                           struct slice token, struct buf *out, struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct error local = {0};
	char cause[LEVEL_CAUSE_SIZE] = "";
	bool suffices = false;
	int result = ERR_NOT_FOUND;
	if (renewal->service->revocation)
		result =
			level_collect_authority(renewal->service->revocation, buf_slice(&stamped->path),
		                            stamped->facts.gen_time_us, &set, &suffices, cause, &local);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result == ERR_INVALID_EVIDENCE) /* revoked */
		return error_cause(error, result, "%s: %s", stamped->name, local.cause);
	if (!result)
		result = timestamp_token_add_revocations(token, &set, out, &local);
	if (result) {
		buf_clear(out);
		buf_add_slice(out, token);
	}
	if (result || !suffices)
		log_info("archive_timestamp_without_revocation_data", "authority", stamped->name, "cause",
		         result ? error_reason(&local, result) : cause);
	result = buf_check(out);
	return result ? error_cause(error, result, "an archive timestamp's token") : OK;
}

/* Stores the validation data inside the token before a later timestamp covers it. */
static int complete_token(const struct renewal *renewal, const struct authority_result *stamped,
                          struct buf *out, struct error *error)
{
	BUF_AUTO struct buf with_path;
	buf_init(&with_path, TIMESTAMP_RESPONSE_MAX + TIMESTAMP_PATH_MAX);
	int result = timestamp_token_add_certificates(buf_slice(&stamped->token),
	                                              buf_slice(&stamped->path), &with_path, error);
	return result ? result : add_revocations(renewal, stamped, buf_slice(&with_path), out, error);
}

static int write_stamp(const struct renewal *renewal, const struct staged_stamp *staged,
                       const struct authority_result *stamped, struct slice blocks,
                       struct error *error)
{
	assert(blocks.size == (size_t)staged->blocks * digest_size(staged->algorithm));
	BUF_AUTO struct buf token;
	buf_init(&token, 2 * (TIMESTAMP_RESPONSE_MAX + TIMESTAMP_PATH_MAX));
	struct archive_timestamp row = {
		.stamp = staged->stamp,
		.algorithm = staged->algorithm,
		.authority = stamped->facts.authority.subject,
		.kind = authority_kind_text(stamped->kind),
		.stamped_at_us = stamped->facts.gen_time_us,
		.obtained_at_us = clock_now_us(),
		.request = buf_slice(&stamped->request),
		.blocks = blocks,
	};
	int result = complete_token(renewal, stamped, &token, error);
	row.token = buf_slice(&token);
	if (!result)
		result = timestamp_valid_until(row.token, slice_make(NULL, 0), &row.stamped_at_us,
		                               &row.valid_until_us, error);
	if (!result)
		result = timestamp_roots_record(renewal->service, buf_slice(&stamped->path), error);
	return result ? result
	              : store_write_archive_timestamp(renewal->service->store, &row, staged->blocks,
	                                              error);
}

static void log_stamp(const struct renewal *renewal, const struct staged_stamp *staged,
                      const struct authority_result *stamped)
{
	char number[24], blocks[24];
	renewal_text(staged->stamp, number);
	renewal_text(staged->blocks, blocks);
	atomic_fetch_add(&renewal->service->counters.archive_timestamps, 1);
	log_info("archive_timestamp", "number", number, "blocks", blocks, "digest",
	         digest_algorithm_text(staged->algorithm), "authority", stamped->name);
}

/* Rejects an unusable token. */
static void reject(const struct renewal *renewal, const struct authority_result *stamped,
                   struct error *error)
{
	struct service *service = renewal->service;
	log_error("archive_timestamp_rejected", "authority", stamped->name, "cause", error->cause);
	atomic_fetch_add(&service->counters.evidence_failures, 1);
	authorities_reject(service->authorities, stamped, error->cause);
	*error = (struct error){0};
}

/* *ret_rejected: the token is unusable; another authority may issue a better one. */
static int obtain_stamp(const struct renewal *renewal, const struct staged_stamp *staged,
                        const struct digest *root, struct slice blocks, bool *ret_rejected,
                        struct error *error)
{
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	int result =
		authorities_timestamp_over(renewal->service->authorities, root, &stamped, NULL, error);
	*ret_rejected = false;
	if (result)
		return result;
	result = write_stamp(renewal, staged, &stamped, blocks, error);
	*ret_rejected = result == ERR_INVALID_EVIDENCE;
	if (*ret_rejected)
		reject(renewal, &stamped, error);
	else if (!result)
		log_stamp(renewal, staged, &stamped);
	return result;
}

static int stamp_blocks(const struct renewal *renewal, const struct staged_stamp *staged,
                        struct digest *roots, struct error *error)
{
	assert(staged->blocks >= 1 && staged->blocks <= RENEWAL_BLOCKS_MAX && !staged->is_damaged);
	bool rejected;
	int attempts = 0;
	BUF_AUTO struct buf blocks;
	struct digest root;
	buf_init(&blocks, (size_t)RENEWAL_BLOCKS_MAX * DIGEST_SIZE_MAX);
	evidence_hashes_write(roots, (size_t)staged->blocks, &blocks);
	int result = buf_check(&blocks);
	if (!result)
		result = evidence_tree_root(roots, (size_t)staged->blocks, &root);
	if (result)
		return result;
	do {
		if (renewal_stops(renewal))
			return ERR_REFUSED;
		result = obtain_stamp(renewal, staged, &root, buf_slice(&blocks), &rejected, error);
	} while (rejected && ++attempts <= AUTHORITIES_MAX);
	return result;
}

/* *ret_sound: number of consecutive blocks, from the first, that are undamaged. */
static int read_roots(struct store *store, const struct staged_stamp *staged, struct digest *roots,
                      int64_t *ret_sound, struct error *error)
{
	int result = OK;
	int64_t sound = 0;
	while (sound < staged->blocks && sound < RENEWAL_BLOCKS_MAX && !staged->is_damaged && !result) {
		result = read_root(store, staged, sound, &roots[sound], error);
		sound += !result;
	}
	*ret_sound = sound;
	return result == ERR_CORRUPT ? OK : result;
}

int renewal_unstage(const struct renewal *renewal, const struct staged_stamp *staged, int64_t from,
                    struct error *error)
{
	struct store *store = renewal->service->store;
	int64_t block = 0;
	int result = OK;
	while (!result && block >= 0 && !renewal_stops(renewal)) {
		result =
			store_unstage_leaves(store, staged->stamp, from, store_now_us(store), &block, error);
		if (result || block < 0)
			break;
		char stamp[24], number[24];
		renewal_text(staged->stamp, stamp);
		renewal_text(block, number);
		log_warning("evidence_block_unstaged", "archive_timestamp", stamp, "block", number);
	}
	return !result && renewal_stops(renewal) ? ERR_REFUSED : result;
}

int renewal_close(const struct renewal *renewal, struct error *error)
{
	struct staged_stamp staged;
	struct store *store = renewal->service->store;
	struct digest *roots = calloc(RENEWAL_BLOCKS_MAX, sizeof *roots);
	int64_t sound = 0;
	int result = roots ? store_get_staged_stamp(store, &staged, error) : ERR_NO_MEMORY;
	if (!result)
		result = read_roots(store, &staged, roots, &sound, error);
	/* A damaged block would block the timestamping of everything else permanently. */
	if (!result)
		result = renewal_unstage(renewal, &staged, sound, error);
	staged.blocks = sound;
	if (!result && sound > 0)
		result = stamp_blocks(renewal, &staged, roots, error);
	free(roots);
	return result;
}
