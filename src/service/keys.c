#include "service/keys.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/tuned.h"
#include "service/key_uses.h"
#include "store/accounts/accounts.h"

#define FAILURE_LIFE_US US_PER_SECOND /* lifetime of a failed lookup */
#define IDENTITY_MEMORY_MAX ((size_t)1 << 20)
#define CACHE_SETS 8192 /* a power of two */
#define CACHE_WAYS 4    /* keys per set; a new one replaces the oldest */

static const char BASE62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
#define RANDOM_DIGITS 30
#define CHECK_DIGITS 6

/* ---- the text of a key ---- */

static void check_digits(struct slice before, char digits[CHECK_DIGITS])
{
	uint32_t crc = (uint32_t)crc32(0, (const Bytef *)before.data, (uInt)before.size);
	for (size_t i = CHECK_DIGITS; i > 0; i--, crc /= 62)
		digits[i - 1] = BASE62[crc % 62];
}

void key_generate(const char *prefix, enum mode mode, char text[KEY_TEXT_MAX])
{
	size_t size = (size_t)snprintf(text, KEY_TEXT_MAX - RANDOM_DIGITS - CHECK_DIGITS, "%s_%s_",
	                               prefix, mode_text(mode));
	assert(size < KEY_TEXT_MAX - RANDOM_DIGITS - CHECK_DIGITS);
	for (size_t made = 0; made < RANDOM_DIGITS;) {
		uint8_t byte;
		random_bytes(&byte, 1);
		if (byte < 248) { /* the largest multiple of 62 */
			text[size++] = BASE62[byte % 62];
			made++;
		}
	}
	check_digits(slice_make(text, size), text + size);
	text[size + CHECK_DIGITS] = '\0';
	assert(key_well_formed(prefix, slice_of(text))); /* else its first use would be refused */
}

bool key_well_formed(const char *prefix, struct slice key)
{
	char expected[KEY_TEXT_MAX];
	size_t body = RANDOM_DIGITS + CHECK_DIGITS;
	if (key.size >= KEY_TEXT_MAX || key.size <= body)
		return false;
	int size = snprintf(expected, sizeof expected, "%s_live_", prefix);
	bool live = key.size == (size_t)size + body && memcmp(key.data, expected, (size_t)size) == 0;
	snprintf(expected, sizeof expected, "%s_test_", prefix);
	bool test = key.size == (size_t)size + body && memcmp(key.data, expected, (size_t)size) == 0;
	if (!live && !test)
		return false;
	for (size_t i = key.size - body; i < key.size; i++)
		if (!memchr(BASE62, key.data[i], 62))
			return false;
	char digits[CHECK_DIGITS];
	check_digits(slice_make(key.data, key.size - CHECK_DIGITS), digits);
	return memcmp(digits, key.data + key.size - CHECK_DIGITS, CHECK_DIGITS) == 0;
}

/* ---- the cache ---- */

struct cache_entry {
	struct sha256 key_hash;
	int64_t read_at_us; /* monotonic; 0: empty */
	int result;         /* OK, ERR_NOT_FOUND or the error of the lookup */
	bool familiar;      /* it was valid in its last successful lookup */
	struct key_identity identity;
};

struct key_cache {
	pthread_mutex_t mutex;
	struct cache_entry *sets[CACHE_SETS][CACHE_WAYS];
	uint64_t generation; /* incremented when the cache is cleared */
	uint32_t mask;       /* number of sets used, minus 1 */
	int64_t life_us;     /* KEY_LIFE_US, less in tests */
};

struct key_cache *key_cache_make(void)
{
	struct key_cache *cache = calloc(1, sizeof *cache);
	if (!cache)
		return NULL;
	const int64_t used = tuned_up_to("key_cache", CACHE_SETS);
	assert((used & (used - 1)) == 0);
	cache->mask = (uint32_t)used - 1;
	cache->life_us = tuned_up_to("key_life_us", KEY_LIFE_US);
	pthread_mutex_init(&cache->mutex, NULL);
	return cache;
}

