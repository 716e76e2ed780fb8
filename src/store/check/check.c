/* The steps of `store check`: chains, segments, money, certifications. */
#include <stdio.h>

#include "base/tuned.h"
#include "ledger/purchase_rules.h"
#include "store/accounts/accounts.h"
#include "store/check/checking.h"
#include "store/usage/count.h"

#define CHAINS_AT_ONCE 256
#define CONFIGS_AT_ONCE 100
#define CONFIGS_MEMORY_MAX ((size_t)4 << 20)

void check_problem(struct check *check, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (check->reader && db_failure(check->reader))
		return; /* a failed read proves nothing */
	check->report.problems++;
	check->listener->problem(check->listener->context, text);
}

struct db_connection *check_take_reader(struct check *check)
{
	return check->reader = db_take_reader(check->store->db);
}

void check_give_reader(struct check *check)
{
	db_give(check->reader);
	check->reader = NULL;
}

/* Returns an integer from one row; 0 when the row is absent or null. */
static int64_t number_of(struct db_connection *reader, const char *literal_sql, int64_t account,
                         int64_t other)
{
	struct db_query *query = db_query(reader, literal_sql);
	db_bind_integer(query, account);
	if (other >= 0)
		db_bind_integer(query, other);
	int64_t number = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	return number;
}

/* ---- events ---- */

static const struct sha256 *config_hash_of(const struct check *check, int64_t version)
{
	bool known = version >= 1 && version <= (int64_t)check->config_count;
	return known ? &check->config_hashes[version - 1] : NULL;
}

/* A problem found by a listener does not end the check; an object that it could not read does. */
static int ignore_problem(int result)
{
	return result == ERR_CORRUPT ? OK : result;
}

static int check_content(struct check *check, const struct event *event)
{
	if (event->content_object)
		return check->listener->content
		           ? ignore_problem(check->listener->content(check->listener->context, event))
		           : OK;
	if (event->content_bytes < 0)
		return OK;
	struct sha256 hash = sha256_of(event->content.data, event->content.size);
	if (event->declaration.hash_algorithm != HASH_SHA256 ||
	    memcmp(hash.bytes, event->declaration.hash, SHA256_SIZE) != 0)
		check_problem(check, "event %s: the hash of its content differs from the recorded hash",
		              event->event_id);
	return OK;
}

static int check_event(void *context, const struct event *event)
{
	struct check *check = context;
	if (event->sequence != check->sequence + 1)
		check_problem(check, "channel %s, %s chain: event %lld follows %lld", event->channel_id,
		              mode_text(event->mode), (long long)event->sequence,
		              (long long)check->sequence);
	if (event->received_at_us < check->received_at_us)
		check_problem(check, "event %s: received_at is earlier than that of the previous event",
		              event->event_id);
	const struct sha256 *config_hash = config_hash_of(check, event->config_version);
	if (!config_hash) {
		check_problem(check, "event %s: configuration version %lld does not exist", event->event_id,
		              (long long)event->config_version);
		return OK;
	}
	struct event_facts facts = event_facts_of(event, config_hash, &check->chain_hash);
	struct sha256 chain_hash;
	if (event_chain_hash(&facts, &check->record, &chain_hash))
		return ERR_NO_MEMORY;
	if (!sha256_equal(&chain_hash, &event->chain_hash))
		check_problem(check, "event %s: chain_hash does not match the event record",
		              event->event_id);
	int result = check_content(check, event);
	check->sequence = event->sequence;
	check->received_at_us = event->received_at_us;
	check->chain_hash = event->chain_hash;
	check->report.events++;
	return result;
}

/* ---- chains ---- */

static int check_documents(struct check *check, const struct chain_head *head)
{
	BUF_AUTO struct buf document;
	buf_init(&document, 65536);
	enum mode mode = check->chain % 2 ? MODE_TEST : MODE_LIVE;
	const struct genesis_facts facts = {check->channel.channel_id, mode, head->created_at_us};
	genesis_document(&facts, &document);
	if (buf_check(&document))
		return ERR_NO_MEMORY;
	struct sha256 hash = sha256_of(document.data, document.size);
	if (!sha256_equal(&hash, &head->genesis_hash))
		check_problem(check,
		              "channel %s, %s chain: the genesis hash does not match the genesis document",
		              check->channel.channel_id, mode_text(mode));
	return OK;
}

