/* SIGHUP: replaces the settings atomically (epoch-based reclamation). Threads read them through
 * pointers; replaced objects are freed once no thread that may have read the old pointers is still
 * active. */
#include <stdlib.h>
#include <string.h>

#include "base/epoch.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/url_mask.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/node_internal.h"
#include "cli/node_parts.h"
#include "cli/settings_table.h"

#define NAMES_MAX ((size_t)8192)
#define VALUES_MAX ((size_t)64 * 1024)
/* Of a rejected reload in the audit log; the log has all of them. */
#define PROBLEMS_MAX 20
#define PROBLEM_SIZE 512
#define PROBLEMS_SIZE_MAX ((size_t)64 * 1024)
#define ARGUMENTS_MAX ((size_t)96 * 1024)
/* Blocked requests keep all replaced settings, about 100 KiB each. */
#define FORMER_MAX 64

/* What is reported of a reload. In the log, names of changed settings and their values, "rate.live
 * = 50; …"; in the audit log the names and the problems. */
struct report {
	struct buf changed, before, after, needs_restart;
	struct buf problems; /* objects of a JSON array */
	unsigned problem_count;
};

struct reloaded {
	struct reloaded *former;
	struct report *report; /* while it is loaded */
	uint64_t number;       /* epoch of the replacement (epoch_advance) */
	struct config config;  /* as loaded; owns the texts */
	struct settings
		settings; /* in force: the new values of reloadable settings, the old values of others */
	struct authorities *authorities;
	struct revocation_client *revocation;
	struct payment_provider *payments; /* NULL while in force: the service owns it */
};

void reloaded_settings_free(struct reloaded *reloaded)
{
	while (reloaded) {
		struct reloaded *former = reloaded->former;
		authorities_free(reloaded->authorities);
		revocation_client_free(reloaded->revocation);
		payment_provider_close(reloaded->payments);
		config_free(&reloaded->config);
		free(reloaded);
		reloaded = former;
	}
}

static void report_init(struct report *report)
{
	*report = (struct report){0};
	buf_init(&report->changed, NAMES_MAX);
	buf_init(&report->before, VALUES_MAX);
	buf_init(&report->after, VALUES_MAX);
	buf_init(&report->needs_restart, NAMES_MAX);
	buf_init(&report->problems, PROBLEMS_SIZE_MAX);
}

static void report_free(struct report *report)
{
	buf_free(&report->changed);
	buf_free(&report->before);
	buf_free(&report->after);
	buf_free(&report->needs_restart);
	buf_free(&report->problems);
}

/* A file may contain any bytes. */
static void write_shown(struct json_writer *out, const char *name, const char *text)
{
	char shown[PROBLEM_SIZE];
	if (!text)
		return;
	utf8_show(slice_of(text), shown, sizeof shown);
	json_text(out, name, shown);
}

static void report_problem(struct report *report, const char *setting, const char *origin,
                           const char *what)
{
	log_error("configuration_rejected", "setting", setting, "origin", origin, "problem", what);
	if (report->problem_count++ >= PROBLEMS_MAX)
		return;
	struct json_writer out = {.out = &report->problems, .comma = report->problems.size > 0};
	json_begin_object(&out, NULL);
	write_shown(&out, "origin", origin);
	write_shown(&out, "problem", what);
	write_shown(&out, "setting", setting);
	json_end_object(&out);
}

static void refuse(void *context, const char *setting, const char *what)
{
	struct reloaded *reloaded = context;
	const struct setting *found = setting ? setting_find_by_name(setting) : NULL;
	const char *origin = found ? reloaded->config.origins[found - settings_table] : NULL;
	report_problem(reloaded->report, setting, origin, what);
}

static void ignore_warning(void *context, const char *setting, const char *what)
{
	(void)context, (void)setting, (void)what;
}

static void add_name(struct buf *names, const char *name)
{
	buf_printf(names, "%s%s", names->size ? " " : "", name);
}

/* Appends the unparsed value. Masks secrets and possible credentials in URLs. */
static void add_value(struct buf *values, const struct setting *setting, const char *name,
                      const char *text)
{
	buf_printf(values, "%s%s = ", values->size ? "; " : "", name);
	if (setting_is_secret(setting))
		buf_add_text(values, *text ? "********" : "");
	else if (strstr(text, "://"))
		url_mask(slice_of(text), values);
	else
		buf_add_text(values, text);
}

