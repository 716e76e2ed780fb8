#include "seal/authority_settings.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "net/address.h"
#include "net/http.h"
#include "base/file.h"
#include "seal/authority.h"
#include "seal/certificate.h"

#define LIST_MEMORY_MAX ((size_t)64 * 1024)

static bool starts_with(struct slice text, const char *start)
{
	return text.size > strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

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

static void check_count(const struct setting_check *check, const char *setting, const char *list,
                        unsigned authorities)
{
	unsigned count = 1;
	for (const char *at = list; *at; at++)
		count += *at == ',';
	if (count > 1 && count != authorities)
		setting_fault(check, setting, "must have one value for all authorities, or one for each");
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

static void check_tokens(const struct authority_settings *settings,
                         const struct setting_check *check, unsigned authorities)
{
	setting_check_range(check, "tsa.tokens", settings->tokens, 1, 2);
	setting_check_duration(check, "tsa.divergence_bound", settings->divergence_bound, 100000,
	                       "100ms");
	if (settings->tokens != 2)
		return;
	if (check->serving && authorities < 2)
		setting_fault(check, "tsa.tokens",
		              "must be 1 unless tsa.url lists two or more authorities");
	else if (has_twice(settings->url))
		setting_fault(check, "tsa.url", "must not list an authority twice when tsa.tokens is 2");
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
static void check_pair(const struct setting_check *check, const char *one, struct slice first,
                       const char *other, struct slice second)
{
	char what[128];
	if (!first.size == !second.size)
		return;
	snprintf(what, sizeof what, "must be set too: %s and %s belong together", one, other);
	setting_fault(check, first.size ? other : one, what);
}

/* ---- credentials ---- */

/* Checks that the file is a regular file that this process may read. */
static void check_file(const struct setting_check *check, const char *setting, struct slice path,
                       bool is_secret)
{
	char text[PATH_MAX], what[PATH_MAX + 128];
	struct stat facts;
	if (snprintf(text, sizeof text, "%.*s", (int)path.size, path.data) >= (int)sizeof text) {
		setting_fault(check, setting, "is too long for a path");
		return;
	}
	if (!setting_check_readable(check, setting, text) || !*text || !is_secret ||
	    stat(text, &facts) != 0 || !(facts.st_mode & (S_IRWXG | S_IRWXO)))
		return;
	snprintf(what, sizeof what,
	         "%s must be accessible only to its owner: mode 0600 or 0400, not %04o", text,
	         (unsigned)facts.st_mode & 07777);
	setting_fault(check, setting, what);
}

/* Warns of a file in which no certificate is trusted: only self-signed ones are. An unreadable file
 * is reported elsewhere. */
static void warn_of_missing_root(const struct setting_check *check, struct slice path)
{
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	BUF_AUTO struct buf text;
	char name[PATH_MAX], what[PATH_MAX + 128];
	struct error error = {0};
	bool found = false;
	buf_init(&text, PEM_FILE_MAX);
	snprintf(name, sizeof name, "%.*s", (int)path.size, path.data);
	if (!path.size || path.size >= sizeof name || file_read_whole(name, &text, &error) ||
	    certificates_read(buf_slice(&text), &certificates, &error))
		return;
	for (int i = 0; i < sk_X509_num(certificates); i++)
		found = found || certificate_is_self_issued(sk_X509_value(certificates, i));
	snprintf(what, sizeof what,
	         "%s has no root certificate, only certificates of other issuers, which are not "
	         "trusted: add the root",
	         name);
	if (!found)
		setting_warn(check, "tsa.roots", what);
}

static void check_credentials(const struct authority_settings *settings,
                              const struct setting_check *check, struct slice url, unsigned count,
                              unsigned index)
{
	struct slice user = item_of(settings->user, index);
	struct slice password = item_of(settings->password, index);
	struct slice token = item_of(settings->token, index);
	struct slice certificate = item_of(settings->client_certificate, index);
	struct slice key = item_of(settings->client_key, index);
	if (count == 1) {
		password = slice_of(settings->password);
		token = slice_of(settings->token);
	}
	check_pair(check, "tsa.user", user, "tsa.password", password);
	check_pair(check, "tsa.client_certificate", certificate, "tsa.client_key", key);
	if (user.size && token.size)
		setting_fault(check, "tsa.token",
		              "must be empty when tsa.user is set: only one of them is sent");
	if ((user.size || password.size || token.size || certificate.size) &&
	    !slice_is(url, AUTHORITY_EMBEDDED_URL) && strncasecmp(url.data, "https://", 8) != 0)
		setting_fault(check, "tsa.url", "must be an https:// address when credentials are sent");
	if (!check->serving)
		return;
	check_file(check, "tsa.roots", item_of(settings->roots, index), false);
	warn_of_missing_root(check, item_of(settings->roots, index));
	check_file(check, "tsa.client_certificate", certificate, false);
	check_file(check, "tsa.client_key", key, true);
	check_file(check, "tsa.tls_roots", item_of(settings->tls_roots, index), false);
}

/* Warns of a secret that is sent to several authorities. */
static void warn_of_shared(const struct setting_check *check, const char *setting, const char *list,
                           unsigned count)
{
	if (count > 1 && *list && !strchr(list, ','))
		setting_warn(check, setting,
		             "is a single value, which is sent to every authority; to send it to one "
		             "authority only, use a list with empty elements");
}

/* ---- the check ---- */

/* Reports an address that no request can be sent to. It may contain credentials and is not shown.
 */
static void check_url(const struct setting_check *check, struct slice url)
{
	struct error ignored = {0};
	if (!starts_with(url, "https://") && !starts_with(url, "http://"))
		setting_fault(check, "tsa.url",
		              "must list https:// addresses, or embedded: for development");
	else if (memchr(url.data, ' ', url.size) || memchr(url.data, ';', url.size))
		setting_fault(check, "tsa.url", "must separate addresses with commas");
	else if (memchr(url.data, '@', url.size))
		setting_fault(check, "tsa.url",
		              "must not contain a user name or password: set tsa.user and tsa.password");
	else if (http_url_check(url, true, "tsa.url", &ignored))
		setting_fault(check, "tsa.url",
		              "must list addresses such as https://tsa.example.net/tsr, in ASCII and "
		              "without a fragment");
}

static bool is_oid(struct slice text)
{
	bool dotted = false;
	for (size_t i = 0; i < text.size; i++) {
		bool dot = text.data[i] == '.';
		if (!isdigit((unsigned char)text.data[i]) &&
		    (!dot || i == 0 || i + 1 == text.size || text.data[i - 1] == '.'))
			return false;
		dotted |= dot;
	}
	return dotted || !text.size;
}

static void check_kinds_and_policies(const struct authority_settings *settings,
                                     const struct setting_check *check)
{
	const char *kinds = settings->kind, *policies = settings->policy;
	bool good_kinds = true, good_policies = true;
	struct slice item;
	enum authority_kind kind;
	while (next_item(&kinds, &item))
		good_kinds &= authority_kind_parse(item, &kind) && kind != AUTHORITY_DEVELOPMENT;
	while (next_item(&policies, &item))
		good_policies &= is_oid(item);
	if (!good_kinds)
		setting_fault(check, "tsa.kind", "must be a list of qualified or non_qualified");
	if (!good_policies)
		setting_fault(check, "tsa.policy",
		              "must be a list of object identifiers such as 1.3.6.1.4.1");
}

/* Checks the addresses and the credentials that each receives. */
static void check_each(const struct authority_settings *settings, const struct setting_check *check,
                       unsigned count)
{
	const char *rest = settings->url;
	struct slice item;
	bool remote = false;
	for (unsigned i = 0; next_item(&rest, &item); i++) {
		check_credentials(settings, check, item, count, i);
		if (slice_is(item, AUTHORITY_EMBEDDED_URL))
			continue;
		remote = true;
		check_url(check, item);
	}
	if (count > AUTHORITIES_MAX)
		setting_fault(check, "tsa.url", "must list at most 8 authorities");
	if (check->serving && count == 0)
		setting_fault(check, "tsa.url",
		              "must list a timestamp authority, otherwise events are never sealed; "
		              "embedded: is for development");
	if (check->serving && remote && !*settings->roots)
		setting_fault(check, "tsa.roots",
		              "must name a PEM file with the trusted roots of the authority");
}

void authority_check_settings(const struct authority_settings *settings,
                              const struct setting_check *check)
{
	unsigned count = count_items(settings->url);
	check_each(settings, check, count);
	check_kinds_and_policies(settings, check);
	check_count(check, "tsa.kind", settings->kind, count);
	check_count(check, "tsa.roots", settings->roots, count);
	check_count(check, "tsa.policy", settings->policy, count);
	check_tokens(settings, check, count);
	check_count(check, "tsa.user", settings->user, count);
	check_count(check, "tsa.client_certificate", settings->client_certificate, count);
	check_count(check, "tsa.client_key", settings->client_key, count);
	check_count(check, "tsa.tls_roots", settings->tls_roots, count);
	if (count > 1) {
		check_count(check, "tsa.password", settings->password, count);
		check_count(check, "tsa.token", settings->token, count);
	}
	warn_of_shared(check, "tsa.password", settings->password, count);
	warn_of_shared(check, "tsa.token", settings->token, count);
	network_list_check(settings->allow_networks, check, "tsa.allow_networks");
	setting_check_duration(check, "tsa.timeout", settings->timeout, 100000, "100ms");
	setting_check_duration(check, "tsa.time_bound", settings->time_bound, 1000000, "1s");
}

/* ---- the authorities ---- */

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

static int create_authorities(const struct authority_settings *settings, struct signer *signer,
                              int only, struct authorities **ret, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LIST_MEMORY_MAX);
	struct authority_options items[AUTHORITIES_MAX] = {0};
	struct authorities_options options = {
		.authorities = items,
		.count = list_count(settings->url),
		.signer = signer,
		.timeout_ms = (int)(settings->timeout / 1000),
		.time_bound_us = settings->time_bound,
	};
	if (options.count == 0 || options.count > AUTHORITIES_MAX)
		return error_cause(error, ERR_VALIDATION, "tsa.url must list 1 to 8 authorities");
	size_t given = options.count, used = 0;
	for (size_t i = 0; i < given; i++) {
		struct authority_options *item = &items[used];
		const char *kind = list_item(&arena, settings->kind, i);
		item->url = given == 1 ? settings->url : list_item(&arena, settings->url, i);
		item->roots_path = list_item(&arena, settings->roots, i);
		item->policy = list_item(&arena, settings->policy, i);
		item->user = list_item(&arena, settings->user, i);
		item->password = secret_item(&arena, settings->password, given, i);
		item->bearer = secret_item(&arena, settings->token, given, i);
		item->client_certificate = list_item(&arena, settings->client_certificate, i);
		item->client_key = list_item(&arena, settings->client_key, i);
		item->tls_roots_path = list_item(&arena, settings->tls_roots, i);
		item->kind = AUTHORITY_NON_QUALIFIED;
		if (!item->url || (kind && !authority_kind_parse(slice_of(kind), &item->kind)))
			return error_cause(error, ERR_VALIDATION, "invalid tsa.url or tsa.kind");
		if (!item->client_certificate != !item->client_key)
			return error_cause(error, ERR_VALIDATION, "a client certificate requires its key");
		bool usable = signer || strcmp(item->url, AUTHORITY_EMBEDDED_URL) != 0;
		used += usable && (only < 0 || i == (size_t)only);
	}
	options.count = used;
	if (!used)
		return OK; /* only checked, and all of them are embedded */
	int result =
		network_list_parse(slice_of(settings->allow_networks), &options.guard.allowed, error);
	return result ? result : authorities_create(&options, ret, error);
}

static bool has_certificates(const char *path)
{
	BUF_AUTO struct buf text;
	struct error ignored = {0};
	CERTIFICATES_AUTO STACK_OF(X509) *certificates = NULL;
	buf_init(&text, PEM_FILE_MAX);
	return !file_read_whole(path, &text, &ignored) &&
	       !certificates_read(buf_slice(&text), &certificates, &ignored);
}

const char *authority_setting_at_fault(const struct authority_settings *settings)
{
	const char *kinds = settings->kind;
	struct slice item;
	enum authority_kind kind;
	size_t count = list_count(settings->url);
	while (next_item(&kinds, &item))
		if (!authority_kind_parse(item, &kind))
			return "tsa.kind";
	for (size_t i = 0; i < count && i < AUTHORITIES_MAX; i++) {
		ARENA_AUTO struct arena arena;
		arena_init(&arena, LIST_MEMORY_MAX);
		const char *url = list_item(&arena, settings->url, i);
		const char *roots = list_item(&arena, settings->roots, i);
		bool certificate = list_item(&arena, settings->client_certificate, i) != NULL;
		if (certificate != (list_item(&arena, settings->client_key, i) != NULL))
			return certificate ? "tsa.client_key" : "tsa.client_certificate";
		bool embedded = url && strcmp(url, AUTHORITY_EMBEDDED_URL) == 0;
		if (!embedded && (!roots || !has_certificates(roots)))
			return "tsa.roots";
	}
	return "tsa.url";
}

/* The settings of one authority that an exchange with it depends on. */
struct given {
	bool user, token, certificate, tls_roots;
};

static struct given find_given(const struct authority_settings *settings, size_t index)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LIST_MEMORY_MAX);
	size_t count = list_count(settings->url);
	return (struct given){
		.user = list_item(&arena, settings->user, index) != NULL,
		.token = secret_item(&arena, settings->token, count, index) != NULL,
		.certificate = list_item(&arena, settings->client_certificate, index) != NULL,
		.tls_roots = list_item(&arena, settings->tls_roots, index) != NULL,
	};
}

