/* Checks of the settings of timestamp authorities and signing keys. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/config_check.h"
#include "seal/authority.h"

/* ---- lists with one item per authority ---- */

/* Returns the next item without surrounding spaces; false: the list ends. An empty text has no
 * items. */
static bool next_item(const char **rest, struct slice *ret_item)
{
	if (!*rest || !**rest)
		return false;
	const char *at = *rest;
	size_t size = strcspn(at, ",");
	*rest = at[size] ? at + size + 1 : at + size;
	while (size && *at == ' ')
		at++, size--;
	while (size && at[size - 1] == ' ')
		size--;
	*ret_item = slice_make(at, size);
	return true;
}

static unsigned count_items(const char *list)
{
	unsigned count = 0;
	struct slice item;
	while (next_item(&list, &item))
		count++;
	return count;
}

static void check_count(const struct check *check, const char *setting, const char *list,
                        unsigned authorities)
{
	unsigned count = 1;
	for (const char *at = list; *at; at++)
		count += *at == ',';
	if (count > 1 && count != authorities)
		fault(check, setting, "must have one value for all authorities, or one for each");
}

/* Returns whether an address occurs twice. */
static bool has_twice(const char *list)
{
	struct slice item, other;
	while (next_item(&list, &item)) {
		const char *rest = list;
		while (next_item(&rest, &other))
			if (slice_equal(item, other))
				return true;
	}
	return false;
}

static void check_tokens(const struct check *check, bool serving, unsigned authorities)
{
	const struct settings *settings = check->settings;
	check_range(check, "tsa.tokens", settings->tsa_tokens, 1, 2);
	check_duration(check, "tsa.divergence_bound", settings->tsa_divergence_bound, 100000, "100ms");
	if (settings->tsa_tokens != 2)
		return;
	if (serving && authorities < 2)
		fault(check, "tsa.tokens", "must be 1 unless tsa.url lists two or more authorities");
	else if (has_twice(settings->tsa_url))
		fault(check, "tsa.url", "must not list an authority twice when tsa.tokens is 2");
}

/* Returns the item of one authority: its own, or the only one; size 0: none. */
static struct slice item_of(const char *list, unsigned index)
{
	bool single = !strchr(list, ',');
	struct slice item = slice_make("", 0);
	for (unsigned i = 0; i <= index && next_item(&list, &item) && !single; i++)
		if (i < index)
			item = slice_make("", 0);
	return item;
}

/* Checks that both values are set, or neither. */
static void check_pair(const struct check *check, const char *one, struct slice first,
                       const char *other, struct slice second)
{
	char what[128];
	if (!first.size == !second.size)
		return;
	snprintf(what, sizeof what, "must be set too: %s and %s belong together", one, other);
	fault(check, first.size ? other : one, what);
}

/* ---- credentials ---- */

/* Checks that the file is a regular file that this process may read. */
static void check_file(const struct check *check, const char *setting, struct slice path,
                       bool is_secret)
{
	char text[4096];
	struct stat facts;
	if (!path.size)
		return;
	int size = snprintf(text, sizeof text, "%.*s", (int)path.size, path.data);
	if (size >= (int)sizeof text || stat(text, &facts) != 0 || !S_ISREG(facts.st_mode) ||
	    access(text, R_OK) != 0)
		fault(check, setting, "cannot be read");
	else if (is_secret && facts.st_mode & (S_IRWXG | S_IRWXO))
		fault(check, setting, "must be accessible only to its owner: mode 0600 or 0400");
}

static void check_credentials(const struct check *check, bool serving, struct slice url,
                              unsigned count, unsigned index)
{
	const struct settings *settings = check->settings;
	struct slice user = item_of(settings->tsa_user, index);
	struct slice password = item_of(settings->tsa_password, index);
	struct slice token = item_of(settings->tsa_token, index);
	struct slice certificate = item_of(settings->tsa_client_certificate, index);
	struct slice key = item_of(settings->tsa_client_key, index);
	if (count == 1) {
		password = slice_of(settings->tsa_password);
		token = slice_of(settings->tsa_token);
	}
	check_pair(check, "tsa.user", user, "tsa.password", password);
	check_pair(check, "tsa.client_certificate", certificate, "tsa.client_key", key);
	if (user.size && token.size)
		fault(check, "tsa.token", "must be empty when tsa.user is set: only one of them is sent");
	if ((user.size || password.size || token.size || certificate.size) &&
	    !slice_is(url, AUTHORITY_EMBEDDED_URL) && strncasecmp(url.data, "https://", 8) != 0)
		fault(check, "tsa.url", "must be an https:// address when credentials are sent");
	if (!serving)
		return;
	check_file(check, "tsa.roots", item_of(settings->tsa_roots, index), false);
	check_file(check, "tsa.client_certificate", certificate, false);
	check_file(check, "tsa.client_key", key, true);
	check_file(check, "tsa.tls_roots", item_of(settings->tsa_tls_roots, index), false);
}

