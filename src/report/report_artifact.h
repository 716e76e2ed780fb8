/* Marks the content of a page that no structure tag covers as an artifact (ISO 14289-1, 7.1).
 * Internal to src/report. */
#ifndef REPORT_REPORT_ARTIFACT_H
#define REPORT_REPORT_ARTIFACT_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the content stream, with everything outside marked-content sequences in sequences tagged
 * Artifact. Returns ERR_INTERNAL if the sequences are unbalanced, or ERR_NO_MEMORY. */
int report_mark_artifacts(struct slice content, struct buf *out, struct error *error) MUST_CHECK;

#endif
