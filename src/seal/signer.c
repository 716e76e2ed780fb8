#include "seal/signer.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/thread.h"
#include "seal/certificate.h"
#include "seal/development.h"
#include "seal/signer_log.h"
#include "seal/signer_marks.h"
#include "seal/signer_process.h"

#define ANSWER_TIMEOUT_MS (SIGNER_TIMEOUT_S * 1000)
#define LATE_US (SIGNER_TIMEOUT_S * US_PER_SECOND / 4)
#define START_TIMEOUT_MS 30000

_Static_assert(SIGNER_HEAD_SIZE + SIGNER_BYTES_MAX <= SIGNER_PACKET_MAX, "a request's packet");

struct signer {
	pthread_mutex_t mutex; /* one exchange at a time */
	int socket;
	pid_t child;
	bool broken; /* an exchange was interrupted: later packets cannot be matched to a request */
	atomic_int_fast64_t asked_at_us; /* monotonic: start of the current exchange; 0: none */
	/* Packet of the current exchange; allocated in advance, so that lack of memory cannot interrupt
	 * one. */
	char packet[SIGNER_PACKET_MAX];
	bool development;
	atomic_int in_force;
	atomic_bool key_fails;
	pthread_mutex_t cause_mutex;
	char cause[ERROR_CAUSE_MAX]; /* why the key fails */
	struct buf certificates[SIGNER_KEYS];
	struct signer_key keys[SIGNER_KEYS];
	struct buf trust;
	struct buf timestamp_roots;
	uint8_t log_key[SIGNER_LOG_KEY_SIZE]; /* public */
};

static int broken(struct signer *signer, struct error *error, const char *reason)
{
	signer->broken = true;
	/* The parent's supervision of its children notices the exit at once. */
	if (signer->child > 0)
		kill(signer->child, SIGKILL);
	return error_cause(error, ERR_UNAVAILABLE, "signer process: %s", reason);
}

static int wait_readable(struct signer *signer, int timeout_ms, struct error *error)
{
	int64_t end_us = clock_monotonic_us() + timeout_ms * INT64_C(1000);
	struct pollfd poll_fd = {.fd = signer->socket, .events = POLLIN};

	for (;;) {
		int64_t left_ms = (end_us - clock_monotonic_us()) / 1000;
		int ready = poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 0);
		if (ready > 0)
			return 0;
		if (ready == 0)
			return broken(signer, error, "no response in time");
		if (errno != EINTR)
			return broken(signer, error, strerror(errno));
	}
}

static int declined(char outcome)
{
	switch (outcome) {
	case SIGNER_NO_SPACE: return ERR_NO_SPACE;
	case SIGNER_PIN_REFUSED: return ERR_PIN;
	case SIGNER_EXITS:
	case SIGNER_TRY_LATER:
	case SIGNER_KEY_FAILS: return ERR_UNAVAILABLE;
	default: return ERR_REFUSED;
	}
}

static void note_failure(struct signer *signer, struct slice cause)
{
	pthread_mutex_lock(&signer->cause_mutex);
	snprintf(signer->cause, sizeof signer->cause, "%.*s", (int)cause.size, cause.data);
	pthread_mutex_unlock(&signer->cause_mutex);
	atomic_store(&signer->key_fails, true);
}

/* Appends the payload of the next response. */
static int receive(struct signer *signer, int timeout_ms, struct buf *out, struct error *error)
{
	char *packet = signer->packet;

	int result = wait_readable(signer, timeout_ms, error);
	if (!result) {
		ssize_t size = recv(signer->socket, packet, SIGNER_PACKET_MAX, 0);
		if (size < SIGNER_ANSWER_HEAD_SIZE) {
			result = broken(signer, error, size < 0 ? strerror(errno) : "it has exited");
		} else if (packet[0] != SIGNER_DONE) {
			result = error_cause(error, declined(packet[0]), "signer process: %.*s", (int)size - 1,
			                     packet + 1);
			if (packet[0] == SIGNER_KEY_FAILS)
				note_failure(signer, slice_make(packet + 1, (size_t)size - 1));
		} else {
			buf_add(out, packet + 1, (size_t)size - 1);
			result = buf_check(out);
		}
	}
	return result;
}

static int exchange(struct signer *signer, enum signer_request kind, uint8_t purpose,
                    struct slice payload, struct buf *out, struct error *error)
{
	size_t size = SIGNER_HEAD_SIZE + payload.size;

