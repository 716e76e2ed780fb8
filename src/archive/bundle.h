/* The container of a certification's documents with their evidence record: an ASiC-E (ETSI EN 319
 * 162-1) with an ASiCEvidenceRecordManifest, which general-purpose validators can check. Anyone can
 * make it at any time with the current evidence record; the issued documents do not change.
 *
 * It is a ZIP file of the shape of zip.h: "mimetype", the documents in the order of their names
 * (strcmp), the manifest, the record. docs/verify/evidence-format.md describes it. */
#ifndef ARCHIVE_BUNDLE_H
#define ARCHIVE_BUNDLE_H

#include "archive/zip.h"

#define BUNDLE_FILES_LEAST 2
#define BUNDLE_FILES_MAX 500
#define BUNDLE_MANIFEST_NAME "META-INF/ASiCEvidenceRecordManifest001.xml"
#define BUNDLE_RECORD_NAME "META-INF/evidencerecord001.ers"
#define BUNDLE_MANIFEST_MAX ((size_t)256 << 10)

struct bundle {
	const char *record; /* path of the evidence record */
	const char *const *files;
	size_t file_count; /* BUNDLE_FILES_LEAST to BUNDLE_FILES_MAX */
	const char *output;
};

struct bundled {
	struct zip_sum sum; /* sum of the container */
	int64_t exists_since_us;
	int64_t valid_until_us; /* time until which the record is valid */
};

/* Checks that the record covers exactly these files, and writes the container. The timestamp
 * authority is not verified. Memory use does not depend on the files. Returns ERR_INVALID_EVIDENCE
 * if the record does not cover them; ERR_USAGE for file names that are not allowed or collide;
 * ERR_TOO_LARGE if a limit of the ZIP is exceeded; ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY. On failure
 * `output` is unchanged. */
int bundle_write(const struct bundle *bundle, struct bundled *ret_bundled, struct error *error)
	MUST_CHECK;

/* Returns whether a document may have this name: a ZIP entry in the root that is not one of the
 * container's own entries, compared without case, and that every system and program treats as an
 * ordinary file. */
bool bundle_name_allowed(struct slice name);
/* Returns whether two names are equal on a file system without case distinction. */
bool bundle_names_collide(struct slice a, struct slice b);

#endif