static int check_config(struct check *check, const struct channel_config *config)
{
	BUF_AUTO struct buf document;
	buf_init(&document, 65536);
	config_document(&config->facts, &document);
	if (buf_check(&document))
		return ERR_NO_MEMORY;
	struct sha256 hash = sha256_of(document.data, document.size);
	if (!sha256_equal(&hash, &config->hash))
		check_problem(
			check,
			"channel %s: the digest of configuration version %lld does not match its document",
			check->channel.channel_id, (long long)config->facts.version);
	return OK;
}

/* Checks a batch of versions from *next on. */
static int check_some_configs(struct check *check, int64_t *next, struct error *error)
{
	int64_t left = (int64_t)check->config_count - *next + 1;
	int64_t most = tuned_up_to("checked", CONFIGS_AT_ONCE);
	int64_t count = left < most ? left : most;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CONFIGS_MEMORY_MAX);
	struct channel some = {0};
	int result = store_get_channel_versions(check->store, check->account, check->chain / 2,
	                                        *next + count, count, &arena, &some, error);
	for (size_t i = 0; i < some.config_count && !result; i++) {
		const struct channel_config *config = &some.configs[i];
		result = check_config(check, config);
		if (config->facts.version == *next && *next <= (int64_t)check->config_count)
			check->config_hashes[(*next)++ - 1] = config->hash;
	}
	return result;
}

static int check_configs(struct check *check, struct arena *arena, struct error *error)
{
	int64_t next = 1;
	int64_t last = check->channel.config_count ? check->channel.configs[0].facts.version : 0;
	check->config_count = (size_t)last;
	check->config_hashes = arena_alloc(arena, (size_t)(last + 1) * sizeof *check->config_hashes);
	int result = check->config_hashes ? OK : ERR_NO_MEMORY;
	while (!result && next <= last) {
		int64_t first = next;
		result = check_some_configs(check, &next, error);
		if (!result && next == first)
			break;
	}
	check->config_count = (size_t)(next - 1);
	return result;
}

/* Checks that segments are contiguous up to the sealed sequence. *ret_last is the number of the
 * last one. */
static int check_segments(struct check *check, struct db_connection *reader, int64_t *ret_last)
{
	struct db_query *query =
		db_query_long(reader, "SELECT segment_id, first_sequence, last_sequence, number "
	                          "FROM segments WHERE account = $1 AND chain = $2 ORDER BY number");
	db_bind(query, check->account, check->chain);
	int64_t last = 0;
	int64_t number = 0;
	while (db_step(query)) {
		struct slice id = db_text(query, 0);
		if (db_integer(query, 1) != last + 1)
			check_problem(check, "segment %.*s does not begin where the previous segment ended",
			              (int)id.size, id.data);
		last = db_integer(query, 2);
		number = db_integer(query, 3);
		check->report.segments++;
	}
	db_release(query);
	int64_t sealed = number_of(reader,
	                           "SELECT sealed_sequence FROM chains WHERE account = $1 "
	                           "AND chain = $2",
	                           check->account, check->chain);
	if (sealed != last)
		check_problem(
			check, "chain %lld is marked as sealed up to event %lld, but its segments end at %lld",
			(long long)check->chain, (long long)sealed, (long long)last);
	*ret_last = number;
	return db_failure(reader);
}

