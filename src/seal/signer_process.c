#include "seal/signer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ts.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "seal/certificate.h"
#include "seal/development.h"
#include "seal/file.h"

#define SOCKET_NUMBER 3
/* In the arc of UUIDs, which needs no registration (ITU-T X.667). */
#define DEVELOPMENT_POLICY "2.25.246049200999522755544578053737302326459"

struct identity {
	EVP_PKEY *key;
	STACK_OF(X509) *certificates; /* signer first */
};

struct process {
	struct identity report;
	struct identity timestamp; /* key NULL: no embedded authority */
	struct buf roots;          /* PEM */
	struct buf timestamp_roots;
	int log;
};

/* What a process that only signs never needs. */
static const int denied_calls[] = {
	SCMP_SYS(socket), SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind),
	SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(io_uring_setup),
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork),
	SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_getfd), SCMP_SYS(unshare), SCMP_SYS(setns),
};

static int drop_calls(struct error *error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int result = filter ? 0 : -ENOMEM;

	for (size_t i = 0; result == 0 && i < sizeof denied_calls / sizeof *denied_calls; i++)
		result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied_calls[i], 0);
	if (result == 0)
		result = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	if (result == 0)
		return 0;
	return error_cause(error, ERR_REFUSED, "seccomp: %s", strerror(-result));
}

static int isolate(int *socket, pid_t parent, struct error *error)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		return error_cause(error, ERR_REFUSED, "the parent is gone");
	if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
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
	return drop_calls(error);
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
	int result = file_read(path, &pem, error);
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
		result = file_read(certificates_path, &pem, error);
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
		result = file_read(root_path, &pem, error);
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

static int load(struct process *process, const struct signer_options *options, struct error *error)
{
	if (!options->development) {
		int result = load_identity(options->key_path, options->certificates_path,
		                           &process->report, error);
		if (result == 0 && options->roots_path)
			result = file_read(options->roots_path, &process->roots, error);
		return result;
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

static int open_log(struct process *process, const char *directory, struct error *error)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof path, "%s/signer.log", directory) >= sizeof path)
		return error_cause(error, ERR_IO, "path too long");
	process->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (process->log < 0)
		return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	return 0;
}

static bool log_signature(const struct process *process, const char *purpose,
                          const struct sha256 *digest)
{
	BUF_AUTO struct buf line;
	char now[TIME_TEXT_SIZE];

	buf_init(&line, 512);
	struct json_writer writer = {.out = &line};
	time_format(clock_now_us(), now);
	json_begin_object(&writer, NULL);
	json_text(&writer, "time", now);
	json_text(&writer, "purpose", purpose);
	json_hex(&writer, "sha256", digest->bytes, SHA256_SIZE);
	json_end_object(&writer);
	buf_add_byte(&line, '\n');
	return buf_check(&line) == 0 &&
	       write(process->log, line.data, line.size) == (ssize_t)line.size &&
	       fdatasync(process->log) == 0;
}

/* Only what can be the signed attributes of a CMS, so that the key signs nothing else. */
static bool is_der_set(struct slice bytes)
{
	const unsigned char *position = (const unsigned char *)bytes.data;
	long size;
	int tag, class;

	int form = ASN1_get_object(&position, &size, &tag, &class, (long)bytes.size);
	return form == V_ASN1_CONSTRUCTED && tag == V_ASN1_SET && class == V_ASN1_UNIVERSAL &&
	       (const char *)position + size == bytes.data + bytes.size;
}

static const char *answer_sign(const struct process *process, uint8_t purpose, struct slice bytes,
                               struct buf *out)
{
	static const char *const purposes[] = {
		[SIGNER_REPORT] = "report",
		[SIGNER_ARCHIVE] = "archive",
	};
	struct sha256 digest = sha256_of(bytes.data, bytes.size);
	size_t size = 0;

