#include "seal/signer_process.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ts.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confine.h"
#include "seal/certificate.h"
#include "seal/development.h"
#include "seal/key.h"
#include "seal/key_driver.h"
#include "seal/responder.h"
#include "seal/signer_attributes.h"
#include "seal/signer_checkpoint.h"
#include "seal/signer_log.h"
#include "seal/signer_marks.h"

#define SOCKET_NUMBER 3
#define CALLS_MAX 128
/* In the UUID arc, which requires no registration (ITU-T X.667). */
#define DEVELOPMENT_POLICY "2.25.246049200999522755544578053737302326459"

/* Key and certificates of the embedded timestamp authority. */
struct stamper {
	EVP_PKEY *key;                 /* NULL: there is none */
	STACK_OF(X509) * certificates; /* its own first */
};

struct process {
	struct key *keys[SIGNER_KEYS]; /* NULL: there is none */
	int in_force;                  /* an index, or SIGNER_NO_KEY */
	struct stamper timestamp;
	struct responder responder; /* zeroed: no embedded authority */
	struct buf roots;           /* PEM */
	struct buf timestamp_roots;
	struct signer_log log;
	struct signer_marks marks;
	EVP_PKEY *log_key; /* NULL: a trial without one */
	struct checkpoint_marks checkpoints;
};

/* System calls for the log and the socket, in addition to the basic ones. */
static const struct confine_call own_calls[] = {
	{SCMP_SYS(fdatasync), CONFINE_ALWAYS},
	{SCMP_SYS(fremovexattr), CONFINE_ALWAYS},
	{SCMP_SYS(ftruncate), CONFINE_ALWAYS},
};

int signer_process_confine(struct key *const *keys, struct error *error)
{
	struct confine_call calls[CALLS_MAX];
	size_t count = sizeof own_calls / sizeof *own_calls;

	memcpy(calls, own_calls, sizeof own_calls);
	for (int i = 0; i < SIGNER_KEYS; i++) {
		struct key_calls more = keys[i] ? key_calls(keys[i]) : (struct key_calls){0};
		if (more.count > CALLS_MAX - count)
			return error_cause(error, ERR_INTERNAL, "too many system calls");
		for (size_t j = 0; j < more.count; j++)
			calls[count++] = more.calls[j];
	}
	return confine_calls(calls, count, error);
}

static int isolate(int *socket, pid_t parent, struct error *error)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		return error_cause(error, ERR_REFUSED, "the parent has exited");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return error_cause(error, ERR_REFUSED, "prctl: %s", strerror(errno));
	prctl(PR_SET_NAME, "signer");
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (*socket != SOCKET_NUMBER && dup2(*socket, SOCKET_NUMBER) < 0)
		return error_cause(error, ERR_REFUSED, "dup2: %s", strerror(errno));
	*socket = SOCKET_NUMBER;
	if (close_range(SOCKET_NUMBER + 1, ~0U, 0) != 0)
		return error_cause(error, ERR_REFUSED, "close_range: %s", strerror(errno));
	return confine_memory(error);
}

/* ---- keys ---- */

static int read_pem(const char *directory, const char *name, char path[PATH_MAX], struct buf *out,
                    struct error *error)
{
	if (snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX)
		return error_cause(error, ERR_IO, "path too long");
	return key_read_secret(path, out, error);
}

static int load_stamper(const char *directory, struct process *process, struct error *error)
{
	struct buf pem;
	struct stamper *stamper = &process->timestamp;
	char path[PATH_MAX];

	buf_init(&pem, PEM_FILE_MAX);
	int result = read_pem(directory, "timestamp.pem", path, &pem, error);
	BIO *bio = !result ? BIO_new_mem_buf(pem.data, (int)pem.size) : NULL;
	stamper->key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, "") : NULL;
	BIO_free(bio);
	if (!result)
		result = certificates_read(buf_slice(&pem), &stamper->certificates, error);
	if (pem.data)
		OPENSSL_cleanse(pem.data, pem.size);
	buf_clear(&pem);
	if (!result && !stamper->key)
		result = error_cause(error, ERR_REFUSED, "%s: no usable private key: %s", path,
		                     openssl_reason());
	if (!result)
		result = read_pem(directory, "timestamp-root.pem", path, &pem, error);
	CERTIFICATES_AUTO STACK_OF(X509) *root = NULL;
	if (!result)
		result = certificates_read(buf_slice(&pem), &root, error);
	if (!result)
		result = certificates_write(root, &process->timestamp_roots);
	while (!result && sk_X509_num(root) > 0)
		if (!sk_X509_push(stamper->certificates, sk_X509_shift(root)))
			result = ERR_NO_MEMORY;
	buf_free(&pem);
	return result;
}