static int check_chain(struct check *check, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)64 << 20);
	struct chain_head head;
	int result = store_get_chain(check->store, check->account, check->chain, &head, error)
	                 ?: store_get_channel_versions(check->store, check->account, check->chain / 2,
	                                               INT64_MAX, 1, &arena, &check->channel, error);
	if (result)
		return result;
	result = check_documents(check, &head) ?: check_configs(check, &arena, error);
	int64_t problems = check->report.problems;
	if (!result && !db_is_shared(check->store->db))
		result = check_chain_runs(check, error);
	if (result || check->report.problems > problems)
		return result; /* its events may not be found */
	check->sequence = 0;
	check->received_at_us = 0;
	check->chain_hash = head.genesis_hash;
	struct event_filter filter = {
		.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_to = head.last_sequence, .status = -1};
	if (head.last_sequence > 0)
		result = store_list_events(check->store, check->account, check->chain, &filter, 0, true,
		                           check_event, check, error);
	if (result)
		return result;
	if (check->sequence != head.last_sequence ||
	    !sha256_equal(&check->chain_hash, &head.last_chain_hash))
		check_problem(check, "channel %s, %s chain: the chain head does not match the last event",
		              check->channel.channel_id,
		              mode_text(check->chain % 2 ? MODE_TEST : MODE_LIVE));
	struct db_connection *reader = check_take_reader(check);
	result = db_begin(reader, error);
	int64_t segments = 0;
	if (!result) {
		check_chain_usage(check);
		result = check_segments(check, reader, &segments);
	}
	check_give_reader(check);
	/* Called without a connection, because the listener takes one of its own. */
	for (int64_t number = 1; number <= segments && !result && check->listener->segment; number++)
		result = ignore_problem(check->listener->segment(check->listener->context, check->account,
		                                                 check->chain, number));
	check->report.chains++;
	return result;
}

static int next_chains(struct store *store, const int64_t after[2], int64_t numbers[][2],
                       int64_t most, size_t *ret_count, struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query =
		db_query(reader, "SELECT account, chain FROM chains WHERE (account, chain) > ($1, $2) "
	                     "ORDER BY account, chain LIMIT $3");
	db_bind(query, after[0], after[1], most);
	*ret_count = 0;
	while ((int64_t)*ret_count < most && db_step(query)) {
		numbers[*ret_count][0] = db_integer(query, 0);
		numbers[(*ret_count)++][1] = db_integer(query, 1);
	}
	int result = db_end(query, error);
	db_give(reader);
	return result;
}

static int check_chains(struct check *check, struct error *error)
{
	int64_t numbers[CHAINS_AT_ONCE][2];
	const int64_t most = tuned_up_to("checked", CHAINS_AT_ONCE);
	size_t count;
	int64_t after[2] = {-1, -1};
	int result = OK;
	do {
		result = next_chains(check->store, after, numbers, most, &count, error);
		for (size_t i = 0; i < count && !result; i++) {
			check->account = after[0] = numbers[i][0];
			check->chain = after[1] = numbers[i][1];
			result = check_chain(check, error);
		}
	} while (!result && (int64_t)count == most);
	return result;
}

/* ---- the staged round ---- */

static void check_staged_blocks(struct check *check, int64_t round, int64_t blocks)
{
	int64_t last = number_of(
		check->reader, "SELECT COALESCE(MAX(round), 0) FROM seal_rounds WHERE $1 = $1", 0, -1);
	int64_t kept = number_of(check->reader,
	                         "SELECT count(*) FROM round_blocks WHERE round = $1 AND block < $2",
	                         round, blocks);
	int64_t others = number_of(check->reader,
	                           "SELECT count(*) FROM round_blocks WHERE round > $1 OR (round = $1"
	                           " AND block >= $2)",
	                           round, blocks);
	if (round > last + 1)
		check_problem(check, "round %lld is staged, but the last round is %lld", (long long)round,
		              (long long)last);
	if (round <= last && blocks > 0)
		check_problem(check, "round %lld is both written and staged", (long long)round);
	if (kept != blocks)
		check_problem(check, "round %lld: %lld blocks are staged, but only %lld exist",
		              (long long)round, (long long)blocks, (long long)kept);
	/* While a node that does not know the staged round seals, the row lags behind the rounds. */
	if (others > 0 && round > last)
		check_problem(check, "round %lld: %lld blocks exist that are not staged", (long long)round,
		              (long long)others);
}

static int check_staged_round(struct check *check, struct error *error)
{
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error);
	struct db_query *query = db_query(reader, "SELECT round, blocks FROM staged_round");
	bool found = db_step(query);
	int64_t round = found ? db_integer(query, 0) : 0;
	int64_t blocks = found ? db_integer(query, 1) : 0;
	db_release(query);
	if (found)
		check_staged_blocks(check, round, blocks);
	else
		check_problem(check, "the row in staged_round is missing");
	if (!result)
		result = db_failure(reader);
	check_give_reader(check);
	return result;
}

/* ---- indexes ---- */

