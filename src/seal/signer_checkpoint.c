#include "seal/signer_checkpoint.h"

#include <stdio.h>

#include "tlog/witness_request.h"

/* Stands for an origin in the log of signatures, in the form of a store's id. */
static void name_origin(const char *origin, char name[SIGNER_STORE_ID_SIZE + 1])
{
	const struct sha256 hash = sha256_of(origin, strlen(origin));
	hex_encode(hash.bytes, SIGNER_STORE_ID_SIZE / 2, name);
}

struct checkpoint checkpoint_marks_find(const struct checkpoint_marks *marks, const char *origin)
{
	char name[SIGNER_STORE_ID_SIZE + 1];
	struct checkpoint found = {.root = merkle_empty_root()};
	name_origin(origin, name);
	const struct signer_mark mark = signer_marks_find(&marks->marks, slice_of(name));
	if (mark.round > 0) {
		found.size = (uint64_t)mark.round;
		found.root = mark.root;
	}
	snprintf(found.origin, sizeof found.origin, "%s", origin);
	return found;
}

void checkpoint_marks_set(struct checkpoint_marks *marks, const struct checkpoint *checkpoint)
{
	char name[SIGNER_STORE_ID_SIZE + 1];
	const struct signer_mark mark = {(int64_t)checkpoint->size, checkpoint->root};
	name_origin(checkpoint->origin, name);
	signer_marks_set(&marks->marks, slice_of(name), &mark);
}

int checkpoint_marks_read_entry(struct checkpoint_marks *marks,
                                const struct signer_log_entry *entry)
{
	const struct signer_mark mark = {entry->round, entry->sha256};
	if (slice_is(entry->purpose, SIGNER_CHECKPOINT_PURPOSE) && signer_store_id_valid(entry->store))
		signer_marks_set(&marks->marks, entry->store, &mark);
	return OK;
}

struct signer_log_entry checkpoint_entry(const struct checkpoint *checkpoint,
                                         char store[SIGNER_STORE_ID_SIZE + 1])
{
	name_origin(checkpoint->origin, store);
	return (struct signer_log_entry){.purpose = slice_of(SIGNER_CHECKPOINT_PURPOSE),
	                                 .sha256 = checkpoint->root,
	                                 .store = slice_of(store),
	                                 .round = (int64_t)checkpoint->size};
}

const char *checkpoint_check(const struct checkpoint_marks *marks, struct slice request,
                             struct slice *ret_text, struct checkpoint *ret_checkpoint)
{
	struct witness_request parsed;
	if (witness_request_parse(request, &parsed, NULL))
		return "not a request for a checkpoint";
	if (checkpoint_parse(parsed.checkpoint, ret_checkpoint, NULL))
		return "not a checkpoint";
	/* What is signed must be the three lines alone, since nothing vouches for further ones. */
	BUF_AUTO struct buf plain;
	buf_init(&plain, NOTE_SIZE_MAX);
	checkpoint_write(ret_checkpoint, &plain);
	if (buf_check(&plain) || !slice_equal(buf_slice(&plain), parsed.checkpoint))
		return "a checkpoint must have three lines";
	const struct checkpoint known = checkpoint_marks_find(marks, ret_checkpoint->origin);
	switch (witness_decide(&parsed, ret_checkpoint, &known)) {
	case WITNESS_COSIGNS: *ret_text = parsed.checkpoint; return NULL;
	case WITNESS_INVALID_SIZE:
	case WITNESS_OTHER_SIZE: return "another tree of this log was signed last";
	case WITNESS_INCONSISTENT: break;
	}
	return "the tree does not begin with the one that was signed last";
}
