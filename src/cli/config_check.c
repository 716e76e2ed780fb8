/* Checks of the settings' values beyond their type. Those of authorities and keys are in
 * config_check_trust.c. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/schedule.h"
#include "cli/config_check.h"
#include "http/request_log.h"
#include "http/server.h"
#include "ledger/ledger.h"
#include "net/http.h"
#include "net/mail.h"
#include "net/origin.h"
#include "seal/level.h"
#include "service/service.h"
#include "service/webhook.h"

#define DRAIN_DELAY_MAX_US (8 * US_PER_SECOND) /* a stop may take half a minute in all */

static void check_schedule(const struct check *check, const char *setting, const char *schedule)
{
	struct schedule waits;
	if (!schedule_parse(schedule, &waits) || !waits.count)
		fault(check, setting, "must be a list of 1 to 20 durations such as 1m,5m,30m");
}

/* ---- addresses and places ---- */

/* Returns whether the text is a contact of RFC 9116 section 2.5.3 without characters that could end
 * its line. */
static bool is_contact(struct slice text)
{
	if (!starts_with(text, "mailto:") && !starts_with(text, "https://") &&
	    !starts_with(text, "tel:"))
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	return text.data[text.size - 1] != ':' && text.data[text.size - 1] != '/';
}

static void check_contacts(const struct check *check, const char *setting, const char *list)
{
	bool good = true;
	for (const char *at = list; good && *at;) {
		size_t size = strcspn(at, ",");
		good = is_contact(slice_make(at, size)) && (!at[size] || at[size + 1]);
		at += size + (at[size] == ',');
	}
	if (!good)
		fault(check, setting,
		      "must be a list of addresses such as "
		      "mailto:security@example.org,https://example.org/report");
}

/* Returns whether the URL leads to this machine alone. */
static bool is_local(struct slice url)
{
	return starts_with(url, "http://127.") || starts_with(url, "http://localhost") ||
	       starts_with(url, "http://[::1]");
}

static void check_public_url(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	struct slice url = slice_of(settings->service_public_url);
	struct error error = {0};
	if (!(starts_with(url, "http://") || starts_with(url, "https://")) ||
	    url.data[url.size - 1] == '/' || strpbrk(url.data, " ?#\"<>"))
		fault(check, "service.public_url",
		      "must be a URL such as https://register.example.org, without a slash at "
		      "the end");
	else if (url.size > 3 && strcmp(url.data + url.size - 3, "/v1") == 0)
		fault(check, "service.public_url", "must not end with /v1");
	else if (http_url_check(url, true, "service.public_url", &error))
		fault(check, "service.public_url",
		      "must have a host in ASCII (xn--… for other letters) and a valid port, and neither "
		      "user nor password");
	else if (*settings->service_tls_certificate && starts_with(url, "http://"))
		setting_warn(&check->report, "service.public_url",
		             "should begin with https:// because the public interface uses TLS");
	else if (serving && starts_with(url, "http://") && !is_local(url))
		setting_warn(&check->report, "service.public_url",
		             "should begin with https://, because clients send their keys to this address");
}

/* Warns of proxies that are trusted at every address. */
static void check_proxies(const struct check *check)
{
	const char *list = check->settings->service_trusted_proxies;
	check_networks(check, "service.trusted_proxies", list);
	for (const char *at = strstr(list, "/0"); at; at = strstr(at + 1, "/0"))
		if (!at[2] || strchr(", ", at[2])) {
			setting_warn(&check->report, "service.trusted_proxies",
			             "contains every address, so that clients choose the address whose "
			             "limits apply to them");
			return;
		}
}

static void check_origins(const struct check *check)
{
	struct slice wrong;
	char what[512];
	if (origin_list_is_valid(check->settings->http_cors_origins, &wrong))
		return;
	snprintf(
		what, sizeof what,
		"must be a list of origins such as https://app.example.org,http://localhost:5173: "
		"'%.*s' is none; an origin is a scheme, a host in lower case and a port other than the "
		"default, without a path, a slash at the end or a wildcard",
		(int)(wrong.size < 100 ? wrong.size : 100), wrong.data);
	fault(check, "http.cors_origins", what);
}

