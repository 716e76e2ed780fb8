/* The demo account of `constancia dev`: one channel of each modality with a live and a test key,
 * and a user who owns it.
 *
 * The keys stand in demo-keys.json (mode 0600) in the data directory, since the store keeps only
 * their digests. What is there is taken up again; what is missing is made. */
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
/* A link with which a browser opens the account's console, once, appended to `url`. */
int demo_link(struct admin *admin, struct buf *url, struct error *error) MUST_CHECK;
/* "account_id" and "channels", as the ready file and demo-keys.json have them. */
void demo_members(const struct demo *demo, struct json_writer *writer);

#endif
