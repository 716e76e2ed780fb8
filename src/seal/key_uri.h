/* "pkcs11:" URIs (RFC 7512), which name a module, a token and a key. For src/seal only. */
#ifndef SEAL_KEY_URI_H
#define SEAL_KEY_URI_H

#include <limits.h>

#include "base/buf.h"
#include "base/error.h"

#define KEY_URI_SCHEME "pkcs11:"
#define KEY_URI_TEXT_MAX 128 /* bytes of an attribute; token attributes have at most 32 */

struct key_uri_text {
	bool given;
	size_t size;
	char data[KEY_URI_TEXT_MAX + 1];
};

struct key_uri {
	/* Attributes of the token. */
	struct key_uri_text token, manufacturer, serial, model;
	/* CKA_LABEL and CKA_ID of the key; at least one is given. */
	struct key_uri_text object, id;
	char module_path[PATH_MAX];
	char pin_source[PATH_MAX]; /* path of a file; "": not given */
};

/* Parses a URI. ERR_REFUSED with the cause, also for unknown attributes, a type other than private,
 * and a PIN in the URI, which the settings would reveal. */
int key_uri_parse(const char *text, struct key_uri *ret_uri, struct error *error) MUST_CHECK;

#endif
