/* Keys of PKCS#11 tokens. The module is somebody else's code, and runs in this process: it is
 * loaded after the fork, so that it is nowhere else.
 *
 * A token that goes away for a while is found again at the next signature. Its PIN stays in memory
 * for that. Wrong PINs lock a token, and a supervisor starts anew what ends: so a PIN is never
 * tried again once it was refused, and not at all while the token has only one more try. */
#include <dlfcn.h>
#include <libp11.h>
#include <openssl/err.h>
#include <seccomp.h>
#include <stdlib.h>

#include "seal/certificate.h"
#include "seal/key_driver.h"
#include "seal/key_uri.h"

struct token_key {
	struct key_uri uri;
	char pin[KEY_PASSPHRASE_MAX + 1]; /* "": none */
	bool pin_refused;
	void *module; /* kept, so that loading it again takes nothing from a disk */
	PKCS11_CTX *context;
	bool loaded;
	PKCS11_SLOT *slots;
	unsigned int slot_count;
	EVP_PKEY *key; /* NULL: it has to be found (again) */
};

static bool takes(const char *source)
{
	return strncmp(source, KEY_URI_SCHEME, strlen(KEY_URI_SCHEME)) == 0;
}

/* ---- finding ---- */

/* libp11 has taken the padding away. */
static bool says(const struct key_uri_text *wanted, const char *found)
{
	return !wanted->given || (found && strcmp(wanted->data, found) == 0);
}

static bool is_token(const struct key_uri *uri, const PKCS11_TOKEN *token)
{
	return token->initialized && says(&uri->token, token->label) &&
	       says(&uri->manufacturer, token->manufacturer) && says(&uri->serial, token->serialnr) &&
	       says(&uri->model, token->model);
}

static bool is_key(const struct key_uri *uri, const PKCS11_KEY *key)
{
	return says(&uri->object, key->label) &&
	       (!uri->id.given ||
	        slice_equal(slice_make(uri->id.data, uri->id.size), slice_make(key->id, key->id_len)));
}

/* Libp11 gives the module's own code (PKCS #11, section 5.1.6). Whatever else went wrong, such as
 * an appliance that was away for a moment, says nothing of the PIN. */
static bool is_pin_refused(void)
{
	switch (ERR_GET_REASON(ERR_peek_last_error())) {
	case 0xa0: /* CKR_PIN_INCORRECT */
	case 0xa1: /* CKR_PIN_INVALID */
	case 0xa2: /* CKR_PIN_LEN_RANGE */
	case 0xa3: /* CKR_PIN_EXPIRED */
	case 0xa4: /* CKR_PIN_LOCKED */ return true;
	default: return false;
	}
}

static int log_in(struct token_key *handle, PKCS11_SLOT *slot, struct error *error)
{
	const PKCS11_TOKEN *token = slot->token;

	if (!token->loginRequired)
		return OK;
	if (!*handle->pin)
		return error_cause(error, ERR_REFUSED, "token %s wants a PIN: set signer.passphrase_file",
		                   token->label);
	if (token->userPinLocked || token->userPinFinalTry || handle->pin_refused)
		return error_cause(error, ERR_PIN,
		                   "the PIN of token %s was refused before: it is not tried again%s",
		                   token->label,
		                   token->userPinLocked     ? "; the token is locked"
		                   : token->userPinFinalTry ? ", for the token allows one more try"
		                                            : "");
	ERR_clear_error();
	if (PKCS11_login(slot, 0, handle->pin) == 0)
		return OK;
	if (!is_pin_refused())
		return error_cause(error, ERR_UNAVAILABLE, "token %s lets nobody in: %s", token->label,
		                   openssl_reason());
	handle->pin_refused = true;
	return error_cause(error, ERR_PIN, "token %s refuses the PIN: %s", token->label,
	                   openssl_reason());
}

