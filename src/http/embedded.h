/* Files that travel inside the program, made by embed.py. */
#ifndef HTTP_EMBEDDED_H
#define HTTP_EMBEDDED_H

#include "base/buf.h"
#include "base/digest.h"

/* What the console's pages are drawn with, beside the style of all pages. */
extern const struct slice embedded_console_style, embedded_console_script, embedded_passkeys_script,
	embedded_proof_script;
extern const struct slice embedded_openapi, embedded_webhooks, embedded_style, embedded_script;
/* The reference as a page and the style that it adds (reference/make.py); the icon (mark.py). */
extern const struct slice embedded_reference, embedded_reference_style, embedded_mark,
	embedded_icon;
/* The faces of the reports, as far as pages need them (subset_font.py). */
extern const struct slice embedded_sans, embedded_sans_bold, embedded_serif, embedded_serif_bold,
	embedded_mono;
/* The SHA-256 of what pages are drawn with. */
extern const struct sha256 embedded_style_digest, embedded_script_digest,
	embedded_console_style_digest, embedded_console_script_digest, embedded_passkeys_script_digest,
	embedded_proof_script_digest, embedded_reference_style_digest, embedded_mark_digest,
	embedded_sans_digest, embedded_sans_bold_digest, embedded_serif_digest,
	embedded_serif_bold_digest, embedded_mono_digest;

#endif
