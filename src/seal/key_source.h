/* Location of a signing key and its certificates, from the settings. */
#ifndef SEAL_KEY_SOURCE_H
#define SEAL_KEY_SOURCE_H

struct key_source {
	/* Path of a PEM or PKCS#12 file, or a "pkcs11:" URI (RFC 7512). NULL: no key. */
	const char *key;
	/* PEM file with the key's certificate first, then its issuers. NULL or "": they are in the
	 * key's file. */
	const char *chain;
	/* PEM file with further issuers. NULL: none. */
	const char *root;
	/* File whose first line is the passphrase or PIN: a path or, without a slash, the name of a
	 * credential ($CREDENTIALS_DIRECTORY). NULL or "": none. */
	const char *passphrase;
};

#endif
