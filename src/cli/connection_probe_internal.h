/* Shared by the files of `config check --connect`. */
#ifndef CLI_CONNECTION_PROBE_INTERNAL_H
#define CLI_CONNECTION_PROBE_INTERNAL_H

#include "cli/connection_probe.h"
#include "payment/payment.h"
#include "store/store.h"

struct trial {
	const struct settings *settings;
	const struct node_keys *keys;
	const struct connection_probe_listener *listener;
	const char *what, *setting;
	int64_t began_us;
	char installation[INSTALLATION_SIZE]; /* installation of the store; empty: none yet */
	bool store_known;                     /* the store answered, so that `installation` is valid */
};

void probe_begin(struct trial *trial, const char *what, const char *setting);
/* Reports the result of a check. `failed`: the text is a problem of the setting. */
void probe_end(struct trial *trial, bool failed, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void probe_fail(struct trial *trial, int result, const struct error *error);
/* The same, with the setting at fault and what to do. */
void probe_fail_mail(struct trial *trial, int result, const struct error *error);
void probe_fail_content(struct trial *trial, int result, const struct error *error);
void probe_fail_payments(struct trial *trial, const struct payment_provider *provider, int result,
                         const struct error *error);

/* Checks each timestamp authority and the revocation data of its certificates. */
void probe_authorities(struct trial *trial);
/* Checks the file of trusted roots for webhook receivers, if configured. */
void probe_webhook_roots(struct trial *trial);
/* Renders a sample report in several scripts. */
void probe_renderer(struct trial *trial);

#endif