void key_cache_free(struct key_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < CACHE_SETS * CACHE_WAYS; i++)
		free(cache->sets[i / CACHE_WAYS][i % CACHE_WAYS]);
	pthread_mutex_destroy(&cache->mutex);
	free(cache);
}

void service_clear_key_cache(struct service *service)
{
	struct key_cache *cache = service->keys;
	pthread_mutex_lock(&cache->mutex);
	cache->generation++;
	for (size_t i = 0; i < CACHE_SETS * CACHE_WAYS; i++) {
		struct cache_entry *entry = cache->sets[i / CACHE_WAYS][i % CACHE_WAYS];
		if (entry)
			entry->read_at_us = 0;
	}
	pthread_mutex_unlock(&cache->mutex);
}

/* Returns the key's slot, otherwise a slot to replace: an empty one, or that of the oldest
 * entry. */
static struct cache_entry **place_of(struct key_cache *cache, const struct sha256 *key_hash)
{
	uint32_t number;
	memcpy(&number, key_hash->bytes, sizeof number);
	struct cache_entry **set = cache->sets[number & cache->mask];
	struct cache_entry **place = set;
	for (size_t i = 0; i < CACHE_WAYS; i++) {
		if (set[i] && sha256_equal(&set[i]->key_hash, key_hash))
			return &set[i];
		if (*place && (!set[i] || set[i]->read_at_us < (*place)->read_at_us))
			place = &set[i];
	}
	return place;
}

/* Copies the entry of a key, regardless of its age; false: there is none. */
static bool cache_find(struct key_cache *cache, const struct sha256 *key_hash,
                       struct cache_entry *ret, uint64_t *ret_generation)
{
	pthread_mutex_lock(&cache->mutex);
	*ret_generation = cache->generation;
	const struct cache_entry *entry = *place_of(cache, key_hash);
	bool found = entry && sha256_equal(&entry->key_hash, key_hash);
	if (found)
		*ret = *entry;
	pthread_mutex_unlock(&cache->mutex);
	return found;
}

/* Results that were read before the cache was cleared are stored as expired. */
static void cache_keep(struct key_cache *cache, const struct cache_entry *fresh,
                       uint64_t generation)
{
	assert(fresh->read_at_us > 0); /* 0 is an empty place */
	assert(fresh->result <= 0);
	pthread_mutex_lock(&cache->mutex);
	struct cache_entry **place = place_of(cache, &fresh->key_hash);
	if (!*place)
		*place = malloc(sizeof **place);
	if (*place) {
		**place = *fresh;
		if (generation != cache->generation)
			(*place)->read_at_us = 0;
	}
	pthread_mutex_unlock(&cache->mutex);
}

static bool has_failed(const struct cache_entry *entry)
{
	return entry->result && entry->result != ERR_NOT_FOUND;
}

static bool is_fresh(const struct key_cache *cache, const struct cache_entry *entry, int64_t now_us)
{
	int64_t life_us = has_failed(entry) ? FAILURE_LIFE_US : cache->life_us;
	return entry->read_at_us && now_us - entry->read_at_us < life_us;
}

/* Checked at each request, by this node's clock, so that cached keys also expire on time. */
static bool has_expired(const struct key_identity *key)
{
	return key->expires_at_us && clock_now_us() >= key->expires_at_us;
}

static int refuse_expired(const struct key_identity *key, struct error *error)
{
	char time[TIME_TEXT_SIZE];
	time_format(key->expires_at_us, time);
	return error_set(error, ERR_INVALID_KEY, MSG_HTTP_KEY_EXPIRED, time, NULL);
}