static int load_development(struct process *process, const char *directory, struct error *error)
{
	char key[PATH_MAX], root[PATH_MAX];
	struct key_source source = {.key = key, .root = root};

	if (snprintf(key, sizeof key, "%s/report.pem", directory) >= PATH_MAX ||
	    snprintf(root, sizeof root, "%s/report-root.pem", directory) >= PATH_MAX)
		return error_cause(error, ERR_IO, "path too long");
	int result = development_create(directory, error);
	if (!result)
		result = key_open(&source, &process->keys[SIGNER_PRESENT], error);
	if (!result)
		result = load_stamper(directory, process, error);
	if (!result)
		result = development_append_former_roots(directory, &development_names[DEVELOPMENT_REPORT],
		                                         &process->roots, error);
	if (!result)
		result = development_append_former_roots(
			directory, &development_names[DEVELOPMENT_TIMESTAMP], &process->timestamp_roots, error);
	return !result ? responder_load(directory, &process->responder, error) : result;
}

static int open_named(const struct key_source *source, const char *setting, struct key **ret_key,
                      struct error *error)
{
	char cause[ERROR_CAUSE_MAX];
	int result = key_open(source, ret_key, error);

	if (!result)
		return OK;
	snprintf(cause, sizeof cause, "%s", error->cause);
	return error_cause(error, result, "%s: %s", setting, cause);
}

static int load_given(struct process *process, const struct signer_options *options,
                      struct error *error)
{
	int result = open_named(&options->key, "signer.key", &process->keys[SIGNER_PRESENT], error);

	if (!result && options->next.key)
		result = open_named(&options->next, "signer.next_key", &process->keys[SIGNER_NEXT], error);
	return result;
}

static int keep_roots(struct process *process)
{
	int result = OK;

	for (int i = 0; !result && i < SIGNER_KEYS; i++) {
		X509 *root = process->keys[i] ? key_root(process->keys[i]) : NULL;
		if (root)
			result = certificate_write(root, &process->roots);
	}
	buf_add_slice(&process->roots, buf_slice(&process->timestamp_roots));
	return !result ? buf_check(&process->roots) : result;
}

/* Checks that one of the keys is valid now: the next key may not be valid yet, and after a change
 * the present one may have expired. */
static int check_times(const struct process *process, struct error *error)
{
	int64_t now_us = clock_now_us();
	const struct key *next = process->keys[SIGNER_NEXT];
	int result = key_check_time(process->keys[SIGNER_PRESENT], now_us, error);

	if (result == ERR_UNAVAILABLE && next && key_check_time(next, now_us, NULL) == 0)
		return OK;
	if (result != ERR_UNAVAILABLE)
		return result;
	char cause[ERROR_CAUSE_MAX];
	snprintf(cause, sizeof cause, "%s", error->cause);
	return error_cause(error, ERR_REFUSED, "signer.key: %s", cause);
}

static int load(struct process *process, const struct signer_options *options, struct error *error)
{
	int result = options->development ? load_development(process, options->directory, error)
	                                  : load_given(process, options, error);
	if (!result)
		result = check_times(process, error);
	return !result ? keep_roots(process) : result;
}

/* Makes a trial timestamp signature, so that libraries read the files that they need for their
 * first use. The signing keys were tried when they were opened. */
static int try_timestamp_key(const struct process *process, struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	tzset();
	if (process->timestamp.key &&
	    !key_sign_evp(process->timestamp.key, slice_of("a trial at start"), &out))
		return error_cause(error, ERR_REFUSED, "the key failed to sign: %s", openssl_reason());
	return OK;
}

/* ---- responses ---- */

/* The result of a request: success, or a reason. */
struct answer {
	enum signer_outcome outcome;
	const char *reason;
};
static const struct answer done = {SIGNER_DONE, NULL};

static struct answer refusal(const char *reason)
{
	return (struct answer){SIGNER_REFUSED, reason};
}

static struct answer record(struct process *process, const struct signer_log_entry *entry,
                            struct slice reason)
{
	int result = signer_log_add(&process->log, entry, reason, NULL);

	if (!result)
		return done;
	if (result == ERR_NO_SPACE)
		return (struct answer){SIGNER_NO_SPACE, "no space is left for the log"};
	return (struct answer){SIGNER_EXITS, "the log cannot be written"};
}

