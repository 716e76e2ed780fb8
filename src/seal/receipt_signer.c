#include "seal/receipt_signer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/thread.h"
#include "base/tuned.h"
#include "seal/ed25519.h"

#define KEY_NAME "receipt.key"
#define PROOF_LANE RECEIPT_SIGNER_LANES
#define SOCKETS (RECEIPT_SIGNER_LANES + 1)
#define FIRST_SOCKET 3 /* of the child */
#define START_TIMEOUT_MS 60000
/* A child that does not answer delays no further batch of its lane for that time. */
#define PAUSE_US (2 * US_PER_SECOND)
/* One that has not answered for that time, although it was asked, is replaced. */
#define STUCK_US (30 * US_PER_SECOND)

struct request {
	uint32_t number; /* of its lane */
	bool is_proof;
	struct sha256 signed_hash;
};
struct answer {
	uint32_t number;
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
};
/* The first packet, on lane 0. */
struct greeting {
	bool started;
	uint8_t key[RECEIPT_KEY_SIZE];
	char cause[ERROR_CAUSE_MAX]; /* why it did not start */
};

struct lane {
	int socket;
	uint32_t number;       /* of the last request */
	bool asked;            /* it was sent, and its answer is awaited */
	int64_t not_before_us; /* monotonic; after an answer that did not come */
};

struct receipt_signer {
	pid_t child; /* -1: none */
	uint8_t key[RECEIPT_KEY_SIZE];
	/* Monotonic time of the first request without an answer since the last answer; 0: none. */
	_Atomic int64_t silent_since_us;
	struct lane lanes[SOCKETS];
};

/* ---- the child ---- */

static int isolate(int sockets[SOCKETS], pid_t parent, struct error *error)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		return error_cause(error, ERR_REFUSED, "the parent has exited");
	prctl(PR_SET_NAME, "receipt-signer");
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Away from the numbers that they get. */
	for (int i = 0; i < SOCKETS; i++)
		if ((sockets[i] = fcntl(sockets[i], F_DUPFD, FIRST_SOCKET + SOCKETS)) < 0)
			return error_cause(error, ERR_REFUSED, "fcntl: %s", strerror(errno));
	for (int i = 0; i < SOCKETS; i++)
		if ((sockets[i] = dup2(sockets[i], FIRST_SOCKET + i)) < 0)
			return error_cause(error, ERR_REFUSED, "dup2: %s", strerror(errno));
	if (close_range(FIRST_SOCKET + SOCKETS, ~0U, 0) != 0)
		return error_cause(error, ERR_REFUSED, "close_range: %s", strerror(errno));
	return confine_memory(error);
}

static int load(const char *directory, EVP_PKEY **ret_key, struct error *error)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof path, "%s/" KEY_NAME, directory) >= (int)sizeof path)
		return error_cause(error, ERR_IO, "path too long");
	return ed25519_open(path, true, ret_key, error);
}

static bool sign(EVP_PKEY *key, const struct request *request, struct answer *ret)
{
	char message[sizeof RECEIPT_PROOF_PREFIX + SHA256_SIZE];
	const struct slice prefix =
		slice_of(request->is_proof ? RECEIPT_PROOF_PREFIX : RECEIPT_SIGNED_PREFIX);
	memcpy(message, prefix.data, prefix.size);
	memcpy(message + prefix.size, request->signed_hash.bytes, SHA256_SIZE);
	*ret = (struct answer){.number = request->number};
	return ed25519_sign(key, slice_make(message, prefix.size + SHA256_SIZE), ret->signature);
}

/* Serves one request. Returns false when the process must exit: the parent has exited or closed the
 * lane, or there is no memory. */
static bool serve_one(EVP_PKEY *key, int socket)
{
	struct request request;
	struct answer answer;
	ssize_t size = read(socket, &request, sizeof request);
	if (size < 0 && errno == EINTR)
		return true;
	return size == sizeof request && sign(key, &request, &answer) &&
	       write(socket, &answer, sizeof answer) == sizeof answer;
}

