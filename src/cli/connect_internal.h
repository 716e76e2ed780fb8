/* What the files of `config check --connect` share. */
#ifndef CLI_CONNECT_INTERNAL_H
#define CLI_CONNECT_INTERNAL_H

#include "cli/connect.h"
#include "store/store.h"

struct trial {
	const struct settings *settings;
	const struct node_keys *keys;
	const struct connect_listener *listener;
	const char *what, *setting;
	int64_t began_us;
	char installation[INSTALLATION_SIZE]; /* the store's; empty: it has none yet */
	bool store_known;                     /* whose the content has to be is known */
};

void trial_begin(struct trial *trial, const char *what, const char *setting);
/* What answered; `failed`: what is wrong with it, which is then a problem of the setting. */
void trial_end(struct trial *trial, bool failed, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void trial_fail(struct trial *trial, int result, const struct error *error);

/* Where tables are distributed: the coordinator, and each worker. */
void try_servers(struct trial *trial, struct db *db, bool has_schema);
/* Each authority, and what says whether its certificates were revoked. */
void try_authorities(struct trial *trial);
/* The roots that receivers of notices are verified by, where they are given. */
void try_webhooks(struct trial *trial);
/* Draws a report, in several scripts. */
void try_reports(struct trial *trial);

#endif
