/* EU trusted lists (ETSI TS 119 612): whether the service that issued a certificate or a timestamp
 * was qualified at that time.
 *
 * A list is a signed XML file (XAdES, enveloped) from an external source. A separate process reads
 * it: the program constancia-trusted-list, the only one that loads the libraries for this. That
 * process has no network, no file except the list, and limits on time and memory. The list must
 * have no document type and at most TRUSTED_LIST_MAX bytes. It must have one signature that covers
 * all of it and the signed properties, with exclusive canonical XML, SHA-2, and the key of a given
 * certificate or of one that a given certificate issued. */
#ifndef TRUSTLIST_TRUSTED_LIST_H
#define TRUSTLIST_TRUSTED_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define TRUSTED_LIST_MAX ((size_t)32 << 20)
#define TRUSTED_LIST_TEXT_SIZE 256
#define TRUSTED_LIST_QUESTIONS_MAX 2000

struct list_question {
	bool seal; /* true: a signer, qualified certificates for electronic seals; false: qualified
	              timestamps */
	int64_t from_us, to_us; /* the period for which the status is queried */
	struct slice path;      /* DER: the certificate and its known issuers */
};

enum list_status {
	LIST_STATUS_UNKNOWN, /* no service on the list issued the certificate, or its status is unclear
	                      */
	LIST_STATUS_NOT_QUALIFIED,
	LIST_STATUS_QUALIFIED,
};
/* Returns "unknown", "not_qualified" or "qualified". */
const char *list_status_text(enum list_status standing);

struct list_answer {
	enum list_status standing;
	char reason[TRUSTED_LIST_TEXT_SIZE]; /* one English sentence without a full stop */
	char provider[TRUSTED_LIST_TEXT_SIZE], service[TRUSTED_LIST_TEXT_SIZE]; /* "": none */
};

struct list_facts {
	char territory[16];
	char operator_name[TRUSTED_LIST_TEXT_SIZE];
	char signer[TRUSTED_LIST_TEXT_SIZE];
	int64_t issued_us;
	int64_t next_us; /* time of the next update; TIME_NONE: the list is closed */
};

/* Queries the list in that file. `roots_pem`: certificates that may sign it, or their issuers.
 * `at_us`: the time at which the list must not be out of date. A closed list does not expire: it
 * remains valid for times before its issue, and reports no service as qualified later. Returns 0;
 * ERR_INVALID_EVIDENCE if the list is damaged, has no valid signature by one of these certificates,
 * or is out of date; ERR_IO or ERR_UNAVAILABLE if the list cannot be read or the program cannot
 * run; ERR_NO_MEMORY. */
int trusted_list_query(const char *path, struct slice roots_pem, int64_t at_us,
                       const struct list_question *questions, size_t count,
                       struct list_answer *ret_answers, struct list_facts *ret_facts,
                       struct error *error) MUST_CHECK;

/* Checks that the program that reads lists is installed. Returns ERR_UNAVAILABLE with its path. */
int trusted_list_check(struct error *error) MUST_CHECK;

#endif