	thread_assert_may_block();
	if (payload.size > SIGNER_BYTES_MAX)
		return error_cause(error, ERR_REFUSED, "the request exceeds %d bytes", SIGNER_BYTES_MAX);
	if (signer->broken)
		return error_cause(error, ERR_UNAVAILABLE, "signer process: an earlier exchange failed");
	assert(size <= SIGNER_PACKET_MAX);
	signer->packet[0] = (char)kind;
	signer->packet[1] = (char)purpose;
	if (payload.size > 0)
		memcpy(signer->packet + SIGNER_HEAD_SIZE, payload.data, payload.size);
	if (send(signer->socket, signer->packet, size, MSG_NOSIGNAL) != (ssize_t)size)
		return broken(signer, error, strerror(errno));
	return receive(signer, ANSWER_TIMEOUT_MS, out, error);
}

static int ask(struct signer *signer, enum signer_request kind, uint8_t purpose,
               struct slice payload, struct buf *out, struct error *error)
{
	pthread_mutex_lock(&signer->mutex);
	assert(atomic_load(&signer->asked_at_us) == 0); /* the answer is to this request */
	atomic_store(&signer->asked_at_us, clock_monotonic_us());
	int result = exchange(signer, kind, purpose, payload, out, error);
	atomic_store(&signer->asked_at_us, 0);
	pthread_mutex_unlock(&signer->mutex);
	return result;
}

int signer_sign(struct signer *signer, enum signer_purpose purpose, struct slice bytes,
                struct buf *out, struct error *error)
{
	int result = ask(signer, SIGNER_REQUEST_SIGN, (uint8_t)purpose, bytes, out, error);
	if (!result)
		atomic_store(&signer->key_fails, false);
	return result;
}

int signer_probe(struct signer *signer, struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	int result = ask(signer, SIGNER_REQUEST_PROBE, 0, slice_of("?"), &out, error);
	if (!result)
		atomic_store(&signer->key_fails, false);
	return result;
}

int signer_timestamp(struct signer *signer, struct slice request, struct buf *out,
                     struct error *error)
{
	return ask(signer, SIGNER_REQUEST_TIMESTAMP, 0, request, out, error);
}

int signer_ocsp(struct signer *signer, struct slice request, struct buf *out, struct error *error)
{
	return ask(signer, SIGNER_REQUEST_OCSP, 0, request, out, error);
}

/* `mark` NULL: no mark is sent. */
static int ask_mark(struct signer *signer, enum signer_request kind, const char *store_id,
                    const struct signer_mark *mark, struct slice reason, struct buf *out,
                    struct error *error)
{
	BUF_AUTO struct buf payload;

	buf_init(&payload, SIGNER_BYTES_MAX);
	buf_add(&payload, store_id, strnlen(store_id, SIGNER_STORE_ID_SIZE));
	if (mark)
		buf_add(&payload, mark, sizeof *mark);
	buf_add_slice(&payload, reason);
	int result = buf_check(&payload);
	return result ? result : ask(signer, kind, 0, buf_slice(&payload), out, error);
}

const uint8_t *signer_log_key(const struct signer *signer)
{
	return signer->log_key;
}

int signer_get_checkpoint(struct signer *signer, const char *origin, uint64_t *ret_size,
                          struct sha256 *ret_root, struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	int result = ask(signer, SIGNER_REQUEST_GET_CHECKPOINT, 0, slice_of(origin), &out, error);
	if (!result && out.size != sizeof *ret_size + sizeof *ret_root)
		result = error_cause(error, ERR_INTERNAL, "signer process: not a checkpoint");
	if (!result) {
		memcpy(ret_size, out.data, sizeof *ret_size);
		memcpy(ret_root, out.data + sizeof *ret_size, sizeof *ret_root);
	}
	return result;
}

int signer_sign_checkpoint(struct signer *signer, struct slice request,
                           uint8_t ret_signature[SIGNER_LOG_SIGNATURE_SIZE], struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	int result = ask(signer, SIGNER_REQUEST_CHECKPOINT, 0, request, &out, error);
	if (!result && out.size != SIGNER_LOG_SIGNATURE_SIZE)
		result = error_cause(error, ERR_INTERNAL, "signer process: not a signature");
	if (!result)
		memcpy(ret_signature, out.data, SIGNER_LOG_SIGNATURE_SIZE);
	return result;
}

int signer_get_mark(struct signer *signer, const char *store_id, struct signer_mark *ret_mark,
                    struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	int result =
		ask_mark(signer, SIGNER_REQUEST_GET_MARK, store_id, NULL, slice_make(NULL, 0), &out, error);
	if (!result && out.size != sizeof *ret_mark)
		result = error_cause(error, ERR_INTERNAL, "signer process: not a mark");
	if (!result)
		memcpy(ret_mark, out.data, sizeof *ret_mark);
	return result;
}

int signer_set_mark(struct signer *signer, const char *store_id, const struct signer_mark *mark,
                    struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	return ask_mark(signer, SIGNER_REQUEST_SET_MARK, store_id, mark, slice_make(NULL, 0), &out,
	                error);
}