	if (purpose >= sizeof purposes / sizeof *purposes)
		return "unknown purpose";
	if (bytes.size == 0 || bytes.size > SIGNER_BYTES_MAX || !is_der_set(bytes))
		return "not a DER SET of signed attributes";
	if (!log_signature(process, purposes[purpose], &digest))
		return "the log cannot be written";
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const unsigned char *data = (const unsigned char *)bytes.data;
	EVP_PKEY *key = process->report.key;
	bool signed_well = context &&
	                   EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
	                   EVP_DigestSign(context, NULL, &size, data, bytes.size) == 1;
	unsigned char *signature = signed_well ? (unsigned char *)buf_extend(out, size) : NULL;
	size_t room = size;
	signed_well = signature && EVP_DigestSign(context, signature, &size, data, bytes.size) == 1;
	EVP_MD_CTX_free(context);
	if (!signed_well)
		return "the key does not sign";
	out->size -= room - size; /* an ECDSA signature is often shorter than its bound */
	return NULL;
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

static const char *answer_timestamp(const struct process *process, struct slice request,
                                    struct buf *out)
{
	struct sha256 imprint;
	unsigned char *der = NULL;

	if (!process->timestamp.key)
		return "no embedded timestamp authority";
	if (request.size == 0 || request.size > TIMESTAMP_REQUEST_MAX ||
	    !request_imprint(request, &imprint))
		return "not a timestamp request over SHA-256";
	if (!log_signature(process, "timestamp", &imprint))
		return "the log cannot be written";
	TS_RESP *response = make_response(process, request);
	int size = response ? i2d_TS_RESP(response, &der) : -1;
	if (size > 0)
		buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
	TS_RESP_free(response);
	return size > 0 ? NULL : "no timestamp could be made";
}

static bool send_answer(int socket, const char *reason, struct slice payload)
{
	BUF_AUTO struct buf packet;

	buf_init(&packet, SIGNER_PACKET_MAX);
	buf_add_byte(&packet, reason ? 1 : 0);
	buf_add_slice(&packet, reason ? slice_of(reason) : payload);
	return buf_check(&packet) == 0 &&
	       write(socket, packet.data, packet.size) == (ssize_t)packet.size;
}

static bool answer(const struct process *process, int socket, struct slice packet)
{
	BUF_AUTO struct buf out;
	const char *reason = "unknown request";

	buf_init(&out, SIGNER_PACKET_MAX - SIGNER_ANSWER_HEAD_SIZE);
	if (packet.size > SIGNER_HEAD_SIZE) {
		struct slice payload = slice_make(packet.data + SIGNER_HEAD_SIZE,
		                                  packet.size - SIGNER_HEAD_SIZE);
		if (packet.data[0] == SIGNER_REQUEST_SIGN)
			reason = answer_sign(process, (uint8_t)packet.data[1], payload, &out);
		else if (packet.data[0] == SIGNER_REQUEST_TIMESTAMP)
			reason = answer_timestamp(process, payload, &out);
	}
	ERR_clear_error();
	return send_answer(socket, reason, buf_slice(&out));
}

static bool greet(const struct process *process, int socket)
{
	BUF_AUTO struct buf certificates;

	buf_init(&certificates, SIGNER_PACKET_MAX - SIGNER_ANSWER_HEAD_SIZE);
	return certificates_write(process->report.certificates, &certificates) == 0 &&
	       send_answer(socket, NULL, buf_slice(&certificates)) &&
	       send_answer(socket, NULL, buf_slice(&process->roots)) &&
	       send_answer(socket, NULL, buf_slice(&process->timestamp_roots));
}

int signer_process_run(int socket, pid_t parent, const struct signer_options *options)
{
	static char packet[SIGNER_PACKET_MAX];
	struct process process = {.log = -1};
	struct error error = {0};
	ssize_t size;

	buf_init(&process.roots, PEM_FILE_MAX);
	buf_init(&process.timestamp_roots, PEM_FILE_MAX);
	int result = isolate(&socket, parent, &error);
	if (result == 0)
		result = load(&process, options, &error);
	if (result == 0)
		result = open_log(&process, options->directory, &error);
	if (result != 0) {
		send_answer(socket, error.cause[0] ? error.cause : "out of memory", slice_make(NULL, 0));
		return 1;
	}
	if (!greet(&process, socket))
		return 1;
	while ((size = read(socket, packet, sizeof packet)) > 0 || (size < 0 && errno == EINTR))
		if (size > 0 && !answer(&process, socket, slice_make(packet, (size_t)size)))
			return 1;
	return 0;
}
