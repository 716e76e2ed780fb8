/* Shared by the files of `config check --connect`. */
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
	char installation[INSTALLATION_SIZE]; /* installation of the store; empty: none yet */
	bool store_known;                     /* the store answered, so that `installation` is valid */
};

void trial_begin(struct trial *trial, const char *what, const char *setting);
/* Reports the result of a check. `failed`: the text is a problem of the setting. */
void trial_end(struct trial *trial, bool failed, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void trial_fail(struct trial *trial, int result, const struct error *error);

/* Checks each timestamp authority and the revocation data of its certificates. */
void try_authorities(struct trial *trial);
/* Checks the file of trusted roots for webhook receivers, if configured. */
void try_webhooks(struct trial *trial);
/* Renders a sample report in several scripts. */
void try_reports(struct trial *trial);

#endif