/* Checks that all events are found by number, by digest and by client_ref. */
static int check_indexes(struct check *check, struct error *error)
{
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error);
	if (!result)
		check_run_total(check);
	if (!result)
		result = db_failure(reader);
	check_give_reader(check);
	if (!result)
		result = check_digests(check, error);
	return result ? result : check_client_refs(check, error);
}

/* ---- money ---- */

/* Checks purchases with a recorded rate. */
static void check_taxes(struct check *check, struct db_connection *reader, int64_t account)
{
	struct db_query *query = db_query(reader, "SELECT sale_id, amount, tax, tax_rate FROM purchases"
	                                          " WHERE account = $1 AND tax_rate IS NOT NULL");
	db_bind_integer(query, account);
	while (db_step(query)) {
		struct slice id = db_text(query, 0);
		if (!amount_is_taxed(db_integer(query, 1), db_integer(query, 3), db_integer(query, 2)))
			check_problem(check, "purchase %.*s: the tax amount does not match the tax rate",
			              (int)id.size, id.data);
	}
	db_release(query);
}

/* Compares each purchase with the entries of its credits. */
static void check_purchases(struct check *check, struct db_connection *reader, int64_t account,
                            const char *account_id)
{
	struct db_query *query = db_query(
		reader, "SELECT p.sale_id FROM purchases p"
				" LEFT JOIN credit_entries e ON e.account = p.account AND e.number = p.paid_entry"
				" LEFT JOIN credit_entries b ON b.account = p.account"
				" AND b.number = p.returned_entry"
				" WHERE p.account = $1 AND (NOT CASE"
				" WHEN p.state = 'paid' THEN p.paid_entry IS NOT NULL AND p.returned_entry IS NULL"
				" WHEN p.state IN ('refunded', 'reverted')"
				" THEN (p.paid_entry IS NULL) = (p.returned_entry IS NULL)"
				" ELSE p.paid_entry IS NULL AND p.returned_entry IS NULL END"
				" OR (p.paid_entry IS NOT NULL AND NOT (COALESCE(e.kind, '') = 'purchase'"
				" AND e.reference = p.sale_id AND e.credits = p.credits))"
				" OR (p.returned_entry IS NOT NULL AND NOT (COALESCE(b.kind, '') ="
				" CASE p.state WHEN 'refunded' THEN 'refund' ELSE 'revert' END"
				" AND b.reference = p.sale_id AND b.credits = -p.credits)))");
	db_bind_integer(query, account);
	while (db_step(query)) {
		struct slice id = db_text(query, 0);
		check_problem(check, "purchase %.*s: its state does not match its credit entries",
		              (int)id.size, id.data);
	}
	db_release(query);
	int64_t entries = number_of(reader,
	                            "SELECT count(*) FROM credit_entries WHERE account = $1 "
	                            "AND kind IN ('purchase', 'refund')",
	                            account, -1);
	int64_t named = number_of(reader,
	                          "SELECT count(paid_entry) + count(CASE WHEN state = "
	                          "'refunded' THEN returned_entry END) FROM purchases "
	                          "WHERE account = $1",
	                          account, -1);
	if (entries != named)
		check_problem(check,
		              "account %s has %lld credit entries of purchases and refunds, but "
		              "its purchases refer to %lld",
		              account_id, (long long)entries, (long long)named);
}

/* In the same transaction as the other checks of the account. */
static void check_stored_bytes(struct check *check, struct db_connection *reader, int64_t account,
                               const char *account_id)
{
	int64_t stored =
		number_of(reader, "SELECT stored_bytes FROM accounts WHERE account = $1", account, -1);
	int64_t found = 0;
	if (!stored_bytes_of(reader, account, &found, NULL) && found != stored)
		check_problem(check, "account %s: stored_bytes is %lld, but its objects have %lld bytes",
		              account_id, (long long)stored, (long long)found);
}

