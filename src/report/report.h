/* The certification report: a PDF file in one language, made from given facts.
 *
 * The facts are plain data owned by the caller. Every string is UTF-8 and may be hostile: it is
 * shown in a box of its own, control and direction characters are shown visibly, and long words are
 * broken. The file is written for PDF/A-3a and PDF/UA-1, has a classic cross-reference table, and
 * is unsigned; pdf_sign.h adds the signature.
 *
 * Memory is limited by the row limits below, independent of the size of the range. Any thread may
 * call. Each calling thread keeps Pango's font data (some megabytes) until it ends. */
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

#define REPORT_EVENT_ROWS_MAX 500 /* up to this number of events, all are listed */
#define REPORT_EDGE_ROWS 50       /* above it, this number of first and of last events */
#define REPORT_SEAL_ROWS_MAX 200
#define REPORT_CONFIGURATION_ROWS_MAX 200
#define REPORT_PART_ROWS_MAX 1000
#define REPORT_AUTHORITY_ROWS_MAX 50
#define REPORT_WITNESS_ROWS_MAX 64
#define REPORT_NAME_MAX 127 /* bytes of identifiers, codes, file names and the service name */

struct report_configuration {
	struct config_facts facts;
	struct sha256 digest; /* digest of its canonical document, the config_hash of event records */
};

struct report_event {
	int64_t sequence;
	int64_t received_at_us;
	int64_t occurred_at_us; /* as declared; TIME_NONE: not declared */
	struct slice client_ref;
	enum hash_algorithm hash_algorithm;
	const uint8_t *hash; /* hash_algorithm_size bytes */
};

struct report_seal {
	const char *segment_id;
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t time_us; /* genTime of the token */
	const char *authority;
	enum authority_kind kind;
};

struct report_authority {
	const char *name; /* display name */
	enum authority_kind kind;
};

/* What the log of segments says of the range (docs/verify/evidence-format.md, section 17). */
struct report_witness {
	const char *name;
	int64_t time_us; /* of its cosignature */
};
struct report_log {
	const char *origin; /* name of the log; NULL: the archive has no places in a log */
	int64_t entries;    /* of the newest tree in the archive */
	int64_t segments;   /* of the range that have an entry */
	const struct report_witness *witnesses; /* that cosigned this tree */
	size_t witness_rows;
};

struct report_part {
	const char *name;
	int64_t size_bytes;
	struct sha256 digest;
};

struct report_facts {
	enum mode mode;
	const char *service_name; /* the attesting service, as displayed */
	const char *certification_id;
	const char *verification_code;
	const char *verification_url; /* address of the public page for this code; printed, linked and
	                                 in the QR code */
	int64_t requested_at_us;
	int64_t issued_at_us;

	const char *channel_id;
	enum modality modality;
	/* Versions in force within the range, ascending; at least one. */
	const struct report_configuration *configurations;
	size_t configuration_rows;
	int64_t
		configuration_count; /* total; the report refers to the archive for those beyond the rows */

	/* The requested range: either both times or both sequences; the others are TIME_NONE or 0. */
	int64_t from_us;
	int64_t to_us;
	int64_t seq_from;
	int64_t seq_to;
	/* The frozen range. */
	int64_t first_sequence;
	int64_t last_sequence;
	int64_t event_count;
	int64_t first_received_at_us;
	int64_t last_received_at_us;
	struct sha256 chain_hash_before; /* previous_chain_hash of the first event */
	struct sha256 first_chain_hash;
	struct sha256 last_chain_hash;

	const struct report_event *events; /* all, or the first and the last REPORT_EDGE_ROWS */
	size_t event_rows;

	const struct report_seal *seals;
	size_t seal_rows;
	int64_t seal_count; /* total */
	const struct report_authority *authorities;
	size_t authority_rows;
	struct report_log log;
	/* The archive has the seal documents from the first segment of the channel. Only if seal_count
	 * is above 0. */
	bool has_history;

	const struct report_part *parts;
	size_t part_rows;
	int64_t part_count; /* total; 0 for channels of modality hash */

	const char *archive_name;
	int64_t archive_size_bytes;
	struct sha256 archive_digest;

	/* Of the signature to be added: its level, and the time until which it can be checked without
	 * the service; 0: not printed. */
	enum level level;
	int64_t checkable_until_us;
};

/* Writes the unsigned report in one language to an open, empty file. Returns ERR_VALIDATION if the
 * facts exceed a limit above or are incomplete; ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY; ERR_INTERNAL
 * if fonts or the colour profile are missing. */
int report_render(const struct report_facts *facts, enum language language, int file,
                  struct error *error) MUST_CHECK;

/* Checks that the fonts and the colour profile are installed. Returns ERR_IO with all missing ones
 * and their packages. */
int report_check_places(struct error *error) MUST_CHECK;

#endif