static struct answer record_signature(struct process *process, const char *purpose,
                                      const struct sha256 *digest)
{
	struct signer_log_entry entry = {.purpose = slice_of(purpose), .sha256 = *digest};

	return record(process, &entry, slice_make(NULL, 0));
}

/* Adds that the recorded signature was not made. The record precedes the signature, so that no
 * signature exists without one. */
static struct answer record_failure(struct process *process, const struct sha256 *digest,
                                    struct answer failure)
{
	struct answer logged = record_signature(process, "not_signed", digest);

	return logged.outcome == SIGNER_EXITS ? logged : failure;
}

static X509 *certificate_of(const struct process *process, int index)
{
	const struct key *key = index >= 0 && index < SIGNER_KEYS ? process->keys[index] : NULL;

	return key ? sk_X509_value(key_certificates(key), 0) : NULL;
}

/* Returns whether the attributes name another key of this process: the caller began with the
 * previously active key and must begin again. */
static bool is_for_another(const struct process *process, struct slice bytes)
{
	for (int i = 0; i < SIGNER_KEYS; i++)
		if (certificate_of(process, i) &&
		    !signer_attributes_problem(bytes, certificate_of(process, i)))
			return true;
	return false;
}

static struct answer answer_sign(struct process *process, uint8_t purpose, struct slice bytes,
                                 struct buf *out)
{
	static const char *const purposes[] = {
		[SIGNER_REPORT] = "report",
		[SIGNER_ARCHIVE] = "archive",
		[SIGNER_LIST] = "signers",
	};
	/* Static, because the response refers to its text. */
	static struct error why;
	struct sha256 digest = sha256_of(bytes.data, bytes.size);

	if (purpose >= sizeof purposes / sizeof *purposes)
		return refusal("unknown purpose");
	if (process->in_force == SIGNER_NO_KEY)
		return (struct answer){SIGNER_TRY_LATER, "none of this node's keys is active"};
	assert(process->in_force >= 0 && process->in_force < SIGNER_KEYS);
	struct key *key = process->keys[process->in_force];
	assert(key);
	const char *problem =
		signer_attributes_problem(bytes, certificate_of(process, process->in_force));
	if (problem && is_for_another(process, bytes))
		return (struct answer){SIGNER_TRY_LATER, "another key has become active"};
	if (problem)
		return refusal(problem);
	if (key_check_time(key, clock_now_us(), &why) != 0)
		return (struct answer){SIGNER_TRY_LATER, why.cause};
	struct answer logged = record_signature(process, purposes[purpose], &digest);
	if (logged.outcome != SIGNER_DONE)
		return logged;
	if (key_sign(key, bytes, out, &why) != 0)
		return record_failure(process, &digest, (struct answer){SIGNER_KEY_FAILS, why.cause});
	return done;
}

/* Not logged, since a trial signature covers no document. */
static struct answer answer_probe(struct process *process)
{
	BUF_AUTO struct buf out;
	static struct error why;

	buf_init(&out, SIGNER_PACKET_MAX);
	if (process->in_force == SIGNER_NO_KEY)
		return (struct answer){SIGNER_TRY_LATER, "none of this node's keys is active"};
	assert(process->in_force >= 0 && process->in_force < SIGNER_KEYS &&
	       process->keys[process->in_force]);
	if (key_sign(process->keys[process->in_force], slice_of("a trial"), &out, &why) != 0)
		return (struct answer){SIGNER_KEY_FAILS, why.cause};
	return done;
}

/* Logs the change of the active key. */
static struct answer answer_use(struct process *process, struct slice payload)
{
	int wanted = payload.size == 1 ? (int)(signed char)payload.data[0] : SIGNER_KEYS;
	struct certificate_facts facts;

	if (wanted != SIGNER_NO_KEY && !certificate_of(process, wanted))
		return refusal("there is no such key");
	if (wanted == process->in_force)
		return done;
	bool taken = wanted != SIGNER_NO_KEY;
	X509 *certificate = certificate_of(process, taken ? wanted : process->in_force);
	assert(certificate);
	if (certificate_describe(certificate, &facts, NULL) != 0)
		return (struct answer){SIGNER_TRY_LATER, "no memory"};
	struct answer logged =
		record_signature(process, taken ? "key_taken" : "key_laid_down", &facts.sha256);
	if (logged.outcome == SIGNER_DONE)
		process->in_force = wanted;
	return logged;
}

