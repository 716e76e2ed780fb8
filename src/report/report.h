/* The certification report: a PDF in one language, made from facts that are already settled.
 *
 * The facts are pure data that the caller owns; every string is UTF-8 and may be hostile: it is
 * shown in a box of its own, control and direction characters are written out visibly, and long
 * words are broken. The file aims at PDF/A-3a and PDF/UA-1, keeps a classic cross-reference table,
 * and is unsigned: pdf_sign.h adds the signature.
 *
 * Memory is bounded by the row limits below, whatever the range's size. Any thread may call; each
 * thread that does keeps what Pango knows of the fonts (some megabytes) until it ends. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "ledger/record.h"
#include "seal/authority.h"
#include "seal/level.h"

#define REPORT_EVENT_ROWS_MAX 500 /* up to this many events all are listed */
#define REPORT_EDGE_ROWS 50       /* beyond it, the first and the last so many */
#define REPORT_SEAL_ROWS_MAX 200
#define REPORT_CONFIGURATION_ROWS_MAX 200
#define REPORT_PART_ROWS_MAX 1000
#define REPORT_AUTHORITY_ROWS_MAX 50
#define REPORT_NAME_MAX 127 /* bytes of identifiers, codes, names of files and of the service */

struct report_configuration {
	struct config_facts facts;
	struct sha256 digest; /* of its canonical document, the config_hash in the event records */
};

struct report_event {
	int64_t sequence;
	int64_t received_at_us;
	int64_t occurred_at_us; /* declared; TIME_NONE when it was not */
	struct slice client_ref;
	enum hash_algorithm hash_algorithm;
	const uint8_t *hash; /* hash_algorithm_size bytes */
};

struct report_seal {
	const char *segment_id;
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t time_us; /* the token's genTime */
	const char *authority;
	enum authority_kind kind;
};

struct report_authority {
	const char *name; /* as people write it */
	enum authority_kind kind;
};

struct report_part {
	const char *name;
	int64_t size_bytes;
	struct sha256 digest;
};

struct report_facts {
	enum mode mode;
	const char *service_name; /* who attests, as shown to the reader */
	const char *certification_id;
	const char *verification_code;
	const char *verification_url; /* of the public page for this code; printed, linked and in QR */
	int64_t requested_at_us;
	int64_t issued_at_us;

	const char *channel_id;
	enum modality modality;
	/* Versions in force within the range, ascending; at least one. */
	const struct report_configuration *configurations;
	size_t configuration_rows;
	int64_t configuration_count; /* in all; beyond the rows the archive is referred to */

	/* As requested: either times (both) or sequences (both); the others TIME_NONE and 0. */
	int64_t from_us;
	int64_t to_us;
	int64_t seq_from;
	int64_t seq_to;
	/* Frozen. */
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t event_count;
	int64_t first_received_at_us;
	int64_t last_received_at_us;
	struct sha256 chain_hash_before; /* previous_chain_hash of the first event */
	struct sha256 first_chain_hash;
	struct sha256 last_chain_hash;

	const struct report_event *events; /* all, or the first and last REPORT_EDGE_ROWS */
	size_t event_rows;

	const struct report_seal *seals;
	size_t seal_rows;
	int64_t seal_count; /* in all */
	const struct report_authority *authorities;
	size_t authority_rows;

	const struct report_part *parts;
	size_t part_rows;
	int64_t part_count; /* in all; 0 for hash-only channels */

	const char *archive_name;
	int64_t archive_size_bytes;
	struct sha256 archive_digest;

	/* Of the signature to come: what it will reach, and until when it can be checked without the
	 * service at least; 0: that is not said. */
	enum level level;
	int64_t checkable_until_us;
};

/* Writes the unsigned report of one language to an open, empty file. ERR_VALIDATION when the facts
 * break a limit above or miss what is required, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY, ERR_INTERNAL
 * (fonts or colour profile missing). */
int report_render(const struct report_facts *facts, enum language language, int file,
                  struct error *error) MUST_CHECK;

/* Whether fonts and colour profile are where a report needs them. ERR_IO with all that is missing
 * and the packages that have it. */
int report_check_places(struct error *error) MUST_CHECK;

#endif
