/* EU trusted lists (ETSI TS 119 612): whether the service that issued a certificate, or gave a
 * time, was qualified at that time.
 *
 * A list is XML, signed (XAdES, enveloped), and comes from elsewhere: a process of its own reads
 * it, the program constancia-trusted-list, which alone loads the libraries for that. It has no
 * network, no file but the list, and bounds on time and memory. The list has no document type, at
 * most TRUSTED_LIST_MAX bytes, one signature that covers all of it and the signed properties, by
 * exclusive canonical XML, SHA-2, and a key of a given certificate or of one below it. */
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
	bool seal; /* of a signer: qualified certificates for electronic seals; else qualified
	              timestamps */
	int64_t from_us, to_us; /* at all times between */
	struct slice path;      /* DER: the certificate and those above it, as far as they are known */
};

enum list_standing {
	STANDING_UNKNOWN, /* no service of the list is above the certificate, or the list does not say
	                   */
	STANDING_NOT_QUALIFIED,
	STANDING_QUALIFIED,
};
/* "unknown", "not_qualified", "qualified". */
const char *list_standing_text(enum list_standing standing);

struct list_answer {
	enum list_standing standing;
	char reason[TRUSTED_LIST_TEXT_SIZE]; /* one English sentence without its end */
	char provider[TRUSTED_LIST_TEXT_SIZE], service[TRUSTED_LIST_TEXT_SIZE]; /* "": none */
};

struct list_facts {
	char territory[16];
	char operator_name[TRUSTED_LIST_TEXT_SIZE];
	char signer[TRUSTED_LIST_TEXT_SIZE];
	int64_t issued_us;
	int64_t next_us; /* when the next one is due; TIME_NONE: the list is closed */
};

/* Asks the list of that file. `roots_pem`: certificates that may sign it, or above those that may.
 * `at_us`: what its own end is compared with. A closed list has no end: it stays good for what was
 * until it was issued, and says of nothing that it is qualified later. 0; ERR_INVALID_EVIDENCE: the
 * list is damaged, not signed by one of them, or out of date; ERR_IO, ERR_UNAVAILABLE: it, or the
 * program, cannot be read; ERR_NO_MEMORY. */
int trusted_list_ask(const char *path, struct slice roots_pem, int64_t at_us,
                     const struct list_question *questions, size_t count,
                     struct list_answer *ret_answers, struct list_facts *ret_facts,
                     struct error *error) MUST_CHECK;

/* Whether the program that reads lists is there. ERR_UNAVAILABLE with its path. */
int trusted_list_check(struct error *error) MUST_CHECK;

#endif
