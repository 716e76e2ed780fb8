/* A check in progress, shared by its files. */
#ifndef STORE_CHECK_CHECKING_H
#define STORE_CHECK_CHECKING_H

#include "store/events/register_batch.h"

struct check {
	struct store *store;
	const struct check_listener *listener;
	struct check_report report;
	struct db_connection *reader; /* taken now, NULL: none */
	/* Of the chain at hand. */
	int64_t account;
	int64_t chain;
	struct channel channel;       /* with its newest version */
	struct sha256 *config_hashes; /* of each version, by its number - 1 */
	size_t config_count;
	int64_t sequence;
	int64_t received_at_us;
	struct sha256 chain_hash;
	struct buf record;
};

/* Told, unless the reader failed: what could not be read proves nothing. */
void check_problem(struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
struct db_connection *check_take_reader(struct check *check);
void check_give_reader(struct check *check);

/* The totals of usage: of the chain at hand, in the reader's view; and of an account. */
void check_chain_usage(struct check *check);
void check_account_usage(struct check *check, int64_t account, const char *account_id);
/* The daily totals beside them, of an account. */
void check_account_totals(struct check *check, int64_t account, const char *account_id);

/* Embedded: how events are found, those of the chain at hand; and all, in the reader's view. */
int check_chain_arrivals(struct check *check, struct error *error) MUST_CHECK;
void check_all_arrivals(struct check *check);
/* Embedded: the index of client_refs leads to every event, each client_ref to one. */
int check_client_refs(struct check *check, struct error *error) MUST_CHECK;

/* Archive timestamps, and how documents and tokens lead to them. */
int check_evidence(struct check *check, struct error *error) MUST_CHECK;
/* The numbers and chains of acts of administration. */
int check_acts(struct check *check, struct error *error) MUST_CHECK;

#endif
