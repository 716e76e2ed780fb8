/* SIGHUP: replaces the settings atomically (epoch-based reclamation). Threads read them through
 * pointers; replaced objects are freed once no thread that may have read the old pointers is still
 * active. */
#include <stdlib.h>
#include <string.h>

#include "base/epoch.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/url_mask.h"
#include "cli/command.h"
#include "cli/node_internal.h"
#include "cli/node_parts.h"
#include "cli/settings_table.h"

#define NAMES_MAX ((size_t)8192)
#define VALUES_MAX ((size_t)64 * 1024)
/* Blocked requests keep all replaced settings, about 100 KiB each. */
#define FORMER_MAX 64

struct reloaded {
	struct reloaded *former;
	uint64_t number;      /* epoch of the replacement (epoch_advance) */
	struct config config; /* as loaded; owns the texts */
	struct settings
		settings; /* in force: the new values of reloadable settings, the old values of others */
	struct authorities *authorities;
	struct revocation_client *revocation;
	struct payment_provider *payments; /* NULL while in force: the service owns it */
	unsigned problem_count;
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

static void refuse(void *context, const char *setting, const char *what)
{
	struct reloaded *reloaded = context;
	const struct setting *found = setting ? setting_find_by_name(setting) : NULL;
	const char *origin = found ? reloaded->config.origins[found - settings_table] : NULL;
	reloaded->problem_count++;
	log_error("configuration_rejected", "setting", setting, "origin", origin, "problem", what);
}

static void ignore_warning(void *context, const char *setting, const char *what)
{
	(void)context, (void)setting, (void)what;
}

/* The result for the log: names of changed settings, and their values, "rate.live = 50; …". */
struct difference {
	struct buf changed, before, after, needs_restart;
};

static void difference_init(struct difference *difference)
{
	buf_init(&difference->changed, NAMES_MAX);
	buf_init(&difference->before, VALUES_MAX);
	buf_init(&difference->after, VALUES_MAX);
	buf_init(&difference->needs_restart, NAMES_MAX);
}

static void difference_free(struct difference *difference)
{
	buf_free(&difference->changed);
	buf_free(&difference->before);
	buf_free(&difference->after);
	buf_free(&difference->needs_restart);
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
	if (setting->type == SECRET)
		buf_add_text(values, *text ? "********" : "");
	else if (strstr(text, "://"))
		url_mask(slice_of(text), values);
	else
		buf_add_text(values, text);
}

/* Computes the settings that come into force, and the difference. `texts`: the unparsed values in
 * force. */
static void merge(struct reloaded *reloaded, const struct settings *in_force,
                  const char *const *texts, struct difference *ret)
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
	if (result)
		refuse(reloaded, "tsa.url", error_reason(&error, result));
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
	result = reloaded->problem_count ? OK : http_reload(node->http, settings, &setting, &error);
	if (result)
		refuse(reloaded, setting, error_reason(&error, result));
	return reloaded->problem_count == 0;
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
		if (!at->warning) {
			reloaded->problem_count++;
			log_error("configuration_rejected", "setting", at->setting, "origin", at->origin,
			          "problem", at->what);
		}
	if (result && !reloaded->problem_count)
		refuse(reloaded, NULL, error_general_message(result, LANGUAGE_ENGLISH));
	return reloaded->problem_count == 0;
}

/* Returns the unparsed values in force: those of the start until a reload has replaced them. */
static const char *const *texts_in_force(const struct node *node)
{
	const struct config *last = &node->in_force->config;
	return last->texts ? last->texts : node->config->texts;
}

static void log_difference(const struct difference *difference)
{
	const struct buf *texts[] = {&difference->changed, &difference->before, &difference->after,
	                             &difference->needs_restart};
	const char *shown[4];
	for (int i = 0; i < 4; i++)
		shown[i] = texts[i]->data ? texts[i]->data : "";
	log_always(LOG_INFO, "configuration_reloaded", "changed", shown[0], "before", shown[1], "after",
	           shown[2], "needs_restart", shown[3], NULL);
}

/* Returns false on an error; nothing has changed then. */
static bool reload(struct node *node, const struct config_sources *sources, struct difference *ret)
{
	struct reloaded *reloaded = calloc(1, sizeof *reloaded);
	node_free_replaced(node);
	if (count_former(node) >= FORMER_MAX) {
		log_error("configuration_rejected", "problem",
		          "requests blocked since earlier reloads still use replaced settings; see "
		          "/readyz for components that do not respond; a restart also loads the "
		          "settings");
		free(reloaded);
		return false;
	}
	if (!reloaded || (!node->in_force && !adopt_initial(node))) {
		free(reloaded);
		log_error("configuration_rejected", "problem", "out of memory");
		return false;
	}
	bool good = load_settings(sources, reloaded);
	if (good) {
		merge(reloaded, node->settings, texts_in_force(node), ret);
		/* The new values may be invalid in combination with those that need a restart. */
		config_check(&reloaded->settings, true, refuse, ignore_warning, reloaded);
		good = reloaded->problem_count == 0 && create_components(node, reloaded);
	}
	if (!good) {
		reloaded_settings_free(reloaded);
		return false;
	}
	publish(node, reloaded);
	atomic_store(&node->service.trust_is_old, true); /* for a thread that may block on the store */
	command_apply_log_level(&reloaded->settings);
	log_difference(ret);
	return true;
}

void node_reload(struct node *node, const struct config_sources *sources)
{
	struct difference difference;
	difference_init(&difference);
	notify_reloading();
	notify_ready(reload(node, sources, &difference)
	                 ? "serving; settings reloaded"
	                 : "serving with the previous settings: the new ones were rejected, see the "
	                   "log");
	difference_free(&difference);
}
