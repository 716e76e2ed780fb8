/* The entries of the log of segments: one for each sealed segment, in the order of sealing.
 *
 * An entry is canonical JSON (RFC 8785), and says nothing about who the channel is:
 *   {"chain_hash_last","first_sequence","last_sequence","seal_hash","tag","v":1}
 * tag stands for the chain: whoever knows the channel's identifier, which is random, can compute
 * it, and a chain has no second tag under which the log could keep another history of it. Pure. */
#ifndef TLOG_ENTRY_H
#define TLOG_ENTRY_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"

#define TLOG_ENTRY_MAX 384         /* bytes of an entry */
#define TLOG_ENTRY_PACKED_SIZE 112 /* bytes of its stored form */

struct tlog_entry {
	struct sha256 tag;
	int64_t first_sequence, last_sequence; /* events of the segment, from 1 */
	struct sha256 chain_hash_last;
	struct sha256 seal_hash; /* SHA-256 of the seal document */
};

/* Computes the tag of a chain: SHA-256 over "constancia-tag/1", its channel_id and its chain as its
 * seal documents state them (seal/segment.h), with a line feed before each of the two. False: a
 * name is longer than TLOG_CHAIN_NAME_MAX, so no chain has it. */
#define TLOG_CHAIN_NAME_MAX 39
bool tlog_tag(const char *channel_id, const char *chain, struct sha256 *ret) MUST_CHECK;

void tlog_entry_write(const struct tlog_entry *entry, struct buf *out);
/* Reads an entry. ERR_INVALID_EVIDENCE: the text is not exactly what tlog_entry_write produces. */
int tlog_entry_read(struct arena *arena, struct slice text, struct tlog_entry *ret,
                    struct error *error) MUST_CHECK;
/* Computes the entry's leaf in the log's tree (merkle.h). Clears `scratch`, whose limit must be at
 * least TLOG_ENTRY_MAX. ERR_NO_MEMORY. */
int tlog_entry_leaf(const struct tlog_entry *entry, struct buf *scratch, struct sha256 *ret)
	MUST_CHECK;

/* The stored form: tag, chain_hash_last, seal_hash, and the two numbers, big-endian. */
void tlog_entry_pack(const struct tlog_entry *entry, uint8_t packed[TLOG_ENTRY_PACKED_SIZE]);
struct tlog_entry tlog_entry_unpack(const uint8_t packed[TLOG_ENTRY_PACKED_SIZE]);

#endif