static ASN1_INTEGER *random_serial(struct TS_resp_ctx *context, void *data)
{
	unsigned char bytes[16];

	(void)context, (void)data;
	random_bytes(bytes, sizeof bytes);
	bytes[0] = (bytes[0] & 0x7f) | 0x40;
	BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
	ASN1_INTEGER *serial = number ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
	BN_free(number);
	return serial;
}

static TS_RESP *make_response(const struct process *process, struct slice request)
{
	TS_RESP_CTX *context = TS_RESP_CTX_new();
	ASN1_OBJECT *policy = OBJ_txt2obj(DEVELOPMENT_POLICY, 1);
	BIO *bio = BIO_new_mem_buf(request.data, (int)request.size);
	/* OpenSSL adds the signer's own certificate. */
	STACK_OF(X509) *issuers = sk_X509_dup(process->timestamp.certificates);
	TS_RESP *response = NULL;

	if (context && policy && bio && issuers && sk_X509_shift(issuers) &&
	    TS_RESP_CTX_set_signer_cert(context, sk_X509_value(process->timestamp.certificates, 0)) &&
	    TS_RESP_CTX_set_signer_key(context, process->timestamp.key) &&
	    TS_RESP_CTX_set_certs(context, issuers) &&
	    TS_RESP_CTX_set_signer_digest(context, EVP_sha256()) &&
	    TS_RESP_CTX_set_ess_cert_id_digest(context, EVP_sha256()) &&
	    TS_RESP_CTX_add_md(context, EVP_sha256()) && TS_RESP_CTX_add_md(context, EVP_sha512()) &&
	    TS_RESP_CTX_set_def_policy(context, policy) && TS_RESP_CTX_set_accuracy(context, 1, 0, 0) &&
	    TS_RESP_CTX_set_clock_precision_digits(context, 6)) {
		TS_RESP_CTX_set_serial_cb(context, random_serial, NULL);
		response = TS_RESP_create_response(context, bio);
	}
	sk_X509_free(issuers);
	BIO_free(bio);
	ASN1_OBJECT_free(policy);
	TS_RESP_CTX_free(context);
	return response;
}

/* Returns the digest to log: a SHA-256 imprint itself, or the SHA-256 of a longer one. */
static bool request_imprint(struct slice request, struct sha256 *ret_imprint)
{
	const unsigned char *position = (const unsigned char *)request.data;
	TS_REQ *parsed = d2i_TS_REQ(NULL, &position, (long)request.size);
	bool usable = false;

	if (parsed) {
		const ASN1_OCTET_STRING *hash = TS_MSG_IMPRINT_get_msg(TS_REQ_get_msg_imprint(parsed));
		const unsigned char *bytes = ASN1_STRING_get0_data(hash);
		int size = ASN1_STRING_length(hash);
		usable = size == SHA256_SIZE || size == SHA512_SIZE;
		if (size == SHA256_SIZE)
			memcpy(ret_imprint->bytes, bytes, SHA256_SIZE);
		else if (usable)
			*ret_imprint = sha256_of(bytes, SHA512_SIZE);
	}
	TS_REQ_free(parsed);
	return usable;
}

static struct answer answer_timestamp(struct process *process, struct slice request,
                                      struct buf *out)
{
	struct sha256 imprint;
	unsigned char *der = NULL;

	if (!process->timestamp.key)
		return refusal("no embedded timestamp authority");
	if (request.size > TIMESTAMP_REQUEST_MAX || !request_imprint(request, &imprint))
		return refusal("not a timestamp request over SHA-256 or SHA-512");
	struct answer logged = record_signature(process, "timestamp", &imprint);
	if (logged.outcome != SIGNER_DONE)
		return logged;
	TS_RESP *response = make_response(process, request);
	int size = response ? i2d_TS_RESP(response, &der) : -1;
	if (size > 0)
		buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	TS_RESP_free(response);
	return size > 0
	           ? done
	           : record_failure(process, &imprint, refusal("the timestamp could not be created"));
}

static struct answer answer_ocsp(struct process *process, struct slice request, struct buf *out)
{
	struct sha256 signed_digest;

	if (responder_answer(&process->responder, request, out, &signed_digest, NULL) != 0)
		return refusal("no embedded authority answers this request");
	return record_signature(process, "ocsp", &signed_digest);
}