static void check_service(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	size_t size = strlen(settings->service_prefix);
	if (size < 2 || size > 10 ||
	    strspn(settings->service_prefix, "abcdefghijklmnopqrstuvwxyz0123456789") != size)
		fault(check, "service.prefix", "must have 2 to 10 lower-case letters or digits");
	check_public_url(check, serving);
	if (http_listen_port(settings->service_listen) < 0)
		fault(check, "service.listen",
		      "must be address:port, such as 127.0.0.1:8080 or [::1]:8080");
	if (*settings->service_admin_listen && http_listen_port(settings->service_admin_listen) < 0)
		fault(check, "service.admin_listen",
		      "must be empty or address:port, such as 127.0.0.1:8081");
	if (serving &&
	    http_listeners_conflict(settings->service_listen, settings->service_admin_listen))
		fault(check, "service.admin_listen", "must be another address or port than service.listen");
	if (!*settings->service_data_dir)
		fault(check, "service.data_dir", "must name a directory");
	if (!*settings->service_name || strlen(settings->service_name) > 100)
		fault(check, "service.name", "must have 1 to 100 bytes");
	check_contacts(check, "service.security_contact", settings->service_security_contact);
	check_proxies(check);
	if (serving)
		http_check_tls(settings, check->report.problem, check->report.warning,
		               check->report.context);
	check_origins(check);
	if (settings->http_drain_delay > DRAIN_DELAY_MAX_US)
		fault(check, "http.drain_delay", "must be at most 8s");
}

