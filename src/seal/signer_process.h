/* What runs inside the signer process, and its protocol. Inside src/seal only.
 *
 * Packets on a SOCK_SEQPACKET pair, one answer to each request:
 *   request: kind, purpose (0 but for sign), payload; of the kinds about marks: the store's id,
 *            round and root (struct signer_mark), for accept a reason; of use: a byte, the number
 *            of the key, or SIGNER_NO_KEY; of probe: any byte
 *   answer:  0 and payload, or enum signer_outcome and a reason in ASCII
 * Before the first request the child sends the certificates of each of its SIGNER_KEYS keys (empty:
 * it is not there), all roots, and the embedded authority's roots (PEM), or one refusal. A trial
 * ends then. */
#ifndef SEAL_SIGNER_PROCESS_H
#define SEAL_SIGNER_PROCESS_H

#include <sys/types.h>

#include "seal/signer.h"

enum signer_request {
	SIGNER_REQUEST_SIGN = 1,
	SIGNER_REQUEST_TIMESTAMP,
	SIGNER_REQUEST_GET_MARK, /* the store's id alone; answered by a struct signer_mark */
	SIGNER_REQUEST_SET_MARK,
	SIGNER_REQUEST_ACCEPT_MARK,
	SIGNER_REQUEST_OCSP,
	SIGNER_REQUEST_USE,
	SIGNER_REQUEST_PROBE,
};
enum signer_outcome {
	SIGNER_DONE,
	SIGNER_REFUSES,
	SIGNER_HAS_NO_SPACE,
	SIGNER_ENDS,        /* its log is in an unknown state */
	SIGNER_WAITS,       /* it cannot sign now, and may later */
	SIGNER_KEY_FAILS,   /* the same: what holds the key does not sign */
	SIGNER_PIN_REFUSED, /* at its start */
};

#define SIGNER_HEAD_SIZE 2
#define SIGNER_ANSWER_HEAD_SIZE 1
#define SIGNER_PACKET_MAX 98304

/* Serves until the socket closes; answers the exit status. */
int signer_process_run(int socket, pid_t parent, const struct signer_options *options);
/* The last step of its isolation: the system calls that it, and the holders of its keys, keep. An
 * item of `keys`, SIGNER_KEYS of them, may be NULL. */
struct key;
int signer_process_confine(struct key *const *keys, struct error *error) MUST_CHECK;

#endif
