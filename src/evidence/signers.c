#include "evidence/signers.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "store/evidence/public_keys.h"
#include "store/evidence/signer_records.h"

/* Time before the expiry of the present key at which the next one comes into force. */
#define NEXT_TAKEN_BEFORE_US US_PER_DAY
#define LIST_MEMORY_MAX ((size_t)64 << 20)

/* ---- this node's keys ---- */

static struct signer_candidate candidate_of(const struct signer_key *key, bool development)
{
	return (struct signer_candidate){
		.sha256 = key->certificate.sha256,
		.development = development,
		.certificates = key->certificates,
	};
}

static struct signer_candidate next_candidate(const struct service *service)
{
	return candidate_of(signer_get_key(service->signer, SIGNER_NEXT),
	                    signer_is_development(service->signer));
}

static bool is_valid(const struct signer_key *key, int64_t now_us)
{
	return key && now_us >= key->valid_from_us && now_us <= key->valid_until_us;
}

static int index_of(const struct service *service, const struct sha256 *sha256)
{
	for (int i = 0; i < SIGNER_KEYS; i++) {
		const struct signer_key *key = signer_get_key(service->signer, i);
		if (key && sha256_equal(&key->certificate.sha256, sha256))
			return i;
	}
	return SIGNER_NO_KEY;
}

static int use(struct service *service, int index, struct error *error)
{
	char hex[2 * SHA256_SIZE + 1] = "";
	if (index == signer_active_key(service->signer))
		return OK;
	int result = signer_activate_key(service->signer, index, error);
	if (result)
		return result;
	const struct signer_key *key = signer_get_key(service->signer, index);
	if (!key) {
		log_error("signer_not_in_force", "cause",
		          "none of this node's keys is the one in force in the store", "consequence",
		          "certifications wait");
		return OK;
	}
	hex_encode(key->certificate.sha256.bytes, SHA256_SIZE, hex);
	log_info("signer_activated", "sha256", hex, "subject", key->certificate.subject);
	service_wake(service, WAKE_ISSUER);
	return OK;
}

/* ---- following the store ---- */

static int follow(struct service *service, struct error *error)
{
	struct sha256 in_force;
	bool any = false;
	int result = store_get_signer(service->store, &in_force, &any, error);
	if (result)
		return result;
	return use(service, any ? index_of(service, &in_force) : SIGNER_NO_KEY, error);
}

static bool is_time_for(const struct signer_key *next, const struct signer_key *present,
                        int64_t now_us)
{
	return is_valid(next, now_us) && next->valid_until_us > present->valid_until_us &&
	       present->valid_until_us - now_us <= NEXT_TAKEN_BEFORE_US;
}

/* The first node that notices it does it for all nodes. */
static int take_next_in_time(struct service *service, struct error *error)
{
	const struct signer_key *present = signer_get_key(service->signer, SIGNER_PRESENT);
	const struct signer_key *next = signer_get_key(service->signer, SIGNER_NEXT);
	if (signer_active_key(service->signer) != SIGNER_PRESENT ||
	    !is_time_for(next, present, clock_now_us()))
		return OK;
	struct signer_candidate candidate = next_candidate(service);
	int result = store_replace_signer(service->store, &candidate, &present->certificate.sha256,
	                                  slice_of("the certificate's end was near"), error);
	return result ? result : follow(service, error);
}

/* Detects whether the key's token fails or works again. Waiting work resumes when it signs
 * again. */
static void watch_holder(struct service *service)
{
	struct error error = {0};
	int result =
		signer_is_key_failing(service->signer) ? signer_probe(service->signer, &error) : OK;
	bool fails = result != OK;
	if (atomic_exchange(&service->signing_fails, fails) == fails)
		return;
	if (fails) {
		log_error("signing_key_failed", "cause", error_reason(&error, result), "consequence",
		          "certifications wait");
	} else {
		log_info("signing_key_recovered");
		service_wake(service, WAKE_ISSUER);
	}
}

int signers_follow(struct service *service, struct error *error)
{
	if (!service->signer)
		return OK;
	watch_holder(service);
	int result = follow(service, error);
	return result ? result : take_next_in_time(service, error);
}

/* Sorts the keys: valid ones first, which is relevant if none is in force. Returns their number. */
static size_t order_keys(const struct signer_key *const keys[SIGNER_KEYS], bool development,
                         int64_t now_us, struct signer_candidate candidates[SIGNER_KEYS],
                         int indexes[SIGNER_KEYS])
{
	size_t count = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < SIGNER_KEYS; i++) {
			if (!keys[i] || is_valid(keys[i], now_us) != (pass == 0))
				continue;
			indexes[count] = i;
			candidates[count++] = candidate_of(keys[i], development);
		}
	return count;
}

int signers_check_keys(struct store *store, const struct signer_key *const keys[SIGNER_KEYS],
                       bool development, struct error *error)
{
	struct signer_candidate candidates[SIGNER_KEYS];
	int indexes[SIGNER_KEYS];
	size_t chosen = 0;
	int64_t now_us = clock_now_us();
	struct error why = {0};
	size_t count = order_keys(keys, development, now_us, candidates, indexes);
	int result = count ? store_check_signers(store, candidates, count, &chosen, error) : OK;
	if (result || !count)
		return result;
	const struct signer_key *key = keys[indexes[chosen]];
	if (indexes[chosen] == SIGNER_PRESENT && is_time_for(keys[SIGNER_NEXT], key, now_us))
		key = keys[SIGNER_NEXT];
	return signer_key_check_time(key, now_us, &why)
	           ? error_set(error, ERR_REFUSED, MSG_SIGNER_UNUSABLE, why.cause, NULL)
	           : OK;
}

