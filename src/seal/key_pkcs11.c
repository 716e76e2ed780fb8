/* Keys on PKCS#11 tokens. The module is third-party code that runs in this process; it is loaded
 * after the fork, so that no other process contains it.
 *
 * A token that becomes unavailable is searched again at the next signature. The PIN stays in memory
 * for this purpose. Wrong PINs lock a token, and a supervisor restarts a process that exits. A
 * rejected PIN is therefore never retried, and no PIN is tried while the token allows only one more
 * attempt. */
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
	void *module; /* kept open, so that reloading reads nothing from the disk */
	PKCS11_CTX *context;
	bool loaded;
	PKCS11_SLOT *slots;
	unsigned int slot_count;
	EVP_PKEY *key; /* NULL: must be searched (again) */
};

static bool takes(const char *source)
{
	return strncmp(source, KEY_URI_SCHEME, strlen(KEY_URI_SCHEME)) == 0;
}

/* ---- finding ---- */

/* libp11 has removed the padding. */
static bool matches(const struct key_uri_text *wanted, const char *found)
{
	return !wanted->given || (found && strcmp(wanted->data, found) == 0);
}

static bool is_token(const struct key_uri *uri, const PKCS11_TOKEN *token)
{
	return token->initialized && matches(&uri->token, token->label) &&
	       matches(&uri->manufacturer, token->manufacturer) &&
	       matches(&uri->serial, token->serialnr) && matches(&uri->model, token->model);
}

static bool is_key(const struct key_uri *uri, const PKCS11_KEY *key)
{
	return matches(&uri->object, key->label) &&
	       (!uri->id.given ||
	        slice_equal(slice_make(uri->id.data, uri->id.size), slice_make(key->id, key->id_len)));
}

/* libp11 passes on the module's error code (PKCS #11 section 5.1.6). Other errors, such as an
 * appliance that was unreachable for a moment, do not concern the PIN. */
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
		return error_cause(error, ERR_REFUSED,
		                   "token %s requires a PIN: set signer.passphrase_file", token->label);
	if (token->userPinLocked || token->userPinFinalTry || handle->pin_refused)
		return error_cause(error, ERR_PIN,
		                   "the PIN of token %s was rejected before and is not tried again%s",
		                   token->label,
		                   token->userPinLocked     ? "; the token is locked"
		                   : token->userPinFinalTry ? "; the token allows only one more attempt"
		                                            : "");
	ERR_clear_error();
	if (PKCS11_login(slot, 0, handle->pin) == 0)
		return OK;
	if (!is_pin_refused())
		return error_cause(error, ERR_UNAVAILABLE, "login to token %s failed: %s", token->label,
		                   openssl_reason());
	handle->pin_refused = true;
	return error_cause(error, ERR_PIN, "token %s rejected the PIN: %s", token->label,
	                   openssl_reason());
}

/* Requires exactly one match, since choosing among several is not safe. */
static int find_slot(struct token_key *handle, PKCS11_SLOT **ret_slot, struct error *error)
{
	PKCS11_SLOT *found = NULL;

	for (unsigned int i = 0; i < handle->slot_count; i++) {
		PKCS11_SLOT *slot = &handle->slots[i];
		if (!slot->token || !is_token(&handle->uri, slot->token))
			continue;
		if (found)
			return error_cause(error, ERR_REFUSED, "several tokens match the pkcs11: URI");
		found = slot;
	}
	if (!found)
		return error_cause(error, ERR_UNAVAILABLE, "no token matches the pkcs11: URI");
	*ret_slot = found;
	return OK;
}

static int find_key(struct token_key *handle, PKCS11_TOKEN *token, struct error *error)
{
	PKCS11_KEY *keys = NULL, *found = NULL;
	unsigned int count = 0;

	if (PKCS11_enumerate_keys(token, &keys, &count) != 0)
		return error_cause(error, ERR_UNAVAILABLE, "token %s does not list its keys: %s",
		                   token->label, openssl_reason());
	for (unsigned int i = 0; i < count; i++) {
		if (!is_key(&handle->uri, &keys[i]))
			continue;
		if (found)
			return error_cause(error, ERR_REFUSED, "several keys of token %s match the pkcs11: URI",
			                   token->label);
		found = &keys[i];
	}
	if (!found)
		return error_cause(error, ERR_REFUSED, "token %s has no key that matches the pkcs11: URI",
		                   token->label);
	handle->key = PKCS11_get_private_key(found);
	return handle->key ? OK
	                   : error_cause(error, ERR_REFUSED, "token %s does not provide its key: %s",
	                                 token->label, openssl_reason());
}

static void release(struct token_key *handle)
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

/* Reinitializes the module, whose state of a token that was unavailable may be invalid
 * permanently. */
static int find_token_key(struct token_key *handle, struct error *error)
{
	PKCS11_SLOT *slot = NULL;

	release(handle);
	ERR_clear_error();
	handle->loaded = PKCS11_CTX_load(handle->context, handle->uri.module_path) == 0;
	if (!handle->loaded ||
	    PKCS11_enumerate_slots(handle->context, &handle->slots, &handle->slot_count) != 0)
		return error_cause(error, ERR_UNAVAILABLE, "%s does not list its tokens: %s",
		                   handle->uri.module_path, openssl_reason());
	int result = find_slot(handle, &slot, error);
	if (!result && PKCS11_open_session(slot, 0) != 0)
		result = error_cause(error, ERR_UNAVAILABLE, "token %s does not open a session: %s",
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

	release(handle);
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

	(void)ret_certificates; /* not used: any user who may write to the token can change its
	                           certificates */
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
		result = find_token_key(handle, error);
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
	int result = find_token_key(handle, error);
	if (!result && !key_sign_evp(handle->key, bytes, out))
		result =
			error_cause(error, ERR_UNAVAILABLE, "the token failed to sign: %s", openssl_reason());
	return result == ERR_REFUSED || result == ERR_PIN ? ERR_UNAVAILABLE : result;
}

static EVP_PKEY *evp(void *opened)
{
	const struct token_key *handle = opened;

	return handle->key;
}

/* System calls that modules need for signing: they read and lock their own files (SoftHSM2),
 * communicate with a local daemon, an appliance or a device, and start threads. They cannot fork,
 * execute, listen or trace, nor create, write, rename or remove a file by name. */
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
	.evp = evp,
	.close = close_key,
	.calls = {module_calls, sizeof module_calls / sizeof *module_calls},
};
