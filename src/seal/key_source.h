/* Where a signing key and its certificates are, as an operator's settings say it. */
#ifndef SEAL_KEY_SOURCE_H
#define SEAL_KEY_SOURCE_H

struct key_source {
	/* The path of a PEM or PKCS#12 file, or a "pkcs11:" URI (RFC 7512). NULL: there is none. */
	const char *key;
	/* PEM file with the key's certificate first, then its issuers. NULL or "": the file of the key
	 * brings them. */
	const char *chain;
	/* PEM file with further issuers. NULL: none. */
	const char *root;
	/* File whose first line unlocks the key: a path, or without a slash the name of a credential
	 * ($CREDENTIALS_DIRECTORY). NULL or "": none. */
	const char *passphrase;
};

#endif