static const char *setting_of_credentials(const struct given *given, const char **ret_remedy)
{
	if (given->token || given->user) {
		*ret_remedy = given->token ? "; check tsa.token" : "; check tsa.user and tsa.password";
		return given->token ? "tsa.token" : "tsa.user";
	}
	*ret_remedy = given->certificate ? "; check tsa.client_certificate, or set tsa.user and "
	                                   "tsa.password, or tsa.token"
	                                 : "; set tsa.user and tsa.password, or tsa.token";
	return given->certificate ? "tsa.client_certificate" : "tsa.user";
}

const char *authority_setting_of_fault(const struct authority_settings *settings, size_t index,
                                       enum error_blame fault, const char **ret_remedy)
{
	struct given given = find_given(settings, index);
	*ret_remedy = "";
	switch (fault) {
	case BLAME_NETWORK:
		*ret_remedy = "; if it is the right one, add its network to tsa.allow_networks";
		return "tsa.allow_networks";
	case BLAME_USER:
	case BLAME_PASSWORD: return setting_of_credentials(&given, ret_remedy);
	case BLAME_CLIENT_CERTIFICATE:
		*ret_remedy = given.certificate ? "; the authority does not accept tsa.client_certificate"
		                                : "; set tsa.client_certificate and tsa.client_key";
		return "tsa.client_certificate";
	case BLAME_TLS_ROOTS:
		*ret_remedy = given.tls_roots
		                  ? "; tsa.tls_roots must contain the root of its TLS certificate"
		                  : "; the roots of the system do not include that of its TLS "
		                    "certificate: set tsa.tls_roots";
		return "tsa.tls_roots";
	case BLAME_ROOTS:
		*ret_remedy = "; tsa.roots must contain the root of its timestamps";
		return "tsa.roots";
	default: return "tsa.url";
	}
}

size_t authority_count(const struct authority_settings *settings)
{
	return list_count(settings->url);
}

bool authority_has_embedded(const struct authority_settings *settings)
{
	const char *rest = settings->url;
	struct slice item;
	while (next_item(&rest, &item))
		if (slice_is(item, AUTHORITY_EMBEDDED_URL))
			return true;
	return false;
}

int authority_create_all(const struct authority_settings *settings, struct signer *signer,
                         struct authorities **ret_authorities, struct error *error)
{
	return create_authorities(settings, signer, -1, ret_authorities, error);
}

int authority_create_one(const struct authority_settings *settings, size_t index,
                         struct authorities **ret_authorities, struct error *error)
{
	*ret_authorities = NULL;
	return create_authorities(settings, NULL, (int)index, ret_authorities, error);
}