/* Paths that do not exist are compared as they are written. */
static bool is_inside(const char *path, const char *directory)
{
	char one[PATH_MAX], other[PATH_MAX];
	path = realpath(path, one) ?: path;
	directory = realpath(directory, other) ?: directory;
	size_t size = strlen(directory);
	return strncmp(path, directory, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

/* A recovery moves the data directory away, and a sweep lists the content store. */
static void check_backups(const struct check *check)
{
	const struct settings *settings = check->settings;
	const char *backups = settings->backup_directory;
	const char *content = settings->content_url;
	if (*backups && *backups != '/')
		fault(check, "backup.directory", "must be an absolute path");
	else if (*backups && is_inside(backups, settings->service_data_dir))
		fault(check, "backup.directory", "must not be inside service.data_dir");
	else if (*backups && strncmp(content, "file:/", strlen("file:/")) == 0 &&
	         is_inside(backups, content + strlen("file:")))
		fault(check, "backup.directory", "must not be inside the directory of content.url");
}

static void check_stores(const struct check *check)
{
	struct db_options options = settings_store(check->settings, false);
	db_check_settings(&options, &check->report);
	check_backups(check);
}

static void check_content(const struct check *check)
{
	const struct settings *settings = check->settings;
	struct content_options options = settings_content(settings, false);
	content_check_settings(&options, &check->report);
	if (settings->content_presigned_links &&
	    settings->certification_link_lifetime > CONTENT_LINK_LIFETIME_MAX_US)
		fault(check, "certification.link_lifetime",
		      "must be at most 7d with content.presigned_links");
}

/* ---- numbers ---- */

static void check_numbers(const struct check *check)
{
	const struct settings *settings = check->settings;
	check_range(check, "http.loops", settings->http_loops, 0, 8);
	check_range(check, "http.connections", settings->http_connections, 1, 1000000);
	check_range(check, "http.connections_per_address", settings->http_connections_per_address, 1,
	            1000000);
	check_range(check, "http.tls_handshakes", settings->http_tls_handshakes, 1, 100000);
	check_range(check, "rate.live", settings->rate_live, 1, 1000000000);
	check_range(check, "rate.test", settings->rate_test, 1, 1000000000);
	check_range(check, "rate.account", settings->rate_account, 0, 1000000000);
	check_range(check, "rate.batch", settings->rate_batch, 1, 1000);
	check_range(check, "rate.wrong_codes", settings->rate_wrong_codes, 0, 1000000);
	check_range(check, "requests.per_day", settings->requests_per_day, 0, 1000000);
	check_range(check, "certification.per_day", settings->certification_per_day, 0, 1000000000);
	check_range(check, "account.channels", settings->account_channels, 0, 1000000000);
	check_range(check, "account.acts_per_day", settings->account_acts_per_day, 0, 1000000000);
	check_range(check, "account.keys", settings->account_keys, 0, 1000000000);
	check_range(check, "backup.keep", settings->backup_keep, 1, 10000);
	check_range(check, "backup.full_every", settings->backup_full_every, 1, 366);
	check_range(check, "store.disk_warn", settings->store_disk_warn, 0, 90);
	check_range(check, "certification.disk_reserve", settings->certification_disk_reserve, 0, 90);
	check_range(check, "certification.open_per_account", settings->certification_open_per_account,
	            0, 1000000000);
	enum level level;
	if (*settings->certification_level && !level_parse(settings->certification_level, &level))
		fault(check, "certification.level", "must be empty, B, T, LT or LTA");
	check_range(check, "certification.fee", settings->certification_fee, 0, 1000000000);
	check_range(check, "account.unpaid_limit", settings->account_unpaid_limit, 0, 1000000000);
	check_range(check, "account.stored_bytes", settings->account_stored_bytes, 0,
	            LEDGER_BALANCE_MAX);
	check_range(check, "http.body_memory", settings->http_body_memory, 1, 1000000);
	check_range(check, "http.upload_space", settings->http_upload_space, 10, 1000000000);
	check_range(check, "http.check_size", settings->http_check_size, 0, 64);
	check_duration(check, "http.idle_timeout", settings->http_idle_timeout, 1000000, "1s");
	check_duration(check, "http.transfer_timeout", settings->http_transfer_timeout, 1000000, "1s");
	check_duration(check, "http.deadline", settings->http_deadline, 100000, "100ms");
	check_duration(check, "evidence.interval", settings->evidence_interval, 50000, "50ms");
	check_duration(check, "evidence.renew_before", settings->evidence_renew_before, US_PER_SECOND,
	               "1s");
	if (strcmp(settings->evidence_digest, "sha-256") != 0 &&
	    strcmp(settings->evidence_digest, "sha-512") != 0)
		fault(check, "evidence.digest", "must be sha-256 or sha-512");
	check_duration(check, "seal.interval", settings->seal_interval, 50000, "50ms");
	check_duration(check, "seal.clock_bound", settings->seal_clock_bound, 100000, "100ms");
	check_duration(check, "certification.link_lifetime", settings->certification_link_lifetime,
	               1000000, "1s");
	check_duration(check, "webhook.timeout", settings->webhook_timeout, 100000, "100ms");
	if (settings->webhook_timeout > 60 * US_PER_SECOND)
		fault(check, "webhook.timeout", "must be at most 60s");
	check_duration(check, "webhook.keep", settings->webhook_keep, 1000000, "1s");
	check_duration(check, "certification.give_up_after", settings->certification_give_up_after,
	               1000000, "1s");
}

static void check_receipts(const struct check *check)
{
	check_duration(check, "seal.promise", check->settings->seal_promise, 1000000, "1s");
}

/* ---- payments and mail ---- */

static void check_payment(const struct check *check)
{
	struct payment_settings settings = settings_payment(check->settings);
	payment_check_settings(&settings, &check->report);
}

static void check_mail(const struct check *check, bool serving)
{
	const struct settings *settings = check->settings;
	check_networks(check, "mail.allow_networks", settings->mail_allow_networks);
	check_schedule(check, "mail.schedule", settings->mail_schedule);
	if (!*settings->mail_url)
		return;
	if (mail_url_check(settings->mail_url))
		fault(check, "mail.url", "must be smtp://HOST:PORT or smtps://HOST, without user or path");
	if (!mail_address_usable(settings->mail_from))
		fault(check, "mail.from", "must be an address such as notices@example.org");
	if (serving)
		(void)setting_check_readable(&check->report, "mail.roots", settings->mail_roots);
	if (serving && *settings->mail_user && !*settings->mail_password)
		fault(check, "mail.password",
		      "must be set too: mail.user and mail.password belong together");
}

static void check_log(const struct check *check)
{
	const struct settings *settings = check->settings;
	const char *level = settings->log_level;
	enum request_log_which which;
	enum request_log_addresses addresses;
	if (strcmp(level, "debug") != 0 && strcmp(level, "info") != 0 &&
	    strcmp(level, "warning") != 0 && strcmp(level, "error") != 0)
		fault(check, "log.level", "must be debug, info, warning or error");
	if (!request_log_which_parse(settings->log_requests, &which))
		fault(check, "log.requests", "must be none, errors or all");
	if (!request_log_addresses_parse(settings->log_addresses, &addresses))
		fault(check, "log.addresses", "must be none, network or full");
}

void config_check(const struct settings *settings, bool serving, setting_report *problem,
                  setting_report *warning, void *context)
{
	struct check check = {settings, {problem, warning, context, serving}};
	check_service(&check, serving);
	check_stores(&check);
	check_content(&check);
	check_numbers(&check);
	check_receipts(&check);
	check_authorities(&check);
	check_signer(&check, serving);
	check_networks(&check, "webhook.allow_networks", settings->webhook_allow_networks);
	check_schedule(&check, "webhook.schedule", settings->webhook_schedule);
	if (serving)
		(void)setting_check_readable(&check.report, "webhook.roots", settings->webhook_roots);
	check_payment(&check);
	check_mail(&check, serving);
	check_log(&check);
	check_log_publication(&check, serving);
}
