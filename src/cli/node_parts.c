/* Creates the components of a node from the settings. */
#include "cli/node_parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "evidence/signers.h"
#include "service/history.h"

#define LIST_MEMORY_MAX ((size_t)64 * 1024)

/* ---- authorities from the settings ---- */

/* Returns the list item of authority `index`: its own, or the only one. NULL: none. */
static const char *list_item(struct arena *arena, const char *list, size_t index)
{
	bool single = !strchr(list, ',');
	for (size_t i = 0; !single && i < index; i++) {
		const char *comma = strchr(list, ',');
		if (!comma)
			return NULL;
		list = comma + 1;
	}
	size_t size = strcspn(list, ",");
	while (size && *list == ' ')
		list++, size--;
	while (size && list[size - 1] == ' ')
		size--;
	return size ? arena_copy(arena, list, size) : NULL;
}

/* The secret of a single authority may contain commas. */
static const char *secret_item(struct arena *arena, const char *list, size_t count, size_t index)
{
	return count == 1 && *list ? list : list_item(arena, list, index);
}

static size_t list_count(const char *list)
{
	size_t count = *list != '\0';
	for (; *list; list++)
		count += *list == ',';
	return count;
}

static int create_authorities(const struct settings *settings, struct signer *signer, int only,
                              struct authorities **ret, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LIST_MEMORY_MAX);
	struct authority_options items[AUTHORITIES_MAX] = {0};
	struct authorities_options options = {
		.authorities = items,
		.count = list_count(settings->tsa_url),
		.signer = signer,
		.timeout_ms = (int)(settings->tsa_timeout / 1000),
		.time_bound_us = settings->tsa_time_bound,
	};
	if (options.count == 0 || options.count > AUTHORITIES_MAX)
		return error_cause(error, ERR_VALIDATION, "tsa.url must list 1 to 8 authorities");
	size_t given = options.count, used = 0;
	for (size_t i = 0; i < given; i++) {
		struct authority_options *item = &items[used];
		const char *kind = list_item(&arena, settings->tsa_kind, i);
		item->url = given == 1 ? settings->tsa_url : list_item(&arena, settings->tsa_url, i);
		item->roots_path = list_item(&arena, settings->tsa_roots, i);
		item->policy = list_item(&arena, settings->tsa_policy, i);
		item->user = list_item(&arena, settings->tsa_user, i);
		item->password = secret_item(&arena, settings->tsa_password, given, i);
		item->bearer = secret_item(&arena, settings->tsa_token, given, i);
		item->client_certificate = list_item(&arena, settings->tsa_client_certificate, i);
		item->client_key = list_item(&arena, settings->tsa_client_key, i);
		item->tls_roots_path = list_item(&arena, settings->tsa_tls_roots, i);
		item->kind = AUTHORITY_NON_QUALIFIED;
		if (!item->url || (kind && !authority_kind_parse(slice_of(kind), &item->kind)))
			return error_cause(error, ERR_VALIDATION, "invalid tsa.url or tsa.kind");
		bool usable = signer || strcmp(item->url, AUTHORITY_EMBEDDED_URL) != 0;
		used += usable && (only < 0 || i == (size_t)only);
	}
	options.count = used;
	if (!used)
		return OK; /* only checked, and all of them are embedded */
	int result =
		network_list_parse(slice_of(settings->tsa_allow_networks), &options.guard.allowed, error);
	return result ? result : authorities_create(&options, ret, error);
}

int node_create_authorities(const struct settings *settings, struct signer *signer,
                            struct authorities **ret, struct error *error)
{
	return create_authorities(settings, signer, -1, ret, error);
}

size_t node_count_authorities(const struct settings *settings)
{
	return list_count(settings->tsa_url);
}

int node_create_authority(const struct settings *settings, size_t index, struct authorities **ret,
                          struct error *error)
{
	*ret = NULL;
	return create_authorities(settings, NULL, (int)index, ret, error);
}