int signers_join(struct service *service, struct error *error)
{
	struct signer_candidate candidates[SIGNER_KEYS];
	const struct signer_key *keys[SIGNER_KEYS];
	int indexes[SIGNER_KEYS];
	size_t chosen = 0;
	int64_t now_us = clock_now_us();
	struct error why = {0};
	for (int i = 0; i < SIGNER_KEYS; i++)
		keys[i] = signer_get_key(service->signer, i);
	size_t count =
		order_keys(keys, signer_is_development(service->signer), now_us, candidates, indexes);
	struct sha256 former;
	bool any = false;
	int result = store_get_signer(service->store, &former, &any, error);
	if (!result)
		result = store_join_signers(service->store, candidates, count, &chosen, error);
	if (!result && any && !sha256_equal(&former, &candidates[chosen].sha256))
		log_warning(
			"development_key_replaced", "meaning",
			"the store's development key is missing on this node: this node's own key replaced it");
	if (!result)
		result = use(service, indexes[chosen], error);
	if (!result)
		result = take_next_in_time(service, error);
	if (!result && signer_check_key(service->signer, now_us, &why))
		result = error_set(error, ERR_REFUSED, MSG_SIGNER_UNUSABLE, why.cause, NULL);
	return result;
}

int signers_rotate(struct service *service, struct store *store, struct slice reason,
                   struct error *error)
{
	const struct signer_key *next = signer_get_key(service->signer, SIGNER_NEXT);
	int64_t now_us = clock_now_us();
	char time[TIME_TEXT_SIZE];
	if (!next || signer_active_key(service->signer) == SIGNER_NEXT)
		return error_set(error, ERR_REFUSED, MSG_SIGNER_NO_NEXT, NULL);
	if (!is_valid(next, now_us)) {
		bool early = now_us < next->valid_from_us;
		char why[64];
		time_format(early ? next->valid_from_us : next->valid_until_us, time);
		snprintf(why, sizeof why, "%s %s", early ? "it begins on" : "it ended on", time);
		return error_set(error, ERR_REFUSED, MSG_SIGNER_NOT_YET, why, NULL);
	}
	struct signer_candidate candidate = next_candidate(service);
	int result = store_replace_signer(store, &candidate, NULL, reason, error);
	return result ? result : follow(service, error);
}

int signers_check(const struct service *service, struct error *error)
{
	return service->signer ? signer_check_key(service->signer, clock_now_us(), error) : OK;
}

/* ---- the history ---- */

static int write_record(const struct signer_record *record, struct json_writer *out,
                        struct error *error)
{
	struct certificate_facts facts;
	int result = trust_describe(slice_of(record->certificates), &facts, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "certificates", record->certificates);
	json_boolean(out, "development", record->development);
	json_text(out, "issuer", facts.issuer);
	json_time(out, "not_after", facts.not_after_us);
	json_time(out, "not_before", facts.not_before_us);
	json_text(out, "reason", record->reason);
	json_hex(out, "sha256", record->sha256.bytes, SHA256_SIZE);
	json_text(out, "subject", facts.subject);
	json_time(out, "used_from", record->used_from_us);
	json_time(out, "used_until", record->used_until_us);
	json_end_object(out);
	return OK;
}

static int write_keys(struct store *store, enum public_key_kind kind, const char *name,
                      struct arena *arena, struct json_writer *out, struct error *error)
{
	struct public_key *items;
	size_t count;
	int result = store_list_public_keys(store, kind, arena, &items, &count, error);
	json_begin_array(out, name);
	for (size_t i = 0; !result && i < count; i++) {
		json_begin_object(out, NULL);
		json_text(out, "key", items[i].key);
		json_time(out, "used_from", items[i].used_from_us);
		json_time(out, "used_until", items[i].used_until_us);
		json_end_object(out);
	}
	json_end_array(out);
	return result;
}

int signers_write_json(struct store *store, struct arena *arena, struct json_writer *out,
                       struct error *error)
{
	struct signer_record *items;
	size_t count;
	int result = store_list_signers(store, arena, &items, &count, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_begin_array(out, "data");
	for (size_t i = 0; i < count && !result; i++)
		result = write_record(&items[i], out, error);
	json_end_array(out);
	if (!result)
		result = write_keys(store, PUBLIC_KEY_LOG, "log_keys", arena, out, error);
	if (!result)
		result = write_keys(store, PUBLIC_KEY_RECEIPT, "receipt_keys", arena, out, error);
	json_end_object(out);
	return result;
}

int signers_add_roots(struct store *store, struct buf *out, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct signer_record *items;
	size_t count;
	arena_init(&arena, LIST_MEMORY_MAX);
	int result = store_list_signers(store, &arena, &items, &count, error);
	for (size_t i = 0; !result && i < count; i++)
		result = trust_add_roots(slice_of(items[i].certificates), out, error);
	return result;
}