/* Computes the settings that come into force, and the difference. `texts`: the unparsed values in
 * force. */
static void merge(struct reloaded *reloaded, const struct settings *in_force,
                  const char *const *texts, struct report *ret)
{
	reloaded->settings = *in_force;
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		const struct setting *setting = &settings_table[i];
		bool reloads = setting_is_reloadable(setting);
		bool differs = setting_differs(setting, in_force, &reloaded->config.settings);
		/* Copied even if equal: the old text is freed. */
		if (reloads)
			setting_copy(setting, &reloaded->settings, &reloaded->config.settings);
		if (!differs)
			continue;
		char name[SETTING_NAME_SIZE];
		setting_name(setting, name);
		add_name(reloads ? &ret->changed : &ret->needs_restart, name);
		if (!reloads)
			continue;
		add_value(&ret->before, setting, name, texts[i]);
		add_value(&ret->after, setting, name, reloaded->config.texts[i]);
	}
}

/* Creates the components. Files are read again even if their names did not change. */
static bool create_components(struct node *node, struct reloaded *reloaded)
{
	const struct settings *settings = &reloaded->settings;
	struct error error = {0};
	int result = node_create_authorities(settings, node->signer, &reloaded->authorities, &error);
	struct authority_settings authorities = settings_authorities(settings);
	if (result)
		refuse(reloaded, authority_setting_at_fault(&authorities), error_reason(&error, result));
	error_clear(&error);
	result = node_create_revocation_client(settings, node->signer, &reloaded->revocation, &error);
	if (result)
		refuse(reloaded, "revocation.allow_networks", error_reason(&error, result));
	error_clear(&error);
	result = service_open_payments(settings, &reloaded->payments, &error);
	if (result)
		refuse(reloaded, "payment.provider", error_reason(&error, result));
	error_clear(&error);
	/* Last, because a successful call applies the settings in the HTTP server. */
	const char *setting = NULL;
	result =
		reloaded->report->problem_count ? OK : http_reload(node->http, settings, &setting, &error);
	if (result)
		refuse(reloaded, setting, error_reason(&error, result));
	return reloaded->report->problem_count == 0;
}

/* Publishes the new settings. A thread may see some old and some new pointers for a moment; each
 * object is complete. */
static void publish(struct node *node, struct reloaded *reloaded)
{
	struct service *service = &node->service;
	struct reloaded *former = node->in_force;
	authorities_inherit(reloaded->authorities, service->authorities);
	former->payments = service->payments;
	service->payments = reloaded->payments; /* which frees it */
	reloaded->payments = NULL;
	node->settings = &reloaded->settings;
	service->settings = &reloaded->settings;
	node->admin.settings = &reloaded->settings;
	service->authorities = reloaded->authorities;
	service->revocation = reloaded->revocation;
	atomic_fetch_add(&service->reloads, 1);
	former->number = epoch_advance();
	former->former = node->former;
	node->former = former;
	node->in_force = reloaded;
}

/* Makes the objects that the start created the first to be replaced. */
static bool adopt_initial(struct node *node)
{
	struct reloaded *first = calloc(1, sizeof *first);
	if (!first)
		return false;
	first->authorities = node->authorities;
	first->revocation = node->revocation;
	node->authorities = NULL;
	node->revocation = NULL;
	node->in_force = first;
	return true;
}

static size_t count_former(const struct node *node)
{
	size_t count = 0;
	for (const struct reloaded *at = node->former; at; at = at->former)
		count++;
	return count;
}

void node_free_replaced(struct node *node)
{
	struct reloaded **at = &node->former;
	while (*at) {
		struct reloaded *one = *at;
		if (!epoch_is_over(one->number)) {
			at = &one->former;
			continue;
		}
		*at = one->former;
		one->former = NULL;
		reloaded_settings_free(one);
	}
}

static bool load_settings(const struct config_sources *sources, struct reloaded *reloaded)
{
	int result = config_load(sources, &reloaded->config);
	const struct config_finding *at = reloaded->config.findings;
	for (; at; at = at->next)
		if (!at->warning)
			report_problem(reloaded->report, at->setting, at->origin, at->what);
	if (result && !reloaded->report->problem_count)
		refuse(reloaded, NULL, error_general_message(result, LANGUAGE_ENGLISH));
	return reloaded->report->problem_count == 0;
}

