#include "cli/connection_probe_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/node_parts.h"
#include "content/content.h"
#include "net/mail.h"
#include "payment/payment.h"
#include "seal/clock_state.h"
#include "service/service.h"
#include "store/nodes/servers.h"
#include "store/schema/store_schemas.h"
#include "store/store.h"

#define TEXT_MAX 1024
#define MAIL_CHECK_TIMEOUT_MS 20000
#define STEPS_MAX ((size_t)16 * 1024)

void probe_begin(struct trial *trial, const char *what, const char *setting)
{
	trial->what = what;
	trial->setting = setting;
	trial->began_us = clock_monotonic_us();
	trial->listener->begin(trial->listener->context, what);
}

void probe_end(struct trial *trial, bool failed, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	struct connection connection = {trial->what, trial->setting, failed, text,
	                                clock_monotonic_us() - trial->began_us};
	trial->listener->end(trial->listener->context, &connection);
}

void probe_fail(struct trial *trial, int result, const struct error *error)
{
	probe_end(trial, true, "%s", error_reason(error, result));
}

/* ---- the database ---- */

struct database_facts {
	struct db_facts server;
	char schema[64];
	int64_t clock_difference_us; /* this machine's clock minus the server's */
};

static void copy(struct db_query *query, int column, char *text, size_t size)
{
	struct slice value = db_text(query, column);
	snprintf(text, size, "%.*s", (int)value.size, value.data ? value.data : "");
}

/* The first error that prevents a start, and the setting that it concerns. */
struct refusal {
	const struct trial *trial;
	const char *setting;
	struct error error;
};

/* Reads the schema and the installation from the store's `settings` table, if it exists. */
static int read_settings(struct db_connection *reader, struct trial *trial,
                         struct database_facts *facts, struct error *error)
{
	bool present = false;
	int result = db_has_table(reader, "settings", &present, error);
	if (result || !present)
		return result;
	struct db_query *query = db_query(
		reader, "SELECT name, value FROM settings WHERE name IN ('schema', 'installation')");
	while (db_step(query)) {
		if (slice_is(db_text(query, 0), "schema"))
			copy(query, 1, facts->schema, sizeof facts->schema);
		else
			copy(query, 1, trial->installation, sizeof trial->installation);
	}
	return db_end(query, error);
}

static int read_facts(struct db *db, struct trial *trial, struct database_facts *facts,
                      struct error *error)
{
	struct db_connection *reader = db_take_reader(db);
	int result = db_describe(reader, &facts->server, error);
	facts->clock_difference_us = clock_now_us() - facts->server.clock_us;
	if (!result)
		result = read_settings(reader, trial, facts, error);
	db_give(reader);
	return result;
}

/* Checks whether this program can use the schema. An empty `schema` is valid: the store does not
 * exist yet. */
static int check_schema(const struct db_options *options, const char *schema, struct error *error)
{
	BUF_AUTO struct buf steps;
	buf_init(&steps, STEPS_MAX);
	if (!*schema)
		return OK;
	int result = store_migrate(options, true, NULL, &steps, NULL, error);
	if (!result && steps.size)
		result = error_cause(error, ERR_REFUSED,
		                     "the schema is %s, older than this program's: run 'constancia store "
		                     "migrate'",
		                     schema);
	return result;
}

static void store_first_error(void *context, bool warning, const char *setting,
                              const struct error *error)
{
	struct refusal *first = context;
	const struct trial *trial = first->trial;
	if (warning)
		trial->listener->warn(trial->listener->context, setting, error->cause);
	if (warning || first->error.code)
		return;
	first->setting = setting;
	first->error = *error;
}

/* Runs the checks of a start that need a current schema: rollback detection and signing keys. */
static int check_store(struct trial *trial, const struct db_options *options, struct error *error)
{
	struct refusal first = {.trial = trial};
	struct store *store = NULL;
	int result = store_open(options, &store, error);
	if (result)
		return result;
	node_check_opened_store(trial->settings, store, trial->keys, store_first_error, &first);
	store_close(store);
	if (!first.error.code)
		return OK;
	trial->setting = first.setting;
	*error = first.error;
	return first.error.code;
}

static void report_finding(void *context, const char *what, const char *setting, bool problem,
                           const char *sentence)
{
	probe_begin(context, what, setting);
	probe_end(context, problem, "%s", sentence);
}

