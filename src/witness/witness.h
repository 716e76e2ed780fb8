/* A witness of transparency logs (C2SP tlog-witness): cosigns a checkpoint of a log that it knows
 * only if the tree begins with the one that it cosigned before.
 *
 * Its directory has the key (witness.key, Ed25519 in PEM), the memory (witness_store.h) and the
 * refused checkpoints (witness_refusals.h). They belong together: with a key and an older memory, a
 * witness may cosign two histories. One thread at a time uses a witness. */
#ifndef WITNESS_WITNESS_H
#define WITNESS_WITNESS_H

#include "base/buf.h"
#include "witness/witness_refusals.h"

#define WITNESS_LOGS_MAX 128
#define WITNESS_BODY_MAX ((size_t)128 << 10)
#define WITNESS_ORIGIN_HASH_SIZE 64 /* hexadecimal digits */

struct witness_options {
	const char *directory;       /* made if its parent exists */
	const char *name;            /* of a new witness; NULL: one that has a name */
	const struct note_key *logs; /* of type NOTE_ED25519; copied. Several may have one name */
	size_t log_count;
};

struct witness;

/* Opens a witness, or makes its key and memory. ERR_USAGE: a new one needs a name, or it has
 * another one; ERR_REFUSED: key and memory do not belong together; ERR_UNAVAILABLE: another process
 * has opened it; ERR_CORRUPT, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. */
int witness_open(const struct witness_options *options, struct witness **ret, struct error *error)
	MUST_CHECK;
void witness_close(struct witness *witness); /* NULL-safe */
const struct note_key *witness_key(const struct witness *witness);
/* Reads the name and the public key of a witness that another process may have opened.
 * ERR_NOT_FOUND: there is none. */
int witness_read_key(const char *directory, struct note_key *ret, struct error *error) MUST_CHECK;
/* Returns whether the memory must be opened again (witness_store.h). */
bool witness_has_failed(const struct witness *witness);

/* An answer over HTTP, and what the log of the program says about it. */
struct witness_answer {
	int status;
	const char *type;               /* media type of the body */
	struct buf body;                /* the caller frees it */
	char origin[NOTE_NAME_MAX + 1]; /* of a known log; else empty */
	uint64_t size;                  /* of the checkpoint of a known log */
	bool is_new;                    /* a cosigned checkpoint that was not known */
	const char *kept_kind;          /* a refused checkpoint was kept: "fork", "unproven" */
	char kept_name[WITNESS_REFUSAL_NAME_SIZE]; /* below the directory */
	struct error failure;                      /* code: the error of a status 500, or of keeping */
};
void witness_answer_free(struct witness_answer *answer); /* NULL-safe */

/* Answers the body of a request add-checkpoint. */
void witness_add_checkpoint(struct witness *witness, struct slice body, struct witness_answer *ret);
/* Answers a request for the checkpoint of a log, by the SHA-256 of its origin in hexadecimal. */
void witness_get_checkpoint(struct witness *witness, struct slice origin_hash,
                            struct witness_answer *ret);

#endif
