/* The process that signs receipts: a child of its own, so that a slow holder of the signing key
 * delays no registration. It holds one Ed25519 key, DIRECTORY/receipt.key, which it makes if it is
 * missing, and drops all system calls except those for its sockets. It signs the root of a batch of
 * receipts, for which the signed bytes are RECEIPT_SIGNED_PREFIX and the root; and, as a proof that
 * its key signs for a service, the digest of that service's certificate, after
 * RECEIPT_PROOF_PREFIX. It signs nothing else.
 *
 * Each caller has a lane: one thread at a time uses it, first receipt_signer_begin, then
 * receipt_signer_end. What happens in between, such as the commit of the batch, costs no further
 * time. Nothing is logged, since an event's receipt repeats what its chain records. */
#ifndef SEAL_RECEIPT_SIGNER_H
#define SEAL_RECEIPT_SIGNER_H

#include <sys/types.h>

#include "base/digest.h"
#include "base/error.h"

#define RECEIPT_SIGNER_LANES 16
#define RECEIPT_KEY_SIZE 32 /* Ed25519 (RFC 8032) */
#define RECEIPT_SIGNATURE_SIZE 64
#define RECEIPT_SIGNED_PREFIX "constancia-receipt/1\n"
#define RECEIPT_PROOF_PREFIX "constancia-receipt-key/1\n"

struct receipt_signer;

/* Starts the child, from the main thread before other threads exist: the child dies with the thread
 * that forked it. `words` as in signer_options. ERR_REFUSED with the cause, ERR_IO,
 * ERR_NO_MEMORY. */
int receipt_signer_start(const char *directory, int words, struct receipt_signer **ret,
                         struct error *error) MUST_CHECK;
/* Stops the child and frees. NULL-safe. */
void receipt_signer_stop(struct receipt_signer *signer);

/* The public key. */
const uint8_t *receipt_signer_key(const struct receipt_signer *signer);
/* Returns whether the child has exited, which it does only when it fails; or when it has not
 * answered requests for 30 seconds, since it is then killed. */
bool receipt_signer_has_ended(const struct receipt_signer *signer);

/* Asks for the signature of a root. Never waits. A request before it that was not ended is
 * forgotten. */
void receipt_signer_begin(struct receipt_signer *signer, unsigned lane, const struct sha256 *root);
/* Waits for it, RECEIPT_SIGNER_WAIT_MS at most. Returns false if there is none: the receipts of the
 * batch are then without a signature, and for a while those of the next ones, without a wait. */
#define RECEIPT_SIGNER_WAIT_MS 1000
bool receipt_signer_end(struct receipt_signer *signer, unsigned lane,
                        uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE]) MUST_CHECK;
/* Signs the proof for a certificate, on a lane of its own: one thread at a time. Waits as
 * receipt_signer_end does. Returns false if there is no signature. */
bool receipt_signer_prove(struct receipt_signer *signer, const struct sha256 *certificate,
                          uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE]) MUST_CHECK;

#endif