static void warn_of_pace(void *context, const char *sentence)
{
	const struct trial *trial = context;
	trial->listener->warn(trial->listener->context, "store.url", sentence);
}

static void try_server(struct trial *trial)
{
	struct db_options options = settings_store(trial->settings, false);
	struct database_facts facts = {0};
	struct error error = {0};
	struct db *db = NULL;
	probe_begin(trial, "database", "store.url");
	int result = db_open(&options, &store_schemas, &db, &error);
	if (!result)
		result = read_facts(db, trial, &facts, &error);
	trial->store_known = !result;
	if (!result && strcmp(facts.server.encoding, "UTF8") != 0)
		result = error_cause(&error, ERR_REFUSED, "the encoding is %s; it must be UTF8",
		                     facts.server.encoding);
	if (!result) {
		trial->setting = "store.require_replicas";
		result = db_ready(db, &error);
	}
	if (!result) {
		trial->setting = "store.url";
		result = check_schema(&options, facts.schema, &error);
		if (!result && *facts.schema)
			result = check_store(trial, &options, &error);
	}
	if (result)
		probe_fail(trial, result, &error);
	else
		probe_end(trial, false,
		          "%s %s at %s, database %s, %s%s%s, %s%s%s, local clock differs by %+lld ms%s",
		          db_url_engine(options.url), facts.server.version, facts.server.host,
		          facts.server.name, *facts.server.standbys ? "standby " : "no standby",
		          facts.server.standbys,
		          trial->settings->store_require_replicas ? "" : " (none required)",
		          *facts.schema ? "schema " : "", *facts.schema ? facts.schema : "empty",
		          *facts.schema ? "" : ": run 'constancia init'",
		          (long long)facts.clock_difference_us / 1000,
		          facts.server.sees_standbys ? "" : "; the role lacks pg_read_all_stats");
	if (trial->store_known) {
		result = db_check_servers(db, *facts.schema != '\0', report_finding, trial, &error);
		if (result)
			report_finding(trial, "shards", "store.url", true, error_reason(&error, result));
	}
	/* On a distributed store events are not in the write-ahead log of this server. */
	if (trial->store_known && !trial->settings->store_sharded) {
		result = servers_check_pace(db, warn_of_pace, trial, &error);
		if (result)
			warn_of_pace(trial, error_reason(&error, result));
	}
	db_close(db);
}

static void try_embedded(struct trial *trial, bool running)
{
	struct db_options options = settings_store(trial->settings, false);
	const char *path = db_url_path(options.url);
	const char *engine = db_url_engine(options.url);
	struct store *store = NULL;
	struct error error = {0};
	probe_begin(trial, "database", "store.url");
	if (running) {
		probe_end(trial, false, "%s, %s: in use by a running service", engine, path);
		return;
	}
	if (!node_owns_store(path)) {
		probe_end(trial, false,
		          "%s, %s: not opened, since it does not exist or belongs to another user", engine,
		          path);
		return;
	}
	int result = store_open(&options, &store, &error);
	if (!result)
		result = store_get_installation(store, trial->installation, &error);
	store_close(store);
	trial->store_known = !result;
	if (result)
		probe_fail(trial, result, &error);
	else
		probe_end(trial, false, "%s, %s", engine, path);
}

/* ---- content ---- */

/* Writes, reads and deletes an object. If the deletion fails, the sweep deletes the object like any
 * other that no event references. */
static int exchange_object(struct content_store *content, struct error *error)
{
	static const char probe[] = "constancia config check";
	char name[CONTENT_NAME_MAX], back[sizeof probe] = "";
	struct content_writer *writer = NULL;
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	content_fresh_name("event", name);
	int result = content_write_begin(content, &writer, error);
	if (result)
		return result;
	result = content_write(writer, probe, sizeof probe, error);
	if (result) {
		content_write_abort(writer);
		return result;
	}
	result = content_write_commit(writer, name, error);
	if (!result)
		result = content_read_begin(content, name, 0, &reader, &size, error);
	if (!result && (size != sizeof probe ||
	                content_read(reader, back, sizeof back, error) != (int64_t)sizeof probe ||
	                memcmp(back, probe, sizeof probe) != 0))
		result =
			error_cause(error, ERR_NETWORK, "an object was written but could not be read back");
	content_read_end(reader);
	struct error local = {0};
	int deleted = content_delete(content, name, result ? &local : error);
	return result ? result : deleted;
}