static struct answer answer_mark(struct process *process, enum signer_request kind,
                                 struct slice payload, struct buf *out)
{
	struct slice store_id = slice_make(payload.data, SIGNER_STORE_ID_SIZE);
	struct signer_mark mark;
	size_t head = SIGNER_STORE_ID_SIZE + (kind == SIGNER_REQUEST_GET_MARK ? 0 : sizeof mark);

	if (payload.size < head || !signer_store_id_valid(store_id))
		return refusal("not a store's mark");
	struct slice reason = slice_make(payload.data + head, payload.size - head);
	struct signer_mark known = signer_marks_find(&process->marks, store_id);
	if (kind == SIGNER_REQUEST_GET_MARK) {
		buf_add(out, &known, sizeof known);
		return done;
	}
	memcpy(&mark, payload.data + SIGNER_STORE_ID_SIZE, sizeof mark);
	bool accepting = kind == SIGNER_REQUEST_ACCEPT_MARK;
	if (mark.round < 0 || reason.size > SIGNER_LOG_REASON_MAX || accepting != (reason.size > 0))
		return refusal("not a store's mark");
	bool same = mark.round == known.round && sha256_equal(&mark.root, &known.root);
	if (same && !accepting)
		return done;
	if (mark.round <= known.round && !accepting)
		return refusal("the known mark is later, or has another root");
	struct signer_log_entry entry = {
		.purpose = slice_of(accepting ? "rollback_accepted" : "round"),
		.sha256 = mark.root,
		.store = store_id,
		.round = mark.round,
	};
	struct answer logged = record(process, &entry, reason);
	if (logged.outcome == SIGNER_DONE)
		signer_marks_set(&process->marks, store_id, &mark);
	return logged;
}

/* ---- checkpoints ---- */

static struct answer answer_get_checkpoint(struct process *process, struct slice origin,
                                           struct buf *out)
{
	char text[NOTE_NAME_MAX + 1];
	if (origin.size > NOTE_NAME_MAX || memchr(origin.data, '\0', origin.size))
		return refusal("not an origin");
	memcpy(text, origin.data, origin.size);
	text[origin.size] = '\0';
	const struct checkpoint known = checkpoint_marks_find(&process->checkpoints, text);
	buf_add(out, &known.size, sizeof known.size);
	buf_add(out, &known.root, sizeof known.root);
	return done;
}

static struct answer answer_checkpoint(struct process *process, struct slice request,
                                       struct buf *out)
{
	struct slice text;
	struct checkpoint checkpoint;
	char store[SIGNER_STORE_ID_SIZE + 1];
	uint8_t signature[ED25519_SIGNATURE_SIZE];
	const char *problem = checkpoint_check(&process->checkpoints, request, &text, &checkpoint);
	if (problem || !process->log_key)
		return refusal(problem ? problem : "there is no key");
	const struct signer_log_entry entry = checkpoint_entry(&checkpoint, store);
	struct answer logged = record(process, &entry, slice_make(NULL, 0));
	if (logged.outcome != SIGNER_DONE)
		return logged;
	checkpoint_marks_set(&process->checkpoints, &checkpoint);
	if (!ed25519_sign(process->log_key, text, signature))
		return (struct answer){SIGNER_TRY_LATER, "no memory"};
	buf_add(out, signature, sizeof signature);
	return done;
}

static bool send_answer(int socket, struct answer answer, struct slice payload)
{
	BUF_AUTO struct buf packet;

	/* Nothing that was signed goes with a refusal. */
	assert((answer.outcome == SIGNER_DONE) == !answer.reason);
	buf_init(&packet, SIGNER_PACKET_MAX);
	buf_add_byte(&packet, (char)answer.outcome);
	buf_add_slice(&packet, answer.reason ? slice_of(answer.reason) : payload);
	return buf_check(&packet) == 0 &&
	       write(socket, packet.data, packet.size) == (ssize_t)packet.size;
}

