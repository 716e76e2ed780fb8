/* The code of the signing process, and its protocol. For src/seal only.
 *
 * Packets on a SOCK_SEQPACKET pair, one response to each request:
 *   request:  kind, purpose (0 except for sign), payload. Payload of the mark requests: the store's
 *             id, round and root (struct signer_mark), and for accept a reason; of use: one byte,
 *             the index of the key or SIGNER_NO_KEY; of probe: any byte
 *   response: 0 and a payload, or enum signer_outcome and an ASCII reason
 * Before the first request the child sends the certificates of each of its SIGNER_KEYS keys (empty:
 * no such key), all roots, the embedded authority's roots (PEM), and the public key of the log
 * (empty in a trial without one), or one refusal. A trial process exits then. */
#ifndef SEAL_SIGNER_PROCESS_H
#define SEAL_SIGNER_PROCESS_H

#include <sys/types.h>

#include "seal/signer.h"

enum signer_request {
	SIGNER_REQUEST_SIGN = 1,
	SIGNER_REQUEST_TIMESTAMP,
	SIGNER_REQUEST_GET_MARK, /* payload: the store's id; response: a struct signer_mark */
	SIGNER_REQUEST_SET_MARK,
	SIGNER_REQUEST_ACCEPT_MARK,
	SIGNER_REQUEST_OCSP,
	SIGNER_REQUEST_USE,
	SIGNER_REQUEST_PROBE,
	SIGNER_REQUEST_GET_CHECKPOINT, /* payload: an origin; response: size (8 bytes) and root */
	SIGNER_REQUEST_CHECKPOINT,     /* payload: tlog/witness_request.h; response: the signature */
};
enum signer_outcome {
	SIGNER_DONE,
	SIGNER_REFUSED,
	SIGNER_NO_SPACE,
	SIGNER_EXITS,       /* it exits: its log is in an unknown state */
	SIGNER_TRY_LATER,   /* it cannot sign now but may later */
	SIGNER_KEY_FAILS,   /* the same: the key holder does not sign */
	SIGNER_PIN_REFUSED, /* at the start */
};

#define SIGNER_HEAD_SIZE 2
#define SIGNER_ANSWER_HEAD_SIZE 1
#define SIGNER_PACKET_MAX 98304

/* Serves requests until the socket is closed. Returns the exit status. */
int signer_process_run(int socket, pid_t parent, const struct signer_options *options);
/* Drops all system calls except those that the process and its key holders need: the last step of
 * its isolation. Items of `keys` (SIGNER_KEYS of them) may be NULL. */
struct key;
int signer_process_confine(struct key *const *keys, struct error *error) MUST_CHECK;

#endif
