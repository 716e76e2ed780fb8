/* Files embedded in the program by embed.py. */
#ifndef HTTP_EMBEDDED_H
#define HTTP_EMBEDDED_H

#include "base/buf.h"
#include "base/digest.h"

/* Assets of the console's pages, in addition to the common style. */
extern const struct slice embedded_console_style, embedded_console_script, embedded_passkeys_script,
	embedded_proof_script, embedded_lookup_script;
extern const struct slice embedded_openapi, embedded_webhooks, embedded_style, embedded_script;
/* The reference page and its additional style (reference/make.py); the icon (mark.py). */
extern const struct slice embedded_reference, embedded_reference_style, embedded_mark,
	embedded_icon;
/* Subsets of the fonts of the reports for web pages (subset_font.py). */
extern const struct slice embedded_sans, embedded_sans_bold, embedded_serif, embedded_serif_bold,
	embedded_mono;
/* SHA-256 digests of the assets, used as entity tags. */
extern const struct sha256 embedded_style_digest, embedded_script_digest,
	embedded_console_style_digest, embedded_console_script_digest, embedded_passkeys_script_digest,
	embedded_proof_script_digest, embedded_lookup_script_digest, embedded_reference_style_digest,
	embedded_mark_digest, embedded_sans_digest, embedded_sans_bold_digest, embedded_serif_digest,
	embedded_serif_bold_digest, embedded_mono_digest;

#endif
