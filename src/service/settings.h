/* The settings of a running service. The command line fills them in (src/cli/config.h); all other
 * code only reads them. settings.def is the table of names, types, defaults and help texts. */
#ifndef SERVICE_SETTINGS_H
#define SERVICE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "content/content.h"
#include "db/db.h"

#define SETTING_FIELD_TEXT const char *
#define SETTING_FIELD_SECRET const char *
#define SETTING_FIELD_LIST const char *
#define SETTING_FIELD_INTEGER int64_t
#define SETTING_FIELD_DURATION int64_t
#define SETTING_FIELD_BOOLEAN bool

/* Members are named after section and key: settings->service_prefix, settings->rate_live,
 * settings->seal_interval (microseconds). Paths with an empty default are filled in. */
struct settings {
#define SETTING(section, key, type, default_text, comment) SETTING_FIELD_##type section##_##key;
#include "service/settings.def"
#undef SETTING
};

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

/* Uploads to a remote store are spooled in the data directory, in unnamed files. */
static inline struct content_options settings_content(const struct settings *settings, bool create)
{
	return (struct content_options){
		.url = settings->content_url,
		.create = create,
		.spool_directory = settings->service_data_dir,
		.access_key = settings->content_access_key,
		.secret_key = settings->content_secret_key,
		.allow_networks = settings->content_allow_networks,
		.timeout_ms = (int)(settings->content_timeout / 1000),
	};
}

#endif