static void check_account(struct check *check, struct db_connection *reader, int64_t account,
                          const char *account_id, int64_t balance, int64_t unpaid)
{
	int64_t sum = number_of(reader,
	                        "SELECT COALESCE(sum(credits), 0) FROM credit_entries "
	                        "WHERE account = $1",
	                        account, -1);
	if (sum != balance)
		check_problem(check,
		              "account %s: the balance is %lld, but the sum of its credit entries is %lld",
		              account_id, (long long)balance, (long long)sum);
	int64_t rows =
		number_of(reader, "SELECT count(*) FROM unpaid_events WHERE account = $1", account, -1);
	if (rows != unpaid)
		check_problem(check, "account %s: the count of unpaid events is %lld, but %lld are listed",
		              account_id, (long long)unpaid, (long long)rows);
	int64_t live = number_of(reader,
	                         "SELECT COALESCE(sum(last_sequence), 0) FROM chains "
	                         "WHERE account = $1 AND chain % 2 = 0",
	                         account, -1);
	int64_t paid = -number_of(reader,
	                          "SELECT COALESCE(sum(credits), 0) FROM credit_entries "
	                          "WHERE account = $1 AND kind IN ('events', 'settlement')",
	                          account, -1);
	if (live != paid + unpaid)
		check_problem(check, "account %s has %lld live events, but %lld paid and %lld unpaid ones",
		              account_id, (long long)live, (long long)paid, (long long)unpaid);
	check_purchases(check, reader, account, account_id);
	check_taxes(check, reader, account);
	check_stored_bytes(check, reader, account, account_id);
	check_account_usage(check, account, account_id);
	check_account_totals(check, account, account_id);
	check->report.accounts++;
}

static int check_accounts(struct check *check, struct error *error)
{
	int64_t account = -1;
	bool found = true;
	int result = OK;
	while (found && !result) {
		struct db_connection *reader = check_take_reader(check);
		result = db_begin(reader, error);
		struct db_query *query =
			db_query(reader, "SELECT account, account_id, balance, unpaid_events FROM accounts "
		                     "WHERE account > $1 ORDER BY account LIMIT 1");
		db_bind_integer(query, account);
		found = db_step(query);
		int64_t balance = 0;
		int64_t unpaid = 0;
		char id[ID_SIZE] = "";
		if (found) {
			account = db_integer(query, 0);
			store_copy_id(id, db_text(query, 1));
			balance = db_integer(query, 2);
			unpaid = db_integer(query, 3);
		}
		if (!result)
			result = db_end(query, error);
		if (found && !result)
			check_account(check, reader, account, id, balance, unpaid);
		if (!result)
			result = db_failure(reader);
		check_give_reader(check);
	}
	return result;
}

static int check_certifications(struct check *check, struct error *error)
{
	struct db_connection *reader = check_take_reader(check);
	struct db_query *query = db_query(
		reader,
		"SELECT certification_id FROM certifications "
		"LEFT JOIN chains ON chains.account = certifications.account "
		"AND chains.chain = certifications.chain WHERE chains.chain IS NULL "
		"OR certifications.last_sequence > chains.last_sequence "
		"OR certifications.first_sequence > certifications.last_sequence "
		"OR (status = 'completed') != (verification_code IS NOT NULL AND completed_at IS NOT "
		"NULL AND EXISTS (SELECT 1 FROM issued_files "
		"WHERE issued_files.account = certifications.account "
		"AND issued_files.certification = certifications.certification))");
	while (db_step(query)) {
		struct slice id = db_text(query, 0);
		check_problem(check, "certification %.*s: its range or its documents are incomplete",
		              (int)id.size, id.data);
	}
	int result = db_end(query, error);
	check->report.certifications =
		number_of(reader, "SELECT count(*) FROM certifications WHERE $1 = $1", 0, -1);
	if (!result)
		result = db_failure(reader);
	check_give_reader(check);
	return result;
}

int store_check(struct store *store, const struct check_listener *listener,
                struct check_report *ret_report, struct error *error)
{
	struct check check = {.store = store, .listener = listener};
	buf_init(&check.record, EVENT_RECORD_MAX);
	int result = check_chains(&check, error) ?: check_staged_round(&check, error);
	if (!result && !db_is_shared(store->db))
		result = check_indexes(&check, error);
	if (!result)
		result = check_accounts(&check, error);
	if (!result)
		result = check_certifications(&check, error);
	if (!result)
		result = check_evidence(&check, error);
	if (!result)
		result = check_segment_log(&check, error);
	if (!result)
		result = check_audit_log(&check, error);
	buf_free(&check.record);
	if (result)
		return result;
	*ret_report = check.report;
	return check.report.problems > 0 ? ERR_CORRUPT : OK;
}
