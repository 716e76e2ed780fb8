/* Registration of files, and of JSON objects in files, through the interface.
 *
 * A file is hashed before it is sent. On a channel that keeps content the file itself is sent as a
 * stream, else only its digest. The digest in the receipt is compared with the local one. */
#ifndef TOOLS_REMOTE_REGISTRATION_H
#define TOOLS_REMOTE_REGISTRATION_H

#include "base/digest.h"
#include "tools/api.h"

#define CLIENT_REF_MAX 255 /* bytes */

struct channel_facts {
	char channel_id[65];
	bool keeps_content; /* modality `content` */
};
/* Gets the channel of the key. */
int remote_channel(struct api *api, struct arena *arena, struct channel_facts *ret_channel,
                   struct error *error) MUST_CHECK;

enum declaration_kind { DECLARE_FILE, DECLARE_DIGEST, DECLARE_PAYLOAD };

struct file_declaration {
	enum declaration_kind kind;
	const char *path;        /* NULL: standard input, which needs a reference */
	const char *client_ref;  /* NULL: the file's name, a colon and the SHA-256 of its content */
	const char *occurred_at; /* RFC 3339; NULL: none */
	/* Called while a file is sent; NULL: never. */
	void (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
};

struct file_registration {
	char client_ref[CLIENT_REF_MAX + 1];
	struct sha256 digest; /* computed here */
	bool replayed;        /* it had been registered before */
	struct json *receipt; /* in the arena */
	bool matches;         /* the receipt has the reference and the digest of the declaration */
};

/* Registers one declaration. The caller stores the receipt before it checks `matches`, because the
 * event exists. Errors of the file (ERR_IO, ERR_VALIDATION of a payload, ERR_TOO_LARGE) and
 * refusals of the declaration concern this one only. */
int remote_register(struct api *api, const struct file_declaration *declaration,
                    struct arena *arena, struct file_registration *ret_registration,
                    struct error *error) MUST_CHECK;

#endif