int node_create_revocation_client(const struct settings *settings, struct signer *signer,
                                  struct revocation_client **ret, struct error *error)
{
	struct revocation_client_options options = {
		.signer = signer,
		.timeout_ms = (int)(settings->revocation_timeout / 1000),
	};
	int result = network_list_parse(slice_of(settings->revocation_allow_networks),
	                                &options.guard.allowed, error);
	if (result)
		return result;
	*ret = revocation_client_create(&options);
	return *ret ? OK : ERR_NO_MEMORY;
}

/* ---- keys ---- */

static struct signer_options signer_options_of(const struct settings *settings)
{
	bool development = !*settings->signer_key;
	bool next = *settings->signer_next_key != '\0';
	return (struct signer_options){
		.directory = settings->signer_directory,
		.development = development,
		.key = {.key = development ? NULL : settings->signer_key,
	            .chain = settings->signer_chain,
	            .passphrase = settings->signer_passphrase_file},
		.next = {.key = next ? settings->signer_next_key : NULL,
	             .chain = settings->signer_next_chain,
	             .passphrase = *settings->signer_next_passphrase_file
	                               ? settings->signer_next_passphrase_file
	                               : settings->signer_passphrase_file},
	};
}

/* Wraps the cause in a message for the operator, in addition to the log. */
static int signer_unusable(int result, struct error *error)
{
	char cause[ERROR_CAUSE_MAX];
	if (!error)
		return result;
	snprintf(cause, sizeof cause, "%s", error->cause);
	return error_set(error, result, MSG_SIGNER_UNUSABLE, cause, NULL);
}

int node_start_signer(const struct settings *settings, struct signer **ret, struct error *error)
{
	struct signer_options options = signer_options_of(settings);
	options.words = log_words_open("signer");
	int result = signer_start(&options, ret, error);
	if (options.words > 0)
		close(options.words);
	return result == ERR_REFUSED || result == ERR_PIN ? signer_unusable(result, error) : result;
}

/* Reads the certificate of the development key. A missing key is created by a start and is not yet
 * registered in the store. */
static int read_development_key(const struct settings *settings, struct node_keys *keys,
                                struct error *error)
{
	struct signer_key *key = &keys->made;
	buf_init(&keys->certificate, SIGNER_BYTES_MAX);
	int result = signer_look_development(settings->signer_directory, &keys->certificate, error);
	*key = (struct signer_key){.certificates = buf_slice(&keys->certificate),
	                           .valid_until_us = INT64_MAX};
	if (!result && keys->certificate.size)
		result = trust_describe_path(key->certificates, &key->certificate, &key->valid_from_us,
		                             &key->valid_until_us, error);
	keys->keys[SIGNER_PRESENT] = key;
	return result;
}

int node_try_signer(const struct settings *settings, struct node_keys *ret, struct error *error)
{
	struct signer_options options = signer_options_of(settings);
	*ret = (struct node_keys){.development = options.development};
	int result = options.development ? read_development_key(settings, ret, error)
	                                 : signer_try(&options, &ret->tried, error);
	for (int i = 0; !result && ret->tried && i < SIGNER_KEYS; i++)
		ret->keys[i] = signer_get_key(ret->tried, i);
	ret->known = !result;
	return result == ERR_REFUSED || result == ERR_PIN ? signer_unusable(result, error) : result;
}

void node_keys_free(struct node_keys *keys)
{
	signer_stop(keys->tried);
	if (keys->development)
		buf_free(&keys->certificate);
	*keys = (struct node_keys){0};
}

void node_try_opened_store(const struct settings *settings, struct store *store,
                           const struct node_keys *keys, node_refused *refused, void *context)
{
	struct error error = {0};
	struct error other = {0};
	int result = history_look(store, settings->signer_directory, &error);
	if (result) {
		error.code = result;
		if (result == ERR_CORRUPT)
			error.cause[0] = '\0'; /* the message states the remedy */
		refused(context, false, "store.url", &error);
	}
	result = keys->known ? signers_try(store, keys->keys, keys->development, &other) : OK;
	if (result) {
		other.code = result;
		refused(context, false, "signer.key", &other);
	}
}
