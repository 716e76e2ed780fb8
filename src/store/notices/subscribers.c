#include "store/notices/subscribers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/tuned.h"
#include "store/certifications/certifications.h"
#include "store/store_internal.h"
#include "store/transaction.h"

#define DATA_MAX ((size_t)48 * 1024) /* of one notice; the envelope is limited to 64 KiB */

/* SQL condition: the endpoint is enabled and its types name that type. */
#define NAMES(endpoints, type)                                                                     \
	endpoints ".disabled_at IS NULL AND " endpoints ".deleted_at IS NULL AND " endpoints           \
			  ".types LIKE '%," type ",%'"

/* ---- event.sealed ---- */

/* One chain of a round. All its segments of the round are one range. */
struct sealed_chain {
	int64_t chain;
	char channel_id[ID_SIZE];
	char segment_id[ID_SIZE]; /* of the last one */
	int64_t first_sequence, last_sequence;
};

static int list_subscribers(struct db_connection *connection, int64_t *ret_accounts,
                            size_t *ret_count, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT DISTINCT e.account FROM webhook_endpoints e"
	                         " WHERE " NAMES("e", "event.sealed") " ORDER BY e.account LIMIT $1");
	db_bind_integer(query, SUBSCRIBERS_MAX);
	size_t count = 0;
	while (count < SUBSCRIBERS_MAX && db_step(query))
		ret_accounts[count++] = db_integer(query, 0);
	*ret_count = count;
	return db_end(query, error);
}

static int list_chains(struct db_connection *connection, int64_t account, int64_t round,
                       int64_t after, struct sealed_chain *ret_chains, size_t *ret_count,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"SELECT c.chain, h.channel_id, s.segment_id, c.sealed_before, c.sealed_sequence"
		" FROM chains c JOIN channels h ON h.account = c.account AND h.channel = c.chain / 2"
		" JOIN segments s ON s.account = c.account AND s.chain = c.chain"
		" AND s.number = c.sealed_segment WHERE c.account = $1 AND c.sealed_round = $2"
		" AND c.chain > $3 ORDER BY c.chain LIMIT $4");
	const int64_t most = tuned_up_to("sealed_of_notice", SEALED_SEGMENTS_OF_NOTICE);
	db_bind(query, account, round, after, most);
	size_t count = 0;
	for (; (int64_t)count < most && db_step(query); count++) {
		struct sealed_chain *chain = &ret_chains[count];
		chain->chain = db_integer(query, 0);
		store_copy_id(chain->channel_id, db_text(query, 1));
		store_copy_id(chain->segment_id, db_text(query, 2));
		chain->first_sequence = db_integer(query, 3) + 1;
		chain->last_sequence = db_integer(query, 4);
	}
	*ret_count = count;
	return db_end(query, error);
}

static int write_sealed(struct db_connection *connection, int64_t account,
                        const struct sealed_chain *chains, size_t count, int64_t sealed_at_us,
                        struct error *error)
{
	BUF_AUTO struct buf data;
	buf_init(&data, DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_time(&writer, "sealed_at", sealed_at_us);
	json_begin_array(&writer, "segments");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&writer, NULL);
		json_text(&writer, "channel_id", chains[i].channel_id);
		json_text(&writer, "segment_id", chains[i].segment_id);
		json_integer(&writer, "seq_from", chains[i].first_sequence);
		json_integer(&writer, "seq_to", chains[i].last_sequence);
		json_integer(&writer, "event_count",
		             chains[i].last_sequence - chains[i].first_sequence + 1);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	json_end_object(&writer);
	int result = buf_check(&data);
	const struct ledger_notice notice = {.type = NOTICE_EVENT_SEALED, .data = buf_slice(&data)};
	return result ? result
	              : store_write_notices(connection, account, &notice, MODE_LIVE,
	                                    db_now_us(db_of(connection)), error);
}

static int write_sealed_of_account(struct db_connection *connection, int64_t account, int64_t round,
                                   int64_t sealed_at_us, struct error *error)
{
	struct sealed_chain chains[SEALED_SEGMENTS_OF_NOTICE];
	int64_t left = tuned_up_to("sealed_notices", SEALED_NOTICES_OF_ACCOUNT_MAX), after = 0;
	size_t count = 1;
	/* The order of an account's notices depends on its lock, which registrations hold, too. */
	int result = lock_account(connection, account, error);
	while (!result && count > 0 && left-- > 0) {
		result = list_chains(connection, account, round, after, chains, &count, error);
		if (!result && count > 0) {
			after = chains[count - 1].chain;
			result = write_sealed(connection, account, chains, count, sealed_at_us, error);
		}
	}
	return result;
}

