/* State of a store check in progress, shared by the files of the check. */
#ifndef STORE_CHECK_CHECKING_H
#define STORE_CHECK_CHECKING_H

#include "store/events/register_batch.h"

struct check {
	struct store *store;
	const struct check_listener *listener;
	struct check_report report;
	struct db_connection *reader; /* taken at the moment; NULL: none */
	/* The chain being checked. */
	int64_t account;
	int64_t chain;
	struct channel channel;       /* with its newest version */
	struct sha256 *config_hashes; /* by version number - 1 */
	size_t config_count;
	int64_t sequence;
	int64_t received_at_us;
	struct sha256 chain_hash;
	struct buf record;
};

/* Reports a problem to the listener, unless the reader has failed; a failed read proves nothing. */
void check_problem(struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
struct db_connection *check_take_reader(struct check *check);
void check_give_reader(struct check *check);

/* Check the usage totals of the current chain, in the reader's view, and of an account. */
void check_chain_usage(struct check *check);
void check_account_usage(struct check *check, int64_t account, const char *account_id);
/* Checks the daily totals of an account (usage/totals.h). */
void check_account_totals(struct check *check, int64_t account, const char *account_id);

/* Embedded engine: check the event runs of the current chain, and the total of all runs in the
 * reader's view. */
int check_chain_runs(struct check *check, struct error *error) MUST_CHECK;
void check_run_total(struct check *check);
/* Embedded engine: checks that the client_ref index finds every event, and that each client_ref has
 * one event. */
int check_client_refs(struct check *check, struct error *error) MUST_CHECK;

/* Checks that the index of digests has the entries of its events. */
int check_digests(struct check *check, struct error *error) MUST_CHECK;

/* Checks the archive timestamps, and that documents and tokens refer to them correctly. */
int check_evidence(struct check *check, struct error *error) MUST_CHECK;
/* Checks the log of segments. */
int check_segment_log(struct check *check, struct error *error) MUST_CHECK;
/* Checks the numbers, chains and segments of the audit log. */
int check_audit_log(struct check *check, struct error *error) MUST_CHECK;

#endif
