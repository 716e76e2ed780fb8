#include "evidence/evidence_chain.h"

#include "seal/evidence_tree.h"
#include "store/certifications/certifications.h"

#define STEP_MEMORY_MAX ((size_t)8 << 20)

static int damaged(struct error *error, int64_t stamp, const char *what)
{
	return error_cause(error, ERR_CORRUPT, "archive timestamp %lld: %s", (long long)stamp, what);
}

/* ---- the path to an archive timestamp ---- */

/* Adds one level to the path: the stored hashes, and the index of the hash that the path has
 * reached. */
static int climb(struct slice bytes, size_t index, enum digest_algorithm algorithm,
                 struct arena *arena, struct evidence_path *path)
{
	size_t count = 0;
	struct digest *hashes = evidence_hashes_read(bytes, algorithm, arena, &count);
	struct digest here = evidence_path_root(path);
	if (!hashes || index >= count || !digest_equal(&hashes[index], &here))
		return ERR_INVALID_EVIDENCE;
	return evidence_tree_climb(hashes, count, index, path);
}

/* Completes a path that has its leaf. */
static int find_path(struct store *store, const struct archive_timestamp *stamp, int64_t place,
                     struct arena *arena, struct evidence_path *path, struct error *error)
{
	struct slice leaves;
	int64_t block = place / EVIDENCE_LEAVES_MAX;
	int result = store_read_leaves(store, stamp->stamp, block, arena, &leaves, error);
	if (!result)
		result =
			climb(leaves, (size_t)(place % EVIDENCE_LEAVES_MAX), stamp->algorithm, arena, path);
	if (!result)
		result = climb(stamp->blocks, (size_t)block, stamp->algorithm, arena, path);
	if (result == ERR_NOT_FOUND || result == ERR_INVALID_EVIDENCE)
		return damaged(error, stamp->stamp, "its tree does not contain what it covers");
	return result;
}

static int set_damaged(int result, int64_t stamp, const struct error *cause, struct error *error)
{
	return result == ERR_INVALID_EVIDENCE ? damaged(error, stamp, cause->cause) : result;
}

/* ---- renewals ---- */

static int append_renewal(struct store *store, struct evidence_record *record, int64_t number,
                          int64_t place, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct archive_timestamp stamp;
	struct evidence_path path = {0};
	struct error cause = {0};
	int result = store_get_archive_timestamp(store, number, &arena, &stamp, error);
	if (!result)
		result = evidence_record_next_leaf(record, NULL, &path.leaf);
	if (!result && path.leaf.algorithm != stamp.algorithm)
		return damaged(error, number,
		               "its digest algorithm differs from that of the renewed token");
	if (!result)
		result = find_path(store, &stamp, place, &arena, &path, error);
	return result ? result
	              : set_damaged(evidence_record_renew(record, NULL, &path, stamp.token, &cause),
	                            number, &cause, error);
}

int evidence_chain_follow(struct store *store, struct evidence_record *record,
                          enum token_source source, int64_t number, int64_t last,
                          struct renewable_token *ret_newest, struct error *error)
{
	int result = OK;
	*ret_newest = (struct renewable_token){0};
	for (;;) {
		int64_t next, place;
		struct renewable_token token;
		result = store_find_renewable_token(store, source, number, &token, &next, &place, error);
		if (result)
			return result == ERR_NOT_FOUND ? OK : result;
		*ret_newest = token;
		if (next == 0 || (last && source == TOKEN_STAMP && number == last))
			return OK;
		result = append_renewal(store, record, next, place, error);
		if (result)
			return result;
		source = TOKEN_STAMP;
		number = next;
	}
}

int evidence_chain_next(struct store *store, enum token_source source, int64_t number,
                        struct slice token, int64_t *ret_stamp, struct evidence_path *ret_path,
                        struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct renewable_token at_rest;
	struct archive_timestamp stamp;
	int64_t next = 0, place = 0;
	*ret_stamp = 0;
	int result = store_find_renewable_token(store, source, number, &at_rest, &next, &place, error);
	if (result || next == 0)
		return result == ERR_NOT_FOUND ? OK : result;
	result = store_get_archive_timestamp(store, next, &arena, &stamp, error);
	if (result)
		return result;
	*ret_path = (struct evidence_path){.leaf = digest_by(stamp.algorithm, token.data, token.size)};
	result = find_path(store, &stamp, place, &arena, ret_path, error);
	if (!result)
		*ret_stamp = next;
	return result;
}

/* Returns when the token is due for renewal by evidence.renew_before. */
static int64_t renew_at_us(const struct settings *settings, const struct renewable_token *token)
{
	int64_t before_us = (token->valid_until_us - token->stamped_at_us) / 2;
	if (before_us > settings->evidence_renew_before)
		before_us = settings->evidence_renew_before;
	return token->valid_until_us - before_us;
}

/* ---- certifications ---- */

