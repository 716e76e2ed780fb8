#include "seal/signer_process.h"

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

#include "base/confine.h"
#include "base/file.h"
#include "seal/certificate.h"
#include "seal/development.h"
#include "seal/signer_attributes.h"
#include "seal/signer_log.h"
#include "seal/signer_marks.h"

#define SOCKET_NUMBER 3
/* In the arc of UUIDs, which needs no registration (ITU-T X.667). */
#define DEVELOPMENT_POLICY "2.25.246049200999522755544578053737302326459"

struct identity {
	EVP_PKEY *key;
	STACK_OF(X509) * certificates; /* signer first */
};

struct process {
	struct identity report;
	struct identity timestamp; /* key NULL: no embedded authority */
	struct buf roots;          /* PEM */
	struct buf timestamp_roots;
	struct signer_log log;
	struct signer_marks marks;
};

/* Writing the log, and the socket: what is beyond the basic calls. */
static const struct confine_call own_calls[] = {
	{SCMP_SYS(fdatasync), CONFINE_ALWAYS},
	{SCMP_SYS(ftruncate), CONFINE_ALWAYS},
};

int signer_process_confine(struct error *error)
{
	return confine_calls(own_calls, sizeof own_calls / sizeof *own_calls, error);
}

static int isolate(int *socket, pid_t parent, struct error *error)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		return error_cause(error, ERR_REFUSED, "the parent is gone");
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

static int no_passphrase(char *text, int size, int writing, void *context)
{
	(void)text, (void)size, (void)writing, (void)context;
	return -1; /* or OpenSSL would ask at the terminal */
}

static int read_key(const char *path, EVP_PKEY **ret_key, struct error *error)
{
	struct buf pem;

	buf_init(&pem, PEM_FILE_MAX);
	int result = file_read_whole(path, &pem, error);
	BIO *bio = result == 0 ? BIO_new_mem_buf(pem.data, (int)pem.size) : NULL;
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
	BIO_free(bio);
	if (pem.data)
		OPENSSL_cleanse(pem.data, pem.size);
	buf_free(&pem);
	if (result == 0 && !key)
		return error_cause(error, ERR_REFUSED, "%s: no usable private key: %s", path,
		                   openssl_reason());
	*ret_key = key;
	return result;
}

static int load_identity(const char *key_path, const char *certificates_path,
                         struct identity *identity, struct error *error)
{
	BUF_AUTO struct buf pem;

	buf_init(&pem, PEM_FILE_MAX);
	int result = read_key(key_path, &identity->key, error);
	if (result == 0)
		result = file_read_whole(certificates_path, &pem, error);
	if (result == 0)
		result = certificates_read(buf_slice(&pem), &identity->certificates, error);
	if (result != 0)
		return result;
	if (X509_check_private_key(sk_X509_value(identity->certificates, 0), identity->key) != 1)
		return error_cause(error, ERR_REFUSED,
		                   "the first certificate in %s is not of the key in %s", certificates_path,
		                   key_path);
	if (EVP_PKEY_get_base_id(identity->key) != EVP_PKEY_EC &&
	    EVP_PKEY_get_base_id(identity->key) != EVP_PKEY_RSA)
		return error_cause(error, ERR_REFUSED, "%s: neither an EC nor an RSA key", key_path);
	return 0;
}

/* One of the development pairs: the signer, and its root behind it. */
static int load_pair(const char *directory, const char *name, const char *root_name,
                     struct identity *identity, struct buf *roots, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *root = NULL;
	BUF_AUTO struct buf pem;
	char path[PATH_MAX];
	char root_path[PATH_MAX];

	buf_init(&pem, PEM_FILE_MAX);
	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path ||
	    (size_t)snprintf(root_path, sizeof root_path, "%s/%s", directory, root_name) >=
	        sizeof root_path)
		return error_cause(error, ERR_IO, "path too long");
	int result = load_identity(path, path, identity, error);
	if (result == 0)
		result = file_read_whole(root_path, &pem, error);
	if (result == 0)
		result = certificates_read(buf_slice(&pem), &root, error);
	if (result != 0)
		return result;
	buf_add_slice(roots, buf_slice(&pem));
	X509 *certificate = sk_X509_value(root, 0);
	if (!X509_up_ref(certificate) || !sk_X509_push(identity->certificates, certificate))
		return ERR_NO_MEMORY;
	return buf_check(roots);
}