/* Returns the unparsed values in force: those of the start until a reload has replaced them. */
static const char *const *texts_in_force(const struct node *node)
{
	const struct config *last = &node->in_force->config;
	return last->texts ? last->texts : node->config->texts;
}

static void log_report(const struct report *report)
{
	const struct buf *texts[] = {&report->changed, &report->before, &report->after,
	                             &report->needs_restart};
	const char *shown[4];
	for (int i = 0; i < 4; i++)
		shown[i] = texts[i]->data ? texts[i]->data : "";
	log_always(LOG_INFO, "configuration_reloaded", "changed", shown[0], "before", shown[1], "after",
	           shown[2], "needs_restart", shown[3], NULL);
}

/* Returns false on an error; nothing has changed then. */
static bool reload(struct node *node, const struct config_sources *sources, struct report *ret)
{
	struct reloaded *reloaded = calloc(1, sizeof *reloaded);
	node_free_replaced(node);
	if (count_former(node) >= FORMER_MAX) {
		report_problem(ret, NULL, NULL,
		               "requests blocked since earlier reloads still use replaced settings; see "
		               "/readyz for components that do not respond; a restart also loads the "
		               "settings");
		free(reloaded);
		return false;
	}
	if (!reloaded || (!node->in_force && !adopt_initial(node))) {
		free(reloaded);
		report_problem(ret, NULL, NULL, "out of memory");
		return false;
	}
	reloaded->report = ret;
	bool good = load_settings(sources, reloaded);
	if (good) {
		merge(reloaded, node->settings, texts_in_force(node), ret);
		/* The new values may be invalid in combination with those that need a restart. */
		config_check(&reloaded->settings, true, refuse, ignore_warning, reloaded);
		good = reloaded->report->problem_count == 0 && create_components(node, reloaded);
	}
	if (!good) {
		reloaded_settings_free(reloaded);
		return false;
	}
	reloaded->report = NULL;
	publish(node, reloaded);
	atomic_store(&node->service.trust_is_old, true); /* for a thread that may block on the store */
	command_apply_log_level(&reloaded->settings);
	log_report(ret);
	return true;
}

static void write_names(struct json_writer *out, const char *name, const struct buf *names)
{
	json_begin_array(out, name);
	for (const char *at = names->data; at && *at;) {
		size_t size = strcspn(at, " ");
		json_slice(out, NULL, slice_make(at, size));
		at += size + (at[size] == ' ');
	}
	json_end_array(out);
}

/* The audit log is permanent and may be exported, so it has names alone, and no values. */
static void record(struct node *node, const siginfo_t *signal, bool applied,
                   const struct report *report)
{
	BUF_AUTO struct buf arguments;
	buf_init(&arguments, ARGUMENTS_MAX);
	struct json_writer out = {.out = &arguments};
	json_begin_object(&out, NULL);
	json_boolean(&out, "applied", applied);
	if (applied) {
		write_names(&out, "changed", &report->changed);
		write_names(&out, "needs_restart", &report->needs_restart);
	} else {
		json_begin_array(&out, "problems");
		buf_add_slice(&arguments, buf_slice(&report->problems));
		json_end_array(&out);
		if (report->problem_count > PROBLEMS_MAX)
			json_integer(&out, "problems_omitted", report->problem_count - PROBLEMS_MAX);
	}
	json_end_object(&out);
	if (buf_check(&arguments) || buf_check(&report->problems))
		log_error("audit_record_not_written", "operation", "config reload", "made", "", "cause",
		          "out of memory");
	else
		reload_audit_add(node->reload_audit, signal, buf_slice(&arguments));
}

void node_reload(struct node *node, const struct config_sources *sources, const siginfo_t *signal)
{
	struct report report;
	report_init(&report);
	notify_reloading();
	const bool applied = reload(node, sources, &report);
	notify_ready(applied ? "serving; settings reloaded"
	                     : "serving with the previous settings: the new ones were rejected, see "
	                       "the log");
	record(node, signal, applied, &report);
	report_free(&report);
}
