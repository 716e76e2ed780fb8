/* Creates the components of a node from the settings. */
#include "cli/node_parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "evidence/signers.h"
#include "seal/receipt_signer.h"
#include "service/history.h"
#include "store/tlog/log_checkpoints.h"

/* ---- authorities ---- */

int node_create_authorities(const struct settings *settings, struct signer *signer,
                            struct authorities **ret, struct error *error)
{
	struct authority_settings authorities = settings_authorities(settings);
	return authority_create_all(&authorities, signer, ret, error);
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
		.log_key = *settings->log_key ? settings->log_key : NULL,
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
	options.words = log_open_stderr_capture("signer");
	int result = signer_start(&options, ret, error);
	if (options.words > 0)
		close(options.words);
	return result == ERR_REFUSED || result == ERR_PIN ? signer_unusable(result, error) : result;
}

int node_start_receipt_signer(const struct settings *settings, struct receipt_signer **ret,
                              struct error *error)
{
	if (!settings->receipt_signed)
		return OK;
	int words = log_open_stderr_capture("receipt-signer");
	int result = receipt_signer_start(settings->signer_directory, words, ret, error);
	if (words > 0)
		close(words);
	return result == ERR_REFUSED ? signer_unusable(result, error) : result;
}

/* Reads the certificate of the development key. A missing key is created by a start and is not yet
 * registered in the store. */
static int read_development_key(const struct settings *settings, struct node_keys *keys,
                                struct error *error)
{
	struct signer_key *key = &keys->made;
	buf_init(&keys->certificate, SIGNER_BYTES_MAX);
	int result =
		signer_read_development_certificate(settings->signer_directory, &keys->certificate, error);
	*key = (struct signer_key){.certificates = buf_slice(&keys->certificate),
	                           .valid_until_us = INT64_MAX};
	if (!result && keys->certificate.size)
		result = trust_describe_path(key->certificates, &key->certificate, &key->valid_from_us,
		                             &key->valid_until_us, error);
	keys->keys[SIGNER_PRESENT] = key;
	return result;
}

int node_check_signer(const struct settings *settings, struct node_keys *ret, struct error *error)
{
	struct signer_options options = signer_options_of(settings);
	*ret = (struct node_keys){.development = options.development};
	int result = options.development ? read_development_key(settings, ret, error)
	                                 : signer_check_start(&options, &ret->tried, error);
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

static void warn_of_ended_log(const struct settings *settings, struct store *store,
                              node_problem_listener *refused, void *context)
{
	struct error error = {0};
	char origin[NOTE_NAME_MAX + 1];
	bool ended = false;
	log_origin(settings, origin);
	int result = store_get_log_end(store, origin, &ended, &error);
	if (!result && ended)
		result = error_cause(&error, ERR_REFUSED,
		                     "the log %s ended when the store was set back and that was confirmed: "
		                     "nothing is published until a new name is set, on all nodes",
		                     origin);
	error.code = result;
	if (result)
		refused(context, true, "log.origin", &error);
}

void node_check_opened_store(const struct settings *settings, struct store *store,
                             const struct node_keys *keys, node_problem_listener *refused,
                             void *context)
{
	struct error error = {0};
	struct error other = {0};
	int result = history_inspect(store, settings->signer_directory, &error);
	if (result) {
		error.code = result;
		if (result == ERR_CORRUPT)
			error.cause[0] = '\0'; /* the message states the remedy */
		refused(context, false, "store.url", &error);
	}
	result = keys->known ? signers_check_keys(store, keys->keys, keys->development, &other) : OK;
	if (result) {
		other.code = result;
		refused(context, false, "signer.key", &other);
	}
	warn_of_ended_log(settings, store, refused, context);
}