static int serve(EVP_PKEY *key, const int sockets[SOCKETS])
{
	struct pollfd polled[SOCKETS];
	for (int i = 0; i < SOCKETS; i++)
		polled[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
	for (;;) {
		if (poll(polled, SOCKETS, -1) < 0 && errno != EINTR)
			return 1;
		for (int i = 0; i < SOCKETS; i++)
			if (polled[i].revents && !serve_one(key, sockets[i]))
				return 0;
	}
}

static int run_child(const char *directory, pid_t parent, int sockets[SOCKETS])
{
	static const struct confine_call calls[] = {{SCMP_SYS(poll), CONFINE_ALWAYS}};
	struct error error = {0};
	struct greeting greeting = {0};
	EVP_PKEY *key = NULL;
	uint8_t trial[RECEIPT_SIGNATURE_SIZE];
	int result = isolate(sockets, parent, &error);
	if (!result)
		result = load(directory, &key, &error);
	/* Libraries read what they need for their first use. */
	if (!result && !ed25519_sign(key, slice_of("a trial at start"), trial))
		result = error_cause(&error, ERR_REFUSED, "the key failed to sign");
	if (!result)
		ed25519_public(key, greeting.key);
	if (!result)
		result = confine_calls(calls, sizeof calls / sizeof *calls, &error);
	greeting.started = !result;
	memcpy(greeting.cause, error.cause, sizeof greeting.cause);
	if (write(sockets[0], &greeting, sizeof greeting) != sizeof greeting || result)
		return 1;
	return serve(key, sockets);
}

/* ---- the service ---- */

static int fork_child(struct receipt_signer *signer, const char *directory, int words,
                      struct error *error)
{
	int theirs[SOCKETS];
	pid_t parent = getpid();
	int result = OK, made = 0;
	for (; !result && made < SOCKETS; made++) {
		int pair[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
			result = error_cause(error, ERR_IO, "socketpair: %s", strerror(errno));
			break;
		}
		signer->lanes[made].socket = pair[0];
		theirs[made] = pair[1];
	}
	if (!result)
		signer->child = fork();
	if (!result && signer->child == 0) {
		for (int i = 0; i < SOCKETS; i++)
			close(signer->lanes[i].socket);
		if (words > 0)
			dup2(words, STDERR_FILENO);
		_exit(run_child(directory, parent, theirs));
	}
	for (int i = 0; i < made; i++)
		close(theirs[i]);
	if (!result && signer->child < 0)
		result = error_cause(error, ERR_IO, "fork: %s", strerror(errno));
	return result;
}

/* Waits for a packet of that size. */
static bool receive(int socket, int timeout_ms, void *packet, size_t size)
{
	int64_t end_us = clock_monotonic_us() + timeout_ms * INT64_C(1000);
	struct pollfd polled = {.fd = socket, .events = POLLIN};
	for (;;) {
		int64_t left_ms = (end_us - clock_monotonic_us()) / 1000;
		int ready = poll(&polled, 1, left_ms > 0 ? (int)left_ms : 0);
		if (ready > 0)
			return recv(socket, packet, size, 0) == (ssize_t)size;
		if (ready == 0 || errno != EINTR)
			return false;
	}
}

static int greet(struct receipt_signer *signer, struct error *error)
{
	struct greeting greeting;
	if (!receive(signer->lanes[0].socket, START_TIMEOUT_MS, &greeting, sizeof greeting))
		return error_cause(error, ERR_REFUSED, "the signer of receipts does not respond");
	greeting.cause[sizeof greeting.cause - 1] = '\0';
	if (!greeting.started)
		return error_cause(error, ERR_REFUSED, "the signer of receipts: %.400s", greeting.cause);
	memcpy(signer->key, greeting.key, sizeof signer->key);
	return OK;
}

int receipt_signer_start(const char *directory, int words, struct receipt_signer **ret,
                         struct error *error)
{
	struct receipt_signer *signer = calloc(1, sizeof *signer);
	if (!signer)
		return ERR_NO_MEMORY;
	signer->child = -1;
	for (int i = 0; i < SOCKETS; i++)
		signer->lanes[i].socket = -1;
	int result = fork_child(signer, directory, words, error);
	if (!result)
		result = greet(signer, error);
	if (result)
		receipt_signer_stop(signer);
	else
		*ret = signer;
	return result;
}

void receipt_signer_stop(struct receipt_signer *signer)
{
	if (!signer)
		return;
	for (int i = 0; i < SOCKETS; i++)
		if (signer->lanes[i].socket >= 0)
			close(signer->lanes[i].socket); /* the child then exits */
	if (signer->child > 0) {
		kill(signer->child, SIGKILL);
		while (waitpid(signer->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(signer);
}

const uint8_t *receipt_signer_key(const struct receipt_signer *signer)
{
	return signer->key;
}

bool receipt_signer_has_ended(const struct receipt_signer *signer)
{
	siginfo_t found = {0};
	return waitid(P_PID, (id_t)signer->child, &found, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	       found.si_pid == signer->child;
}

static struct lane *lane_of(struct receipt_signer *signer, unsigned number)
{
	assert(number < RECEIPT_SIGNER_LANES);
	return &signer->lanes[number];
}

/* Discards the answers of batches that failed, so that they never fill the socket of the lane and
 * hold up the child. */
static void discard_answers(struct receipt_signer *signer, const struct lane *lane)
{
	struct answer answer;
	while (recv(lane->socket, &answer, sizeof answer, MSG_DONTWAIT) > 0)
		atomic_store(&signer->silent_since_us, 0);
}

/* Kills a child that hangs: the service then ends, as after any exit of the child, and its
 * supervisor starts both again. */
static void note_silence(struct receipt_signer *signer)
{
	const int64_t now_us = clock_monotonic_us();
	int64_t since_us = 0;
	if (atomic_compare_exchange_strong(&signer->silent_since_us, &since_us, now_us))
		return;
	if (now_us - since_us > tuned("receipt_stuck_us", STUCK_US))
		kill(signer->child, SIGKILL);
}

static void begin(struct receipt_signer *signer, struct lane *lane, bool is_proof,
                  const struct sha256 *hash)
{
	discard_answers(signer, lane);
	struct request request;
	memset(&request, 0, sizeof request); /* also the gaps between its members */
	request.number = ++lane->number;
	request.is_proof = is_proof;
	request.signed_hash = *hash;
	lane->asked =
		clock_monotonic_us() >= lane->not_before_us &&
		send(lane->socket, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof request;
}

static bool end(struct receipt_signer *signer, struct lane *used,
                uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE])
{
	struct answer answer = {0};
	thread_assert_may_block();
	/* An answer that came too late for its batch precedes this one. */
	while (used->asked) {
		if (!receive(used->socket, RECEIPT_SIGNER_WAIT_MS, &answer, sizeof answer)) {
			used->asked = false;
			used->not_before_us = clock_monotonic_us() + PAUSE_US;
			note_silence(signer);
			continue;
		}
		atomic_store(&signer->silent_since_us, 0);
		if (answer.number == used->number)
			break;
	}
	if (!used->asked)
		return false;
	used->asked = false;
	memcpy(ret_signature, answer.signature, RECEIPT_SIGNATURE_SIZE);
	return true;
}

void receipt_signer_begin(struct receipt_signer *signer, unsigned lane, const struct sha256 *root)
{
	begin(signer, lane_of(signer, lane), false, root);
}

bool receipt_signer_end(struct receipt_signer *signer, unsigned lane,
                        uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE])
{
	return end(signer, lane_of(signer, lane), ret_signature);
}

bool receipt_signer_prove(struct receipt_signer *signer, const struct sha256 *certificate,
                          uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE])
{
	struct lane *lane = &signer->lanes[PROOF_LANE];
	begin(signer, lane, true, certificate);
	return end(signer, lane, ret_signature);
}
