/* The process that holds the keys.
 *
 * signer_start forks. The child loads (in development: first makes) the keys, gives up the network
 * and everything else it does not need (seccomp), and answers typed requests over a socket pair,
 * one at a time, each at most SIGNER_BYTES_MAX bytes. Before it hands out a signature it appends a
 * line {"time","purpose","sha256"} to DIRECTORY/signer.log and syncs it; what it cannot log it does
 * not sign. It ends when its parent does, or when the socket closes; it ignores SIGINT and SIGTERM,
 * so that a draining parent can still sign.
 *
 * Start it from the main thread before other threads exist: the child dies with the thread that
 * forked it. All other functions may be called from any thread. */
#ifndef SEAL_SIGNER_H
#define SEAL_SIGNER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#define SIGNER_BYTES_MAX 32768

struct signer;

/* What a signature is for; goes into the log. */
enum signer_purpose { SIGNER_REPORT, SIGNER_ARCHIVE };

struct signer_options {
	const char *directory; /* for the log, and the development keys; is created, mode 0700 */
	/* Makes what is missing and then loads it, each file mode 0600: report-root.pem, report.pem
	 * (certificate and key), timestamp-root.pem, timestamp.pem (certificate and key). */
	bool development;
	/* A real deployment: the report key and its certificates, signer first. */
	const char *key_path;
	const char *certificates_path;
	const char *roots_path; /* PEM, what signer_trust exports; NULL: development's, if any */
};

/* 0 when the child answers; ERR_IO, ERR_REFUSED (unusable keys or files) with the cause. */
int signer_start(const struct signer_options *options, struct signer **ret_signer,
                 struct error *error) __attribute__((warn_unused_result));
/* Ends the child and frees. NULL-safe. */
void signer_stop(struct signer *signer);

/* Each answers ERR_UNAVAILABLE once the child is gone or does not answer within 10 s (the caller
 * may then stop this signer and start another), ERR_REFUSED when the child declines. */

/* Signs with SHA-256 (ECDSA or RSA PKCS#1 v1.5, as the key is). The bytes must be the DER SET of
 * signed attributes of a CMS. Appends the signature value. */
int signer_sign(struct signer *signer, enum signer_purpose purpose, struct slice bytes,
                struct buf *out, struct error *error) __attribute__((warn_unused_result));
/* The embedded development timestamp authority: DER request in, DER response appended. */
int signer_timestamp(struct signer *signer, struct slice request, struct buf *out,
                     struct error *error) __attribute__((warn_unused_result));

/* Whether the child has ended by itself; it stays to be collected by signer_stop. */
bool signer_has_ended(const struct signer *signer);

/* PEM, constant during the signer's life, kept by it; no request to the child. */
struct slice signer_certificates(const struct signer *signer);    /* report signer first */
struct slice signer_trust(const struct signer *signer);           /* all roots, for --trust files */
struct slice signer_timestamp_roots(const struct signer *signer); /* of the embedded authority */

#endif
