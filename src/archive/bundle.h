/* The container of a certification's documents with their evidence record: an ASiC-E (ETSI EN 319
 * 162-1) with an ASiCEvidenceRecordManifest, which programs that know nothing of this service can
 * check. Made by anybody, at any time, with the record of that time: what was issued does not
 * change. A ZIP of zip.h's shape: "mimetype", the documents in the order of their names (as strcmp
 * tells it), the manifest, the record. docs/evidence-format.md describes it. */
#ifndef ARCHIVE_BUNDLE_H
#define ARCHIVE_BUNDLE_H

#include "archive/zip.h"

#define BUNDLE_FILES_LEAST 2
#define BUNDLE_FILES_MAX 500
#define BUNDLE_MANIFEST_NAME "META-INF/ASiCEvidenceRecordManifest001.xml"
#define BUNDLE_RECORD_NAME "META-INF/evidencerecord001.ers"
#define BUNDLE_MANIFEST_MAX ((size_t)256 << 10)

struct bundle {
	const char *record; /* the path of the evidence record */
	const char *const *files;
	size_t file_count; /* BUNDLE_FILES_LEAST to BUNDLE_FILES_MAX */
	const char *output;
};

struct bundled {
	struct zip_sum sum; /* of the container */
	int64_t exists_since_us;
	int64_t valid_until_us; /* of the record */
};

/* Checks that the record covers these files and no other, without asking who gave the time, and
 * writes the container; in memory that does not grow with them. ERR_INVALID_EVIDENCE when it does
 * not; ERR_USAGE for names that cannot stand in it or stand for two files; ERR_TOO_LARGE beyond
 * what the ZIP may hold; ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. Nothing is at `output` then that was
 * not there before. */
int bundle_write(const struct bundle *bundle, struct bundled *ret_bundled, struct error *error)
	MUST_CHECK;

/* Whether it may be the name of a document: of a ZIP entry in the root, none of the container's own
 * in any case, and one that every system and program takes for an ordinary file's. */
bool bundle_name_allowed(struct slice name);
/* Whether two of them name one file where case does not count. */
bool bundle_names_collide(struct slice a, struct slice b);

#endif