int write_sealed_notices(struct db_connection *connection, int64_t round, int64_t sealed_at_us,
                         struct error *error)
{
	if (db_is_sharded(db_of(connection)))
		return OK;
	int64_t *accounts = malloc(SUBSCRIBERS_MAX * sizeof *accounts);
	size_t count = 0;
	if (!accounts)
		return ERR_NO_MEMORY;
	int result = list_subscribers(connection, accounts, &count, error);
	/* In ascending order, in which endpoints are locked. */
	for (size_t i = 0; i < count && !result; i++)
		result = write_sealed_of_account(connection, accounts[i], round, sealed_at_us, error);
	free(accounts);
	return result;
}

/* ---- certification.evidence_ready ---- */

struct recorded {
	int64_t account;
	int64_t event_count;
	char certification_id[ID_SIZE];
	char channel_id[ID_SIZE];
	char verification_code[VERIFICATION_CODE_SIZE];
};

static int list_recorded(struct db_connection *connection, int64_t stamp,
                         struct recorded *ret_items, size_t *ret_count, struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"SELECT c.account, c.last_sequence - c.first_sequence + 1, c.certification_id,"
		" h.channel_id, c.verification_code FROM evidence_chains e"
		" JOIN certifications c ON c.account = e.account AND c.certification = e.certification"
		" JOIN channels h ON h.account = c.account AND h.channel = c.channel"
		" WHERE e.stamp = $1 AND e.record = 1 AND e.chain = 1 AND EXISTS"
		" (SELECT 1 FROM webhook_endpoints w WHERE w.account = e.account"
		" AND " NAMES(
			"w", "certification.evidence_ready") ")"
												 " ORDER BY c.account, c.certification LIMIT $2");
	db_bind(query, stamp, EVIDENCE_NOTICES_MAX);
	size_t count = 0;
	for (; count < EVIDENCE_NOTICES_MAX && db_step(query); count++) {
		struct recorded *item = &ret_items[count];
		struct slice code = db_text(query, 4);
		item->account = db_integer(query, 0);
		item->event_count = db_integer(query, 1);
		store_copy_id(item->certification_id, db_text(query, 2));
		store_copy_id(item->channel_id, db_text(query, 3));
		snprintf(item->verification_code, sizeof item->verification_code, "%.*s", (int)code.size,
		         code.data);
	}
	*ret_count = count;
	return db_end(query, error);
}

static int write_recorded(struct db_connection *connection, const struct recorded *item,
                          int64_t stamped_at_us, struct error *error)
{
	BUF_AUTO struct buf data;
	buf_init(&data, DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_text(&writer, "certification_id", item->certification_id);
	json_text(&writer, "channel_id", item->channel_id);
	json_text(&writer, "status", certification_status_text(CERTIFICATION_COMPLETED));
	json_integer(&writer, "event_count", item->event_count);
	json_text(&writer, "verification_code", item->verification_code);
	json_time(&writer, "evidence_record_since", stamped_at_us);
	json_end_object(&writer);
	int result = buf_check(&data);
	const struct ledger_notice notice = {.type = NOTICE_CERTIFICATION_EVIDENCE_READY,
	                                     .data = buf_slice(&data)};
	return result ? result
	              : store_write_notices(connection, item->account, &notice, MODE_LIVE,
	                                    db_now_us(db_of(connection)), error);
}

int write_evidence_notices(struct db_connection *connection, int64_t stamp, int64_t stamped_at_us,
                           struct error *error)
{
	if (db_is_sharded(db_of(connection)))
		return OK;
	struct recorded *items = malloc(EVIDENCE_NOTICES_MAX * sizeof *items);
	size_t count = 0;
	if (!items)
		return ERR_NO_MEMORY;
	int result = list_recorded(connection, stamp, items, &count, error);
	for (size_t i = 0; i < count && !result; i++)
		result = lock_account(connection, items[i].account, error)
		             ?: write_recorded(connection, &items[i], stamped_at_us, error);
	free(items);
	return result;
}
