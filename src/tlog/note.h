/* Signed notes (C2SP signed-note), their keys, and cosignatures (C2SP tlog-cosignature).
 *
 * A note is a text of lines, an empty line, and signature lines. Signatures of unknown keys are
 * ignored. A note that has a signature of a known key that does not verify is false as a whole. */
#ifndef TLOG_NOTE_H
#define TLOG_NOTE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"

#define NOTE_SIZE_MAX 65536
#define NOTE_SIGNATURES_MAX 64
#define NOTE_NAME_MAX 255 /* bytes of a key's name */
#define NOTE_KEY_SIZE 32  /* Ed25519 */
#define NOTE_SIGNATURE_SIZE 64
/* name, "+", 8 hexadecimal digits, "+", base64 of type and key; with the NUL */
#define NOTE_VKEY_SIZE (NOTE_NAME_MAX + 1 + 8 + 1 + 44 + 1)

enum note_key_type {
	NOTE_ED25519 = 1,     /* signs the text */
	NOTE_COSIGNATURE = 4, /* signs the text of a checkpoint and a time */
};

/* A public key, as in a verifier key ("vkey"). */
struct note_key {
	char name[NOTE_NAME_MAX + 1];
	enum note_key_type type;
	uint8_t id[4];
	uint8_t key[NOTE_KEY_SIZE];
};

/* Returns NULL, or what a name must be. */
const char *note_check_name(struct slice name);
/* Makes a key of its parts, with its id. The name must be valid. */
struct note_key note_key_make(const char *name, enum note_key_type type,
                              const uint8_t key[NOTE_KEY_SIZE]);
/* Reads NAME+ID+KEY. ERR_INVALID_EVIDENCE with the cause; also for the types of other
 * algorithms. */
int note_key_parse(struct slice vkey, struct note_key *ret, struct error *error) MUST_CHECK;
void note_key_write(const struct note_key *key, char vkey[NOTE_VKEY_SIZE]);
bool note_key_equal(const struct note_key *a, const struct note_key *b) MUST_CHECK;

struct note_signature {
	struct slice line; /* whole, with its end */
	struct slice name;
	uint8_t id[4];
	struct slice bytes; /* after the id */
};

struct note {
	struct slice text; /* with the end of its last line */
	struct note_signature *signatures;
	size_t count;
};

/* Reads a note, or signature lines alone. The results point into the arena and the text.
 * ERR_INVALID_EVIDENCE with the cause; ERR_NO_MEMORY. */
int note_parse(struct arena *arena, struct slice text, struct note *ret, struct error *error)
	MUST_CHECK;
int note_parse_signatures(struct arena *arena, struct slice lines, struct note *ret,
                          struct error *error) MUST_CHECK;

/* Appends those lines that are cosignatures by their form, the first one of each key, up to
 * NOTE_COSIGNATURES_MAX: what a reader of a whole note takes, whatever was collected. Nothing is
 * verified. ERR_NO_MEMORY. */
#define NOTE_COSIGNATURES_MAX 32
int note_add_readable(struct slice lines, struct buf *out) MUST_CHECK;

/* Returns whether a signature is of a key, by name and id. */
bool note_signature_is_of(const struct note_signature *signature, const struct note_key *key);

enum note_verdict {
	NOTE_UNSIGNED, /* it has no signature of the key */
	NOTE_SIGNED,
	NOTE_FALSE,       /* it has a signature of the key that does not verify */
	NOTE_NOT_CHECKED, /* there was no memory */
};
/* Verifies the first signature of a key over the note's text; further ones are ignored, so that
 * nobody can make a note expensive. *ret_time_us, which may be NULL, is the time of a cosignature;
 * TIME_NONE: there is no valid one. */
enum note_verdict note_verify(const struct note *note, const struct note_key *key,
                              int64_t *ret_time_us);
/* As note_verify, for a text whose signatures came without it. */
enum note_verdict note_verify_text(struct slice text, const struct note *note,
                                   const struct note_key *key, int64_t *ret_time_us);

/* Verifies an Ed25519 signature (RFC 8032) over any bytes. ERR_NO_MEMORY. */
int note_verify_bytes(const uint8_t key[NOTE_KEY_SIZE], struct slice message,
                      struct slice signature, bool *ret_valid) MUST_CHECK;
/* Appends the bytes that a cosignature signs (tlog-cosignature, "Ed25519 signed message"). */
void note_cosigned_message(struct slice text, int64_t time_s, struct buf *out);
/* Append a signature line. */
void note_add_signature(const struct note_key *key, const uint8_t signature[NOTE_SIGNATURE_SIZE],
                        struct buf *out);
void note_add_cosignature(const struct note_key *key, int64_t time_s,
                          const uint8_t signature[NOTE_SIGNATURE_SIZE], struct buf *out);

#endif
