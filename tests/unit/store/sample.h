/* An account with a channel in a store of its own, for tests. Asserts by cmocka. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "store/accounts/accounts.h"
#include "store/store.h"

struct sample {
	char directory[64];
	char url[128];
	struct store *store;
	char account_id[ID_SIZE];
	char channel_id[ID_SIZE];
	int64_t account;
	int64_t channel;
	int64_t live_chain;
	int64_t test_chain;
	int64_t now_us; /* of the last batch; moves on with each */
	int64_t references;
};

/* A fresh directory below /tmp, a store in it, an account with `credits`, a channel. */
void sample_open(struct sample *sample, enum modality modality, int64_t credits);
/* The same in pieces, for a store that somebody else opens and closes. */
void sample_make_directory(struct sample *sample);
void sample_fill(struct sample *sample, struct store *store, enum modality modality,
                 int64_t credits);
void sample_remove_directory(struct sample *sample);
/* Another channel of the account becomes the sample's channel. */
void sample_add_channel(struct sample *sample, enum modality modality);
/* Registers `count` events; of modality content they have small inline JSON. */
void sample_register(struct sample *sample, enum mode mode, int64_t count);
void sample_close(struct sample *sample);

#endif