static struct answer decide(struct process *process, struct slice packet, struct buf *out)
{
	if (packet.size <= SIGNER_HEAD_SIZE || packet.size > SIGNER_HEAD_SIZE + SIGNER_BYTES_MAX)
		return refusal("unknown request");
	struct slice payload =
		slice_make(packet.data + SIGNER_HEAD_SIZE, packet.size - SIGNER_HEAD_SIZE);
	enum signer_request kind = (enum signer_request)packet.data[0];
	switch (kind) {
	case SIGNER_REQUEST_SIGN: return answer_sign(process, (uint8_t)packet.data[1], payload, out);
	case SIGNER_REQUEST_USE: return answer_use(process, payload);
	case SIGNER_REQUEST_PROBE: return answer_probe(process);
	case SIGNER_REQUEST_TIMESTAMP: return answer_timestamp(process, payload, out);
	case SIGNER_REQUEST_OCSP: return answer_ocsp(process, payload, out);
	case SIGNER_REQUEST_GET_MARK:
	case SIGNER_REQUEST_SET_MARK:
	case SIGNER_REQUEST_ACCEPT_MARK: return answer_mark(process, kind, payload, out);
	case SIGNER_REQUEST_GET_CHECKPOINT: return answer_get_checkpoint(process, payload, out);
	case SIGNER_REQUEST_CHECKPOINT: return answer_checkpoint(process, payload, out);
	}
	return refusal("unknown request");
}

/* Serves one request. Returns false when the process must exit. */
static bool serve_one(struct process *process, int socket, struct slice packet)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX - SIGNER_ANSWER_HEAD_SIZE);
	struct answer answer = decide(process, packet, &out);
	ERR_clear_error();
	return send_answer(socket, answer, buf_slice(&out)) && answer.outcome != SIGNER_EXITS;
}

static bool greet(const struct process *process, int socket)
{
	for (int i = 0; i < SIGNER_KEYS; i++) {
		BUF_AUTO struct buf certificates;
		buf_init(&certificates, SIGNER_PACKET_MAX - SIGNER_ANSWER_HEAD_SIZE);
		if ((process->keys[i] &&
		     certificates_write(key_certificates(process->keys[i]), &certificates) != 0) ||
		    !send_answer(socket, done, buf_slice(&certificates)))
			return false;
	}
	uint8_t key[ED25519_KEY_SIZE];
	if (process->log_key)
		ed25519_public(process->log_key, key);
	return send_answer(socket, done, buf_slice(&process->roots)) &&
	       send_answer(socket, done, buf_slice(&process->timestamp_roots)) &&
	       send_answer(socket, done, slice_make(key, process->log_key ? sizeof key : 0));
}

static int load_log_key(struct process *process, const struct signer_options *options,
                        struct error *error)
{
	char path[PATH_MAX];
	const char *given = options->log_key;
	if (!given && snprintf(path, sizeof path, "%s/" SIGNER_LOG_KEY_NAME, options->directory) >=
	                  (int)sizeof path)
		return error_cause(error, ERR_IO, "path too long");
	/* A given key may be that of other nodes, too: it is never made here. */
	int result =
		ed25519_open(given ? given : path, !given && !options->trial, &process->log_key, error);
	return result == ERR_NOT_FOUND && !given && options->trial ? OK : result;
}

/* A signer_log_visit callback; its context is the process. */
static int read_entry(void *context, const struct signer_log_entry *entry)
{
	struct process *process = context;
	int result = signer_marks_read_entry(&process->marks, entry);
	return result ? result : checkpoint_marks_read_entry(&process->checkpoints, entry);
}

/* Opens every file first; after the confinement none can be opened. */
static int prepare(struct process *process, const struct signer_options *options,
                   struct error *error)
{
	int result = load(process, options, error);
	if (!result)
		result = try_timestamp_key(process, error);
	if (!result)
		result = load_log_key(process, options, error);
	if (!result && !options->trial)
		result = signer_log_open(options->directory, read_entry, process, &process->log, error);
	return !result ? signer_process_confine(process->keys, error) : result;
}

int signer_process_run(int socket, pid_t parent, const struct signer_options *options)
{
	static char packet[SIGNER_PACKET_MAX];
	static struct process process = {.log = {.file = -1}};
	struct error error = {0};
	ssize_t size;

	buf_init(&process.roots, PEM_FILE_MAX);
	buf_init(&process.timestamp_roots, PEM_FILE_MAX);
	int result = isolate(&socket, parent, &error);
	if (!result)
		result = prepare(&process, options, &error);
	if (result) {
		struct answer why = refusal(error.cause[0] ? error.cause : "out of memory");
		if (result == ERR_PIN)
			why.outcome = SIGNER_PIN_REFUSED;
		send_answer(socket, why, slice_make(NULL, 0));
		return 1;
	}
	if (!greet(&process, socket))
		return 1;
	if (options->trial)
		return 0;
	while ((size = read(socket, packet, sizeof packet)) > 0 || (size < 0 && errno == EINTR))
		if (size > 0 && !serve_one(&process, socket, slice_make(packet, (size_t)size)))
			return 1;
	return 0;
}