/* Warns of a secret that is sent to several authorities. */
static void warn_of_shared(const struct check *check, const char *setting, const char *list,
                           unsigned count)
{
	if (count > 1 && *list && !strchr(list, ','))
		check->warning(check->context, setting,
		               "is a single value, which is sent to every authority; to send it to one "
		               "authority only, use a list with empty elements");
}

void check_authorities(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	unsigned count = count_items(settings->tsa_url);
	const char *rest = settings->tsa_url;
	struct slice item;
	bool remote = false, embedded = false;
	for (unsigned i = 0; next_item(&rest, &item); i++) {
		check_credentials(check, serving, item, count, i);
		if (slice_is(item, AUTHORITY_EMBEDDED_URL)) {
			embedded = true;
			continue;
		}
		remote = true;
		if (!starts_with(item, "https://") && !starts_with(item, "http://"))
			fault(check, "tsa.url", "must list https:// addresses, or embedded: for development");
	}
	if (count > AUTHORITIES_MAX)
		fault(check, "tsa.url", "must list at most 8 authorities");
	if (embedded && *settings->signer_key)
		fault(check, "tsa.url",
		      "must not contain embedded: when signer.key is set; it is for "
		      "development only");
	if (serving && count == 0)
		fault(check, "tsa.url",
		      "must list a timestamp authority, otherwise events are never sealed; "
		      "embedded: is for development");
	if (serving && remote && !*settings->tsa_roots)
		fault(check, "tsa.roots", "must name a PEM file with the trusted roots of the authority");
	rest = settings->tsa_kind;
	enum authority_kind kind;
	while (next_item(&rest, &item))
		if (!authority_kind_parse(item, &kind) || kind == AUTHORITY_DEVELOPMENT)
			fault(check, "tsa.kind", "must be a list of qualified or non_qualified");
	check_count(check, "tsa.kind", settings->tsa_kind, count);
	check_count(check, "tsa.roots", settings->tsa_roots, count);
	check_count(check, "tsa.policy", settings->tsa_policy, count);
	check_tokens(check, serving, count);
	check_count(check, "tsa.user", settings->tsa_user, count);
	check_count(check, "tsa.client_certificate", settings->tsa_client_certificate, count);
	check_count(check, "tsa.client_key", settings->tsa_client_key, count);
	check_count(check, "tsa.tls_roots", settings->tsa_tls_roots, count);
	if (count > 1) {
		check_count(check, "tsa.password", settings->tsa_password, count);
		check_count(check, "tsa.token", settings->tsa_token, count);
	}
	warn_of_shared(check, "tsa.password", settings->tsa_password, count);
	warn_of_shared(check, "tsa.token", settings->tsa_token, count);
	check_networks(check, "tsa.allow_networks", settings->tsa_allow_networks);
	check_duration(check, "tsa.timeout", settings->tsa_timeout, 100000, "100ms");
	check_duration(check, "tsa.time_bound", settings->tsa_time_bound, 1000000, "1s");
	check_networks(check, "revocation.allow_networks", settings->revocation_allow_networks);
	check_duration(check, "revocation.timeout", settings->revocation_timeout, 100000, "100ms");
}

/* ---- keys ---- */

/* The fitness of the keys is checked by the process that holds them (node_try_signer). */
void check_signer(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	bool on_token = starts_with(slice_of(settings->signer_key), "pkcs11:");
	if (!*settings->signer_key && (*settings->signer_chain || *settings->signer_passphrase_file))
		fault(check, "signer.key",
		      "must be set when signer.chain or signer.passphrase_file is set");
	if (on_token && !*settings->signer_chain)
		fault(check, "signer.chain", "must be set with a pkcs11: key");
	if (!*settings->signer_key && *settings->signer_next_key)
		fault(check, "signer.key", "must be set when signer.next_key is set");
	if (!*settings->signer_next_key &&
	    (*settings->signer_next_chain || *settings->signer_next_passphrase_file))
		fault(check, "signer.next_key",
		      "must be set when signer.next_chain or signer.next_passphrase_file is set");
	if (serving && !on_token)
		check_readable(check, "signer.key", settings->signer_key);
	if (serving)
		check_readable(check, "signer.chain", settings->signer_chain);
}