static int judge(const struct cache_entry *entry, struct key_identity *ret, struct error *error)
{
	if (entry->result == ERR_NOT_FOUND)
		return error_set(error, ERR_INVALID_KEY, MSG_NONE, NULL);
	if (entry->result)
		return error_cause(error, entry->result, "a recent lookup of the key failed");
	*ret = entry->identity;
	if (entry->identity.revoked)
		return error_set(error, ERR_REVOKED_KEY, MSG_NONE, NULL);
	if (has_expired(&entry->identity))
		return refuse_expired(&entry->identity, error);
	if (entry->identity.account_disabled)
		return error_set(error, ERR_ACCOUNT_DISABLED, MSG_NONE, NULL);
	return OK;
}

bool service_find_cached_key(struct service *service, struct slice key,
                             struct key_lookup_query *ret_question, int *ret_result,
                             struct key_identity *ret, struct error *error)
{
	struct cache_entry entry = {0};
	uint64_t generation;
	if (!key_well_formed(service->settings->service_prefix, key)) {
		*ret_result = error_set(error, ERR_INVALID_KEY, MSG_NONE, NULL);
		return true;
	}
	struct sha256 key_hash = sha256_of(key.data, key.size);
	bool found = cache_find(service->keys, &key_hash, &entry, &generation);
	*ret_question = (struct key_lookup_query){key_hash, entry.familiar, generation};
	if (!found || !is_fresh(service->keys, &entry, clock_monotonic_us()))
		return false;
	*ret_result = judge(&entry, ret, error);
	return true;
}

int service_find_key(struct service *service, const struct sha256 *key_hash,
                     struct key_identity *ret, struct error *error)
{
	struct cache_entry entry = {0};
	uint64_t generation;
	(void)cache_find(service->keys, key_hash, &entry, &generation);
	entry.key_hash = *key_hash;
	entry.read_at_us = clock_monotonic_us();
	entry.result = store_find_key(service->store, key_hash, &entry.identity, error);
	bool failed = has_failed(&entry);
	if (failed)
		entry.read_at_us = clock_monotonic_us();
	else
		entry.familiar = !entry.result;
	cache_keep(service->keys, &entry, generation);
	if (failed)
		return entry.result;
	int result = judge(&entry, ret, error);
	/* A key in use is looked up repeatedly, so its last use is known with a precision of
	 * KEY_LIFE_US. */
	if (!result)
		key_uses_note(service->key_uses, &(struct key_use){ret->account, ret->key, clock_now_us()});
	return result;
}

int service_channel_identity(struct service *service, struct slice channel_id, enum mode mode,
                             struct key_identity *ret, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, IDENTITY_MEMORY_MAX);
	struct channel_record channel;
	struct account_record account;
	int result = store_find_channel(service->store, channel_id, &arena, &channel, error);
	if (!result)
		result = store_find_account(service->store, slice_of(channel.account_id),
		                            store_now_us(service->store), &arena, &account, error);
	if (result)
		return result;
	*ret = (struct key_identity){
		.account = channel.account,
		.channel = channel.channel,
		.chain = channel.channel * 2 + (mode == MODE_TEST),
		.mode = mode,
		.modality = channel.modality,
		.account_suspended = account.suspended,
		.channel_suspended = channel.suspended,
		.account_disabled = account.disabled,
		.rate = account.rate_live,
		.account_rate = account.bounds.rate,
	};
	memcpy(ret->account_id, channel.account_id, ID_SIZE);
	memcpy(ret->channel_id, channel.channel_id, ID_SIZE);
	return OK;
}

int service_check_writes(const struct key_identity *key, struct error *error)
{
	if (key->account_disabled)
		return error_set(error, ERR_ACCOUNT_DISABLED, MSG_NONE, NULL);
	if (key->account_suspended || key->channel_suspended)
		return error_set(error, ERR_SUSPENDED, MSG_NONE, NULL);
	return OK;
}

int service_write_key_uses(struct service *service, struct error *error)
{
	size_t count;
	struct key_use *uses = key_uses_take(service->key_uses, &count);
	int result = count ? store_note_key_uses(service->store, uses, count, error) : OK;
	for (size_t i = 0; result && i < count; i++)
		key_uses_note(service->key_uses, &uses[i]);
	free(uses);
	return result;
}
