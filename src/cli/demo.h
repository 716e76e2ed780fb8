/* The demo account of `constancia dev`: a channel of each modality with a live and a test key, and
 * a user who owns the account.
 *
 * The keys are saved in demo-keys.json (mode 0600) in the data directory, since the store holds
 * only their digests. Existing objects are used; missing ones are created. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "admin/admin.h"

#define DEMO_USER "demo@example.org"
#define DEMO_CHANNELS 2 /* by enum modality */

struct demo {
	char account_id[ID_SIZE];
	struct {
		char channel_id[ID_SIZE];
		char keys[2][KEY_TEXT_MAX]; /* by enum mode */
	} channels[DEMO_CHANNELS];
};

int demo_prepare(struct admin *admin, struct demo *ret_demo, struct error *error) MUST_CHECK;
/* Appends to `url` a link that opens the account's console in a browser, once. */
int demo_link(struct admin *admin, struct buf *url, struct error *error) MUST_CHECK;
/* Writes the members "account_id" and "channels" of the ready file and of demo-keys.json. */
void demo_members(const struct demo *demo, struct json_writer *writer);

#endif