/* Exactly one: which of several is meant is not for us to choose. */
static int find_slot(struct token_key *handle, PKCS11_SLOT **ret_slot, struct error *error)
{
	PKCS11_SLOT *found = NULL;

	for (unsigned int i = 0; i < handle->slot_count; i++) {
		PKCS11_SLOT *slot = &handle->slots[i];
		if (!slot->token || !is_token(&handle->uri, slot->token))
			continue;
		if (found)
			return error_cause(error, ERR_REFUSED, "several tokens are as the pkcs11: URI says");
		found = slot;
	}
	if (!found)
		return error_cause(error, ERR_UNAVAILABLE, "no token is as the pkcs11: URI says");
	*ret_slot = found;
	return OK;
}

static int find_key(struct token_key *handle, PKCS11_TOKEN *token, struct error *error)
{
	PKCS11_KEY *keys = NULL, *found = NULL;
	unsigned int count = 0;

	if (PKCS11_enumerate_keys(token, &keys, &count) != 0)
		return error_cause(error, ERR_UNAVAILABLE, "token %s tells no keys: %s", token->label,
		                   openssl_reason());
	for (unsigned int i = 0; i < count; i++) {
		if (!is_key(&handle->uri, &keys[i]))
			continue;
		if (found)
			return error_cause(error, ERR_REFUSED,
			                   "several keys of token %s are as the pkcs11: URI"
			                   " says",
			                   token->label);
		found = &keys[i];
	}
	if (!found)
		return error_cause(error, ERR_REFUSED,
		                   "token %s has no key that is as the pkcs11: URI says", token->label);
	handle->key = PKCS11_get_private_key(found);
	return handle->key ? OK
	                   : error_cause(error, ERR_REFUSED, "token %s does not give its key: %s",
	                                 token->label, openssl_reason());
}

static void let_go(struct token_key *handle)
{
	EVP_PKEY_free(handle->key);
	handle->key = NULL;
	if (handle->slots)
		PKCS11_release_all_slots(handle->context, handle->slots, handle->slot_count);
	handle->slots = NULL;
	handle->slot_count = 0;
	if (handle->loaded)
		PKCS11_CTX_unload(handle->context);
	handle->loaded = false;
}

/* From the module's start: what it knew of a token that was away may be wrong for good. */
static int find(struct token_key *handle, struct error *error)
{
	PKCS11_SLOT *slot = NULL;

	let_go(handle);
	ERR_clear_error();
	handle->loaded = PKCS11_CTX_load(handle->context, handle->uri.module_path) == 0;
	if (!handle->loaded ||
	    PKCS11_enumerate_slots(handle->context, &handle->slots, &handle->slot_count) != 0)
		return error_cause(error, ERR_UNAVAILABLE, "%s tells no tokens: %s",
		                   handle->uri.module_path, openssl_reason());
	int result = find_slot(handle, &slot, error);
	if (!result && PKCS11_open_session(slot, 0) != 0)
		result = error_cause(error, ERR_UNAVAILABLE, "token %s opens no session: %s",
		                     slot->token->label, openssl_reason());
	if (!result)
		result = log_in(handle, slot, error);
	if (!result)
		result = find_key(handle, slot->token, error);
	return result;
}

/* ---- the driver ---- */

static void close_key(void *opened)
{
	struct token_key *handle = opened;

	let_go(handle);
	if (handle->context)
		PKCS11_CTX_free(handle->context);
	if (handle->module)
		dlclose(handle->module);
	OPENSSL_cleanse(handle, sizeof *handle);
	free(handle);
}

static int load_module(struct token_key *handle, struct error *error)
{
	handle->context = PKCS11_CTX_new();
	if (!handle->context)
		return ERR_NO_MEMORY;
	handle->module = dlopen(handle->uri.module_path, RTLD_NOW | RTLD_LOCAL);
	return handle->module
	           ? OK
	           : error_cause(error, ERR_REFUSED, "the module cannot be loaded: %s", dlerror());
}

