/* The settings of a running service. The command line fills them in (src/cli/config.h); all other
 * code only reads them. settings.def is the table of names, types, defaults and help texts. */
#ifndef SERVICE_SETTINGS_H
#define SERVICE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/setting.h"
#include "content/content.h"
#include "db/db.h"
#include "payment/payment.h"
#include "seal/authority_settings.h"
#include "tlog/note.h"

/* Members are named after section and key: settings->service_prefix, settings->rate_live,
 * settings->seal_interval (microseconds). Paths with an empty default are filled in. */
struct settings {
#define SETTING(section, key, type, default_text, comment) SETTING_FIELD_##type section##_##key;
#include "service/settings.def"
};

/* The settings of a component with drivers, which only that component and the driver name. */
#define DRIVER(name)
#define RELOADS(section, key)
#define SETTING(section, key, type, default_text, comment) .key = settings->section##_##key,
static inline struct payment_settings settings_payment(const struct settings *settings)
{
	return (struct payment_settings){
#include "payment/payment_settings.def"
	};
}

/* Uploads to a remote store are spooled in the data directory, in unnamed files. */
static inline struct content_options settings_content(const struct settings *settings, bool create)
{
	return (struct content_options){
		.create = create,
		.spool_directory = settings->service_data_dir,
#include "content/content_settings.def"
	};
}

static inline struct authority_settings settings_authorities(const struct settings *settings)
{
	return (struct authority_settings){
#include "seal/authority_settings.def"
	};
}
#undef DRIVER
#undef RELOADS
#undef SETTING

/* Returns the directory of a content store on this machine, otherwise NULL. */
static inline const char *settings_content_directory(const struct settings *settings)
{
	return content_url_directory(settings->content_url);
}

/* Gets the origin of the log: log.origin, or service.public_url without its scheme, and "/log". */
static inline void log_origin(const struct settings *settings, char origin[NOTE_NAME_MAX + 1])
{
	const char *url = settings->service_public_url, *scheme_end = strstr(url, "://");
	size_t size = strlen(url);
	while (size > 0 && url[size - 1] == '/')
		size--;
	if (scheme_end)
		size -= (size_t)(scheme_end + 3 - url);
	if (*settings->log_origin)
		snprintf(origin, NOTE_NAME_MAX + 1, "%s", settings->log_origin);
	else
		snprintf(origin, NOTE_NAME_MAX + 1, "%.*s/log", (int)size,
		         scheme_end ? scheme_end + 3 : url);
}

/* Gets the time until which a receipt promises a sealed segment: seal.promise, or more, because an
 * event may just have missed a round, and the next one may wait for an authority. */
static inline int64_t settings_promise_us(const struct settings *settings)
{
	int64_t least_us = 2 * settings->seal_interval;
	return settings->seal_promise > least_us ? settings->seal_promise : least_us;
}

static inline struct db_options settings_store(const struct settings *settings, bool create)
{
	return (struct db_options){
		.url = settings->store_url,
		.create = create,
		.require_replicas = (unsigned)settings->store_require_replicas,
		.commit_timeout_us = settings->store_commit_timeout,
		.sharded = settings->store_sharded,
	};
}

#endif