int signer_accept_mark(struct signer *signer, const char *store_id, const struct signer_mark *mark,
                       struct slice reason, struct error *error)
{
	BUF_AUTO struct buf out;

	buf_init(&out, SIGNER_PACKET_MAX);
	return ask_mark(signer, SIGNER_REQUEST_ACCEPT_MARK, store_id, mark, reason, &out, error);
}

static int check_options(const struct signer_options *options, struct error *error)
{
	if (options->development == (options->key.key != NULL))
		return error_cause(error, ERR_REFUSED,
		                   "the signer requires either a key or development keys");
	if (options->trial)
		return OK;
	/* Created durably: if the directory is lost in a power failure, the log of signatures is lost
	 * too. */
	return durable_make_directory(options->directory, error);
}

static int fork_child(struct signer *signer, const struct signer_options *options,
                      struct error *error)
{
	pid_t parent = getpid();
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		return error_cause(error, ERR_IO, "socketpair: %s", strerror(errno));
	signer->child = fork();
	if (signer->child == 0) {
		close(sockets[0]);
		if (options->words > 0)
			dup2(options->words, STDERR_FILENO);
		_exit(signer_process_run(sockets[1], parent, options));
	}
	close(sockets[1]);
	signer->socket = sockets[0];
	if (signer->child < 0)
		return error_cause(error, ERR_IO, "fork: %s", strerror(errno));
	return 0;
}

static int describe(struct slice pem, struct signer_key *ret_key, struct error *error)
{
	ret_key->certificates = pem;
	return trust_describe_path(pem, &ret_key->certificate, &ret_key->valid_from_us,
	                           &ret_key->valid_until_us, error);
}

/* Receives the packets that the child sends before the first request. */
static int receive_greeting(struct signer *signer, struct error *error)
{
	int result = OK;

	for (int i = 0; !result && i < SIGNER_KEYS; i++) {
		result = receive(signer, START_TIMEOUT_MS, &signer->certificates[i], error);
		if (!result && signer->certificates[i].size > 0)
			result = describe(buf_slice(&signer->certificates[i]), &signer->keys[i], error);
	}
	if (!result)
		result = receive(signer, START_TIMEOUT_MS, &signer->trust, error);
	if (!result)
		result = receive(signer, START_TIMEOUT_MS, &signer->timestamp_roots, error);
	BUF_AUTO struct buf log_key;
	buf_init(&log_key, SIGNER_PACKET_MAX);
	if (!result)
		result = receive(signer, START_TIMEOUT_MS, &log_key, error);
	if (!result && log_key.size == sizeof signer->log_key)
		memcpy(signer->log_key, log_key.data, sizeof signer->log_key);
	return result;
}

int signer_start(const struct signer_options *options, struct signer **ret_signer,
                 struct error *error)
{
	int result = check_options(options, error);
	if (result)
		return result;
	struct signer *signer = calloc(1, sizeof *signer);
	if (!signer)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&signer->mutex, NULL);
	pthread_mutex_init(&signer->cause_mutex, NULL);
	signer->socket = -1;
	signer->child = -1;
	signer->development = options->development;
	for (int i = 0; i < SIGNER_KEYS; i++)
		buf_init(&signer->certificates[i], SIGNER_PACKET_MAX);
	buf_init(&signer->trust, SIGNER_PACKET_MAX);
	buf_init(&signer->timestamp_roots, SIGNER_PACKET_MAX);
	result = fork_child(signer, options, error);
	if (!result)
		result = receive_greeting(signer, error);
	if (result) {
		signer_stop(signer);
		return result;
	}
	*ret_signer = signer;
	return 0;
}

int signer_check_start(const struct signer_options *options, struct signer **ret_signer,
                       struct error *error)
{
	struct signer_options trial = *options;

	trial.trial = true;
	return signer_start(&trial, ret_signer, error);
}

int signer_read_mark(const char *directory, const char *store_id, struct signer_mark *ret_mark,
                     struct error *error)
{
	struct signer_marks *marks = calloc(1, sizeof *marks);
	struct signer_log_facts facts;

	if (!marks)
		return ERR_NO_MEMORY;
	int result = signer_log_check(directory, signer_marks_read_entry, marks, &facts, error);
	if (!result)
		*ret_mark = signer_marks_find(marks, slice_of(store_id));
	free(marks);
	return result;
}