/* What other certificates sign no verifier takes. They may have expired since. */
static int check_path(const struct identity *identity, struct error *error)
{
	CERTIFICATES_AUTO STACK_OF(X509) *path = NULL;
	int result = certificate_path(sk_X509_value(identity->certificates, 0), identity->certificates,
	                              NULL, PATH_SIGNATURE, TIME_NONE, &path, error);

	return result == ERR_INVALID_EVIDENCE ? ERR_REFUSED : result;
}

static int load(struct process *process, const struct signer_options *options, struct error *error)
{
	if (!options->development) {
		int result =
			load_identity(options->key_path, options->certificates_path, &process->report, error);
		return result == 0 ? check_path(&process->report, error) : result;
	}
	int result = development_create(options->directory, error);
	if (result == 0)
		result = load_pair(options->directory, "report.pem", "report-root.pem", &process->report,
		                   &process->roots, error);
	if (result == 0)
		result = load_pair(options->directory, "timestamp.pem", "timestamp-root.pem",
		                   &process->timestamp, &process->timestamp_roots, error);
	buf_add_slice(&process->roots, buf_slice(&process->timestamp_roots));
	return result == 0 ? buf_check(&process->roots) : result;
}

static bool sign_bytes(EVP_PKEY *key, struct slice bytes, struct buf *out)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const unsigned char *data = (const unsigned char *)bytes.data;
	size_t size = 0;
	bool ready = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
	             EVP_DigestSign(context, NULL, &size, data, bytes.size) == 1;
	unsigned char *signature = ready ? (unsigned char *)buf_extend(out, size) : NULL;
	size_t room = size;
	bool signed_well =
		signature && EVP_DigestSign(context, signature, &size, data, bytes.size) == 1;

	EVP_MD_CTX_free(context);
	if (signed_well)
		out->size -= room - size; /* an ECDSA signature is often shorter than its bound */
	return signed_well;
}

/* What libraries read from files at their first use they read now. */
static int try_keys(const struct process *process, struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	tzset();
	if (!sign_bytes(process->report.key, slice_of("a trial at start"), &out) ||
	    (process->timestamp.key &&
	     !sign_bytes(process->timestamp.key, slice_of("a trial at start"), &out)))
		return error_cause(error, ERR_REFUSED, "the key does not sign: %s", openssl_reason());
	return OK;
}

/* ---- answers ---- */

/* How a request ends: done, or the reason why it is not. */
struct answer {
	enum signer_outcome outcome;
	const char *reason;
};
static const struct answer done = {SIGNER_DONE, NULL};

static struct answer refusal(const char *reason)
{
	return (struct answer){SIGNER_REFUSES, reason};
}

static struct answer record(struct process *process, const struct signer_log_entry *entry,
                            struct slice reason)
{
	int result = signer_log_add(&process->log, entry, reason, NULL);

	if (!result)
		return done;
	if (result == ERR_NO_SPACE)
		return (struct answer){SIGNER_HAS_NO_SPACE, "no space is left for the log"};
	return (struct answer){SIGNER_ENDS, "the log cannot be written"};
}

static struct answer record_signature(struct process *process, const char *purpose,
                                      const struct sha256 *digest)
{
	struct signer_log_entry entry = {.purpose = slice_of(purpose), .sha256 = *digest};

	return record(process, &entry, slice_make(NULL, 0));
}

static struct answer answer_sign(struct process *process, uint8_t purpose, struct slice bytes,
                                 struct buf *out)
{
	static const char *const purposes[] = {
		[SIGNER_REPORT] = "report",
		[SIGNER_ARCHIVE] = "archive",
	};
	struct sha256 digest = sha256_of(bytes.data, bytes.size);

	if (purpose >= sizeof purposes / sizeof *purposes)
		return refusal("unknown purpose");
	const char *problem =
		signer_attributes_problem(bytes, sk_X509_value(process->report.certificates, 0));
	if (problem)
		return refusal(problem);
	struct answer logged = record_signature(process, purposes[purpose], &digest);
	if (logged.outcome != SIGNER_DONE)
		return logged;
	return sign_bytes(process->report.key, bytes, out) ? done : refusal("the key does not sign");
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
	/* The signer's own certificate goes in by itself. */
	STACK_OF(X509) *issuers = sk_X509_dup(process->timestamp.certificates);
	TS_RESP *response = NULL;