static int list_nothing(void *context, const char *name)
{
	(void)context, (void)name;
	return 1;
}

static void try_content(struct trial *trial)
{
	struct content_options options = settings_content(trial->settings, false);
	struct content_range range = {.area = "event", .before_us = INT64_MAX};
	struct content_store *content = NULL;
	struct error error = {0};
	if (!content_url_is_remote(trial->settings->content_url))
		return;
	probe_begin(trial, "content", "content.url");
	if (access(options.spool_directory, W_OK | X_OK) != 0)
		options.spool_directory = NULL; /* 'init' has not run yet */
	int result = content_open_with(&options, &content, &error);
	if (!result)
		result = content_ready(content, &error);
	if (!result && trial->store_known)
		result = content_check_claim(content, trial->installation, &error);
	if (!result)
		result = exchange_object(content, &error);
	if (!result && content_list(content, &range, list_nothing, NULL, &error) < 0)
		result = error.code ? error.code : ERR_NETWORK;
	content_close(content);
	if (result)
		probe_fail_content(trial, result, &error);
	else
		probe_end(trial, false, "%s: wrote, read, listed and deleted an object%s",
		          trial->settings->content_url,
		          trial->store_known
		              ? ""
		              : "; ownership was not checked because the store is unavailable");
}

/* ---- mail and payments ---- */

static void try_mail(struct trial *trial)
{
	const struct settings *settings = trial->settings;
	struct address_guard guard = {0};
	struct mail_server server = {
		.url = settings->mail_url,
		.user = settings->mail_user,
		.password = settings->mail_password,
		.roots = settings->mail_roots,
		.require_tls = settings->mail_require_tls,
		.timeout_ms = MAIL_CHECK_TIMEOUT_MS,
		.guard = &guard,
	};
	struct error error = {0};
	if (!*settings->mail_url)
		return;
	probe_begin(trial, "mail", "mail.url");
	int result =
		network_list_parse(slice_of(settings->mail_allow_networks), &guard.allowed, &error);
	if (!result)
		result = mail_check_server(&server, settings->mail_from, &error);
	if (result)
		probe_fail_mail(trial, result, &error);
	else
		probe_end(trial, false, "%s: connected%s%s; nothing was sent", settings->mail_url,
		          settings->mail_require_tls ? ", encrypted" : "",
		          *settings->mail_user ? ", logged in" : "");
}

static void try_payments(struct trial *trial)
{
	const struct settings *settings = trial->settings;
	struct payment_provider *provider = NULL;
	struct error error = {0};
	int result = service_open_payments(settings, &provider, &error);
	const char *address = result ? "" : payment_provider_address(provider);
	if (address) { /* else there is no service to ask */
		probe_begin(trial, "payments", "payment.provider");
		int answered = result ? result : payment_provider_ask(provider, &error);
		if (result)
			probe_fail(trial, result, &error);
		else if (answered)
			probe_fail_payments(trial, provider, answered, &error);
		else
			probe_end(trial, false, "%s at %s accepts the key", settings->payment_provider,
			          address);
	}
	payment_provider_close(provider);
}

/* ---- this machine ---- */

static void try_clock(struct trial *trial)
{
	struct clock_state clock = clock_state_read();
	probe_begin(trial, "clock", "seal.strict_clock");
	probe_end(trial, !clock.synchronized && trial->settings->seal_strict_clock,
	          "%s, maximum error %lld ms according to the kernel%s",
	          clock.synchronized ? "synchronized" : "not synchronized",
	          (long long)clock.max_error_us / 1000,
	          clock.synchronized ? "" : "; run chrony, ntpd or systemd-timesyncd");
}

void probe_connections(const struct settings *settings, const struct node_keys *keys, bool running,
                       const struct connection_probe_listener *listener)
{
	struct trial trial = {.settings = settings, .keys = keys, .listener = listener};
	if (db_url_path(settings->store_url))
		try_embedded(&trial, running);
	else
		try_server(&trial);
	try_content(&trial);
	probe_authorities(&trial);
	probe_webhook_roots(&trial);
	try_mail(&trial);
	try_payments(&trial);
	probe_renderer(&trial);
	try_clock(&trial);
}
