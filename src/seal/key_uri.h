/* "pkcs11:" URIs (RFC 7512): which key of which token, and by which module. Inside src/seal only.
 */
#ifndef SEAL_KEY_URI_H
#define SEAL_KEY_URI_H

#include <limits.h>

#include "base/buf.h"
#include "base/error.h"

#define KEY_URI_SCHEME "pkcs11:"
#define KEY_URI_TEXT_MAX 128 /* bytes of an attribute; those of a token have at most 32 */

struct key_uri_text {
	bool given;
	size_t size;
	char data[KEY_URI_TEXT_MAX + 1];
};

struct key_uri {
	/* What the token says of itself. */
	struct key_uri_text token, manufacturer, serial, model;
	/* CKA_LABEL and CKA_ID of the key. At least one is given. */
	struct key_uri_text object, id;
	char module_path[PATH_MAX];
	char pin_source[PATH_MAX]; /* the path of a file; "": not given */
};

/* ERR_REFUSED with the cause. Refused, too, is what could not be heeded: attributes that are not
 * known, a type that is no private key, and a PIN in the URI itself, which the settings would
 * show. */
int key_uri_parse(const char *text, struct key_uri *ret_uri, struct error *error) MUST_CHECK;

#endif
