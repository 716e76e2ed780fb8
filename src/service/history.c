#include "service/history.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/events/segments.h"
#include "store/tlog/log_checkpoints.h"

#define STORE_ID_NAME "store_id" /* for store_get_secret, although not a secret */

/* Compares the store's last round with the known mark. */
static int read_store(struct store *store, struct history *history, struct error *error)
{
	struct sha256 marked_root;
	bool present = false;
	int result = store_read_round_roots(store, history->known.round, &history->found.round,
	                                    &history->found.root, &present, &marked_root, error);
	if (!result)
		history->forked = present && !sha256_equal(&marked_root, &history->known.root);
	return result;
}

static int look(struct store *store, struct signer *signer, struct history *history,
                struct error *error)
{
	struct sha256 id;
	int result = store_get_secret(store, STORE_ID_NAME, &id, error);
	if (result)
		return result;
	hex_encode(id.bytes, SIGNER_STORE_ID_SIZE / 2, history->store_id);
	result = signer_get_mark(signer, history->store_id, &history->known, error);
	return result ? result : read_store(store, history, error);
}

bool history_is_continuous(const struct history *history)
{
	return history->found.round >= history->known.round && !history->forked;
}

static int rolled_back(const struct history *history, struct error *error)
{
	char known[24], found[24];
	snprintf(known, sizeof known, "%" PRId64, history->known.round);
	snprintf(found, sizeof found, "%" PRId64, history->found.round);
	(void)error_cause(error, ERR_CORRUPT, "store %s: last round %s, marked round %s%s",
	                  history->store_id, found, known,
	                  history->forked ? ", which has another root" : "");
	return history->forked
	           ? error_set(error, ERR_CORRUPT, MSG_STORE_FORKED, known, NULL)
	           : error_set(error, ERR_CORRUPT, MSG_STORE_ROLLED_BACK, found, known, NULL);
}

int history_check(struct store *store, struct signer *signer, struct history *ret,
                  struct error *error)
{
	struct history history = {0};
	int result = look(store, signer, &history, error);
	if (result)
		return result;
	*ret = history;
	if (!history_is_continuous(&history))
		return rolled_back(&history, error);
	if (history.found.round == history.known.round)
		return OK;
	/* The last round may be visible without being on a standby. After a commit of our own it is. */
	result = store_confirm(store, error);
	return result ? result : signer_set_mark(signer, history.store_id, &history.found, error);
}

int history_inspect(struct store *store, const char *signer_directory, struct error *error)
{
	struct history history = {0};
	struct sha256 id;
	bool found = false;
	int result = store_find_secret(store, STORE_ID_NAME, &found, &id, error);
	if (result || !found)
		return result;
	hex_encode(id.bytes, SIGNER_STORE_ID_SIZE / 2, history.store_id);
	if (signer_read_mark(signer_directory, history.store_id, &history.known, NULL))
		return OK;
	result = read_store(store, &history, error);
	if (result)
		return result;
	return history_is_continuous(&history) ? OK : rolled_back(&history, error);
}

int history_accept(struct store *store, struct signer *signer, const char *node, const char *origin,
                   struct slice reason, struct history *ret, struct error *error)
{
	struct history history = {0};
	struct sha256 log_root;
	uint64_t log_size = 0;
	int result = look(store, signer, &history, error);
	if (result)
		return result;
	if (history_is_continuous(&history))
		return error_set(error, ERR_REFUSED, MSG_STORE_NOT_ROLLED_BACK, NULL);
	result = signer_get_checkpoint(signer, origin, &log_size, &log_root, error);
	if (result)
		return result;
	history.log_ended = log_size > 0;
	struct accepted_rollback record = {
		.accepted_at_us = clock_now_us(),
		.node = node,
		.round = history.found.round,
		.root = history.found.root,
		.known_round = history.known.round,
		.known_root = history.known.root,
		.reason = reason,
		.ended_log = history.log_ended ? origin : NULL,
	};
	result = store_record_rollback(store, &record, error);
	if (!result && !history.log_ended)
		result = store_get_log_end(store, origin, &history.log_ended, error);
	if (!result)
		result = signer_accept_mark(signer, history.store_id, &history.found, reason, error);
	if (!result)
		*ret = history;
	return result;
}