/* Returns whether the renewed tokens had expired before the hash-tree renewal. */
static bool is_too_late(int64_t stamped_at_us, const struct renewable_token *before)
{
	return stamped_at_us > before->valid_until_us;
}

static int begin_chain(struct store *store, const struct evidence_chain_row *row,
                       struct certification_record *made, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct archive_timestamp stamp;
	struct evidence_path path = {0};
	struct error cause = {0};
	int result = store_get_archive_timestamp(store, row->stamp, &arena, &stamp, error);
	if (result)
		return result;
	if (made->record && is_too_late(stamp.stamped_at_us, &made->newest))
		return ERR_REFUSED;
	struct digest *group =
		evidence_hashes_read(row->hashes, row->algorithm, &arena, &path.group_count);
	if (!group || path.group_count < 2)
		return damaged(error, row->stamp, "the hashes that it covers cannot be read");
	result = evidence_group_leaf(group, path.group_count, &path.leaf);
	path.group = group;
	if (!result)
		result = find_path(store, &stamp, row->place, &arena, &path, error);
	if (!result)
		result = set_damaged(evidence_record_begin_chain(&made->record, &path, stamp.token, &cause),
		                     row->stamp, &cause, error);
	if (!result && row->chain == 1)
		made->exists_since_us = stamp.stamped_at_us;
	return result;
}

static int load(struct store *store, const struct evidence_chain_row *rows, size_t count,
                struct certification_record *made, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < count && rows[i].is_written && !result; i++) {
		bool has_next = i + 1 < count && rows[i + 1].is_written;
		result = begin_chain(store, &rows[i], made, error);
		if (result)
			break;
		made->number = rows[i].record;
		made->chain = rows[i].chain;
		result =
			evidence_chain_follow(store, made->record, TOKEN_STAMP, rows[i].stamp,
		                          has_next ? rows[i + 1].after_stamp : 0, &made->newest, error);
		made->last_stamp = made->newest.number;
	}
	return result == ERR_REFUSED && made->record ? OK : result;
}

int certification_record_load(struct store *store, int64_t account, int64_t certification,
                              struct certification_record *ret, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)64 << 20);
	struct certification_record made = {0};
	struct evidence_chain_row *rows;
	size_t count = 0;
	int result =
		store_list_evidence_chains(store, account, certification, &arena, &rows, &count, error);
	if (!result && (count == 0 || !rows[0].is_written))
		result = ERR_NOT_FOUND;
	if (!result)
		result = load(store, rows, count, &made, error);
	if (!result)
		*ret = made;
	else
		evidence_record_free(made.record);
	return result;
}

/* ---- records offered by the API ---- */

static struct evidence_offer offer_of(const struct service *service, int64_t certification,
                                      int64_t exists_since_us, const struct renewable_token *newest)
{
	bool ended = newest->valid_until_us < clock_now_us();
	return (struct evidence_offer){
		.certification = certification,
		.exists_since_us = exists_since_us,
		.renew_at_us = ended ? TIME_NONE : renew_at_us(service->settings, newest),
	};
}

int certification_evidence_record(struct service *service,
                                  const struct certification *certification, struct buf *out,
                                  struct evidence_offer *ret_offer, struct error *error)
{
	struct certification_record made;
	int result = certification_record_load(service->store, certification->account,
	                                       certification->certification, &made, error);
	if (result)
		return result;
	size_t before = out->size;
	result = evidence_record_write(made.record, out);
	evidence_record_free(made.record);
	if (result)
		return result;
	*ret_offer =
		offer_of(service, certification->certification, made.exists_since_us, &made.newest);
	ret_offer->has_digest = true;
	ret_offer->sha256 = sha256_of(out->data + before, out->size - before);
	return OK;
}

struct listing {
	const struct service *service;
	struct evidence_offers *offers;
	/* State of the last certification. */
	struct renewable_token newest;
	bool is_over;
};

static void list_chain(void *context, const struct evidence_chain_times *times)
{
	struct listing *listing = context;
	struct evidence_offers *offers = listing->offers;
	struct evidence_offer *last = offers->count ? &offers->items[offers->count - 1] : NULL;
	bool continues = last && last->certification == times->certification;
	if (!continues && offers->count == offers->room)
		return;
	listing->is_over =
		continues && (listing->is_over || is_too_late(times->stamped_at_us, &listing->newest));
	if (listing->is_over)
		return;
	listing->newest = times->newest;
	if (!continues)
		last = &offers->items[offers->count++];
	*last = offer_of(listing->service, times->certification,
	                 continues ? last->exists_since_us : times->stamped_at_us, &times->newest);
}

int certification_list_offers(struct service *service, int64_t account, int64_t chain,
                              int64_t first, int64_t last, struct evidence_offers *offers,
                              struct error *error)
{
	struct listing listing = {.service = service, .offers = offers};
	return store_list_chain_times(service->store, account, chain, first, last, list_chain, &listing,
	                              error);
}