	if (context && policy && bio && issuers && sk_X509_shift(issuers) &&
	    TS_RESP_CTX_set_signer_cert(context, sk_X509_value(process->timestamp.certificates, 0)) &&
	    TS_RESP_CTX_set_signer_key(context, process->timestamp.key) &&
	    TS_RESP_CTX_set_certs(context, issuers) &&
	    TS_RESP_CTX_set_signer_digest(context, EVP_sha256()) &&
	    TS_RESP_CTX_set_ess_cert_id_digest(context, EVP_sha256()) &&
	    TS_RESP_CTX_add_md(context, EVP_sha256()) && TS_RESP_CTX_set_def_policy(context, policy) &&
	    TS_RESP_CTX_set_accuracy(context, 1, 0, 0) &&
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

static bool request_imprint(struct slice request, struct sha256 *ret_imprint)
{
	const unsigned char *position = (const unsigned char *)request.data;
	TS_REQ *parsed = d2i_TS_REQ(NULL, &position, (long)request.size);
	bool usable = false;

	if (parsed) {
		const ASN1_OCTET_STRING *hash = TS_MSG_IMPRINT_get_msg(TS_REQ_get_msg_imprint(parsed));
		usable = ASN1_STRING_length(hash) == SHA256_SIZE;
		if (usable)
			memcpy(ret_imprint->bytes, ASN1_STRING_get0_data(hash), SHA256_SIZE);
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
		return refusal("not a timestamp request over SHA-256");
	struct answer logged = record_signature(process, "timestamp", &imprint);
	if (logged.outcome != SIGNER_DONE)
		return logged;
	TS_RESP *response = make_response(process, request);
	int size = response ? i2d_TS_RESP(response, &der) : -1;
	if (size > 0)
		buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	TS_RESP_free(response);
	return size > 0 ? done : refusal("no timestamp could be made");
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
		return refusal("the store had come further, or had another root");
	struct signer_log_entry entry = {
		.purpose = slice_of(accepting ? "rollback_accepted" : "round"),
		.sha256 = mark.root,
		.store = store_id,
		.round = mark.round,
	};
	struct answer logged = record(process, &entry, reason);
	if (logged.outcome == SIGNER_DONE)
		signer_marks_put(&process->marks, store_id, &mark);
	return logged;
}

static bool send_answer(int socket, struct answer answer, struct slice payload)
{
	BUF_AUTO struct buf packet;

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
	case SIGNER_REQUEST_TIMESTAMP: return answer_timestamp(process, payload, out);
	case SIGNER_REQUEST_GET_MARK:
	case SIGNER_REQUEST_SET_MARK:
	case SIGNER_REQUEST_ACCEPT_MARK: return answer_mark(process, kind, payload, out);
	}
	return refusal("unknown request");
}

/* False when it is to end. */
static bool serve_one(struct process *process, int socket, struct slice packet)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX - SIGNER_ANSWER_HEAD_SIZE);
	struct answer answer = decide(process, packet, &out);
	ERR_clear_error();
	return send_answer(socket, answer, buf_slice(&out)) && answer.outcome != SIGNER_ENDS;
}

static bool greet(const struct process *process, int socket)
{
	BUF_AUTO struct buf certificates;

	buf_init(&certificates, SIGNER_PACKET_MAX - SIGNER_ANSWER_HEAD_SIZE);
	return certificates_write(process->report.certificates, &certificates) == 0 &&
	       send_answer(socket, done, buf_slice(&certificates)) &&
	       send_answer(socket, done, buf_slice(&process->roots)) &&
	       send_answer(socket, done, buf_slice(&process->timestamp_roots));
}

/* Everything that needs a file first, then nothing can be opened any more. */
static int prepare(struct process *process, const struct signer_options *options,
                   struct error *error)
{
	int result = load(process, options, error);
	if (result == 0)
		result = signer_log_open(options->directory, signer_marks_learn, &process->marks,
		                         &process->log, error);
	if (result == 0)
		result = try_keys(process, error);
	return result == 0 ? signer_process_confine(error) : result;
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
	if (result == 0)
		result = prepare(&process, options, &error);
	if (result != 0) {
		send_answer(socket, refusal(error.cause[0] ? error.cause : "out of memory"),
		            slice_make(NULL, 0));
		return 1;
	}
	if (!greet(&process, socket))
		return 1;
	while ((size = read(socket, packet, sizeof packet)) > 0 || (size < 0 && errno == EINTR))
		if (size > 0 && !serve_one(&process, socket, slice_make(packet, (size_t)size)))
			return 1;
	return 0;
}