static int open_key(const struct key_source *source, const char *passphrase, void **ret_handle,
                    STACK_OF(X509) * *ret_certificates, struct error *error)
{
	struct token_key *handle = calloc(1, sizeof *handle);

	(void)ret_certificates; /* a token's certificates are anybody's who may write to it */
	if (!handle)
		return ERR_NO_MEMORY;
	int result = key_uri_parse(source->key, &handle->uri, error);
	if (!result && *handle->uri.pin_source)
		result = key_read_passphrase(handle->uri.pin_source, handle->pin, error);
	else if (!result && passphrase)
		memcpy(handle->pin, passphrase, strlen(passphrase) + 1);
	if (!result)
		result = load_module(handle, error);
	if (!result)
		result = find(handle, error);
	if (result) {
		close_key(handle);
		return result == ERR_UNAVAILABLE ? ERR_REFUSED : result;
	}
	*ret_handle = handle;
	return OK;
}

static int sign(void *opened, struct slice bytes, struct buf *out, struct error *error)
{
	struct token_key *handle = opened;

	if (handle->key && key_sign_evp(handle->key, bytes, out))
		return OK;
	int result = find(handle, error);
	if (!result && !key_sign_evp(handle->key, bytes, out))
		result =
			error_cause(error, ERR_UNAVAILABLE, "the token does not sign: %s", openssl_reason());
	return result == ERR_REFUSED || result == ERR_PIN ? ERR_UNAVAILABLE : result;
}

/* What modules do when they sign: they read and lock files of theirs (SoftHSM2), talk to a daemon
 * on this machine, to an appliance or to a device, and start threads. They can neither fork,
 * execute, listen, trace, nor create, write to, rename or remove a file by its name. */
static const struct confine_call module_calls[] = {
	{SCMP_SYS(openat), CONFINE_READ_ONLY},   {SCMP_SYS(newfstatat), CONFINE_ALWAYS},
	{SCMP_SYS(access), CONFINE_ALWAYS},      {SCMP_SYS(faccessat2), CONFINE_ALWAYS},
	{SCMP_SYS(readlink), CONFINE_ALWAYS},    {SCMP_SYS(getdents64), CONFINE_ALWAYS},
	{SCMP_SYS(fcntl), CONFINE_ALWAYS},       {SCMP_SYS(flock), CONFINE_ALWAYS},
	{SCMP_SYS(ioctl), CONFINE_ALWAYS},       {SCMP_SYS(socket), CONFINE_ALWAYS},
	{SCMP_SYS(connect), CONFINE_ALWAYS},     {SCMP_SYS(sendto), CONFINE_ALWAYS},
	{SCMP_SYS(recvfrom), CONFINE_ALWAYS},    {SCMP_SYS(sendmsg), CONFINE_ALWAYS},
	{SCMP_SYS(recvmsg), CONFINE_ALWAYS},     {SCMP_SYS(shutdown), CONFINE_ALWAYS},
	{SCMP_SYS(getsockopt), CONFINE_ALWAYS},  {SCMP_SYS(setsockopt), CONFINE_ALWAYS},
	{SCMP_SYS(getsockname), CONFINE_ALWAYS}, {SCMP_SYS(getpeername), CONFINE_ALWAYS},
	{SCMP_SYS(poll), CONFINE_ALWAYS},        {SCMP_SYS(ppoll), CONFINE_ALWAYS},
	{SCMP_SYS(select), CONFINE_ALWAYS},      {SCMP_SYS(pselect6), CONFINE_ALWAYS},
	{SCMP_SYS(pipe2), CONFINE_ALWAYS},       {SCMP_SYS(eventfd2), CONFINE_ALWAYS},
	{SCMP_SYS(clone), CONFINE_THREAD},       {SCMP_SYS(set_robust_list), CONFINE_ALWAYS},
	{SCMP_SYS(rseq), CONFINE_ALWAYS},        {SCMP_SYS(getuid), CONFINE_ALWAYS},
	{SCMP_SYS(geteuid), CONFINE_ALWAYS},     {SCMP_SYS(uname), CONFINE_ALWAYS},
	{SCMP_SYS(sysinfo), CONFINE_ALWAYS},     {SCMP_SYS(nanosleep), CONFINE_ALWAYS},
};

const struct key_driver key_pkcs11_driver = {
	.takes = takes,
	.open = open_key,
	.sign = sign,
	.close = close_key,
	.calls = {module_calls, sizeof module_calls / sizeof *module_calls},
};