void signer_stop(struct signer *signer)
{
	if (!signer)
		return;
	if (signer->socket >= 0)
		close(signer->socket); /* an idle child then exits */
	if (signer->child > 0) {
		if (signer->broken)
			kill(signer->child, SIGKILL);
		while (waitpid(signer->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (int i = 0; i < SIGNER_KEYS; i++)
		buf_free(&signer->certificates[i]);
	buf_free(&signer->trust);
	buf_free(&signer->timestamp_roots);
	pthread_mutex_destroy(&signer->cause_mutex);
	pthread_mutex_destroy(&signer->mutex);
	free(signer);
}

bool signer_has_ended(const struct signer *signer)
{
	siginfo_t found = {0};
	return waitid(P_PID, (id_t)signer->child, &found, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	       found.si_pid == signer->child;
}

int signer_ready(const struct signer *signer, struct error *error)
{
	int64_t asked_at_us = atomic_load(&signer->asked_at_us);

	if (signer_has_ended(signer))
		return error_cause(error, ERR_UNAVAILABLE, "the signing process has exited");
	if (asked_at_us != 0 && clock_monotonic_us() - asked_at_us > LATE_US)
		return error_cause(error, ERR_UNAVAILABLE, "the signing process does not respond");
	return OK;
}

const struct signer_key *signer_get_key(const struct signer *signer, int index)
{
	bool there = index >= 0 && index < SIGNER_KEYS && signer->certificates[index].size > 0;

	return there ? &signer->keys[index] : NULL;
}

int signer_activate_key(struct signer *signer, int index, struct error *error)
{
	BUF_AUTO struct buf out;
	char number = (char)index;

	buf_init(&out, SIGNER_PACKET_MAX);
	int result = ask(signer, SIGNER_REQUEST_USE, 0, slice_make(&number, 1), &out, error);
	if (!result && atomic_exchange(&signer->in_force, index) != index)
		atomic_store(&signer->key_fails, false); /* the failure was that of another key */
	return result;
}

int signer_active_key(const struct signer *signer)
{
	return atomic_load(&signer->in_force);
}

bool signer_is_key_failing(const struct signer *signer)
{
	return atomic_load(&signer->key_fails);
}

static int check_holder(struct signer *signer, struct error *error)
{
	char cause[ERROR_CAUSE_MAX];

	if (!signer_is_key_failing(signer))
		return OK;
	pthread_mutex_lock(&signer->cause_mutex);
	memcpy(cause, signer->cause, sizeof cause);
	pthread_mutex_unlock(&signer->cause_mutex);
	return error_cause(error, ERR_UNAVAILABLE, "the signing key: %.200s", cause);
}

int signer_read_development_certificate(const char *directory, struct buf *out, struct error *error)
{
	BUF_AUTO struct buf file;
	static const char end[] = "-----END CERTIFICATE-----\n";
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof path, "%s/%s", directory,
	                     development_names[DEVELOPMENT_REPORT].signer) >= sizeof path)
		return error_cause(error, ERR_IO, "path too long");
	if (access(path, F_OK) != 0)
		return OK;
	buf_init(&file, SIGNER_PACKET_MAX);
	int result = file_read_whole(path, &file, error);
	if (result)
		return result;
	const char *first = file.data ? strstr(file.data, "-----BEGIN CERTIFICATE-----") : NULL;
	const char *last = first ? strstr(first, end) : NULL;
	if (last)
		buf_add(out, first, (size_t)(last - first) + sizeof end - 1);
	if (file.data)
		explicit_bzero(file.data, file.size); /* it also contains the key */
	return buf_check(out);
}

int signer_key_check_time(const struct signer_key *key, int64_t now_us, struct error *error)
{
	char text[TIME_TEXT_SIZE];

	if (now_us >= key->valid_from_us && now_us <= key->valid_until_us)
		return OK;
	bool early = now_us < key->valid_from_us;
	time_format(early ? key->valid_from_us : key->valid_until_us, text);
	return error_cause(error, ERR_UNAVAILABLE, "the signing certificate %s %s",
	                   early ? "is not valid before" : "has expired on", text);
}

int signer_check_key(struct signer *signer, int64_t now_us, struct error *error)
{
	const struct signer_key *key = signer_get_key(signer, signer_active_key(signer));

	if (!key)
		return error_cause(error, ERR_UNAVAILABLE, "none of this node's signing keys is active");
	int result = signer_key_check_time(key, now_us, error);
	return result ? result : check_holder(signer, error);
}

bool signer_is_development(const struct signer *signer)
{
	return signer->development;
}

struct slice signer_certificates(const struct signer *signer)
{
	const struct signer_key *key = signer_get_key(signer, signer_active_key(signer));

	return key ? key->certificates : signer->keys[SIGNER_PRESENT].certificates;
}

struct slice signer_trust(const struct signer *signer)
{
	return buf_slice(&signer->trust);
}

struct slice signer_timestamp_roots(const struct signer *signer)
{
	return buf_slice(&signer->timestamp_roots);
}
