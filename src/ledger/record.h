/* Sealed documents and their chaining: the core rules of the evidence format. Pure.
 *
 * Documents are canonical JSON (RFC 8785); digests are SHA-256 over exactly those bytes.
 *   genesis document   {"chain","channel_id","created_at","v"}: its digest is the
 *                      previous_chain_hash of event 1
 *   configuration      {"channel_id","declarant","description","modality","name","sealed_at",
 *                      "supplementary_info","v","version"}
 *   event record       {"chain","channel_id","client_ref","config_hash","config_version",
 *                      "event_id","hash","hash_alg","modality","occurred_at",
 *                      "previous_chain_hash","received_at","sequence","v"}: its digest is the
 *                      event's chain_hash
 * config_hash is the digest of the configuration document in force. So the chain binds the
 * declarant and the texts of reports. */
#ifndef LEDGER_RECORD_H
#define LEDGER_RECORD_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"

#define ID_SIZE 40         /* maximum identifier size: 39 characters and NUL */
#define ID_OWN_SIZE 16     /* random part of an identifier, after its prefix */
#define CLIENT_REF_MAX 255 /* bytes */
#define EVENT_RECORD_MAX 4096
#define CONFIG_TEXT_MAX 2000 /* bytes of a configuration text */

enum mode { MODE_LIVE, MODE_TEST };
enum modality { MODALITY_CONTENT, MODALITY_HASH_ONLY };
enum hash_algorithm { HASH_SHA256, HASH_SHA512 };

const char *mode_text(enum mode mode);                          /* "live", "test" */
const char *modality_text(enum modality modality);              /* "content", "hash_only" */
const char *hash_algorithm_text(enum hash_algorithm algorithm); /* "sha-256", "sha-512" */
size_t hash_algorithm_size(enum hash_algorithm algorithm);      /* 32, 64 */
bool modality_parse(struct slice text, enum modality *ret) MUST_CHECK;
bool mode_parse(struct slice text, enum mode *ret) MUST_CHECK;
bool hash_algorithm_parse(struct slice text, enum hash_algorithm *ret) MUST_CHECK;

/* Declaration of an event by a client. */
struct declaration {
	struct slice client_ref;
	int64_t occurred_at_us; /* TIME_NONE: null */
	enum modality modality;
	enum hash_algorithm hash_algorithm;
	uint8_t hash[DIGEST_SIZE_MAX]; /* hash_algorithm_size bytes are used */
};

struct event_facts {
	const char *channel_id;
	enum mode chain;
	int64_t sequence; /* from 1 */
	struct slice event_id;
	struct declaration declaration;
	int64_t received_at_us;
	int64_t config_version;
	struct sha256 config_hash;
	struct sha256 previous_chain_hash;
};

struct genesis_facts {
	const char *channel_id;
	enum mode chain;
	int64_t created_at_us;
};

struct config_facts {
	const char *channel_id;
	int64_t version; /* from 1 */
	int64_t sealed_at_us;
	enum modality modality;
	const char *name;
	const char *description; /* NULL: null */
	const char *declarant;
	const char *supplementary_info; /* NULL: null */
};

/* Append the canonical document. */
void event_record(const struct event_facts *facts, struct buf *out);
void genesis_document(const struct genesis_facts *facts, struct buf *out);
void config_document(const struct config_facts *facts, struct buf *out);

/* Computes the chain_hash of an event: SHA-256 of its record. Clears `scratch`, whose limit must be
 * at least EVENT_RECORD_MAX. ERR_NO_MEMORY: no record and no hash. */
int event_chain_hash(const struct event_facts *facts, struct buf *scratch, struct sha256 *ret_hash)
	MUST_CHECK;

#endif
