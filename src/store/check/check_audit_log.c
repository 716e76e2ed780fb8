/* Checks of the chains of the audit log. */
#include "base/tuned.h"
#include "store/audit/audit_log.h"
#include "store/check/checking.h"
#include "store/events/segments.h"

#define PAGE 256
#define DOCUMENT_MEMORY ((size_t)16 << 20)

/* The last row that was checked. */
struct position {
	int64_t account, number; /* within its chain, from 1 */
	struct sha256 hash;
};

static bool says(const struct json *document, const char *member, struct slice expected)
{
	struct slice text;
	return json_get_text(document, member, &text) && slice_equal(text, expected);
}

static bool same_account(const struct json *document, struct db_query *query)
{
	const struct json *account = json_member(document, "account_id");
	if (db_integer(query, 0) == 0)
		return account && account->type == JSON_NULL;
	return !db_is_null(query, 7) && says(document, "account_id", db_text(query, 7));
}

static bool same_time(const struct json *document, int64_t at_us)
{
	struct slice text;
	int64_t said_us;
	return json_get_text(document, "at", &text) && time_parse(text, "at", &said_us, NULL) == OK &&
	       said_us == at_us;
}

/* Lists use the columns, but the hash covers only the document: they must agree. */
static int check_columns(struct check *check, struct db_query *query, int64_t number, bool urgent)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, DOCUMENT_MEMORY);
	struct json *document = NULL;
	int result = json_parse(&arena, db_text(query, 2), NULL, &document, NULL);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result)
		document = NULL;
	int64_t stated = 0;
	const struct json *is_urgent = json_member(document, "urgent");
	const struct {
		const char *what;
		bool same;
	} columns[] = {
		{"account", same_account(document, query)},
		{"act_id", says(document, "act_id", db_text(query, 4))},
		{"at", same_time(document, db_integer(query, 5))},
		{"operation", says(document, "operation", db_text(query, 6))},
		{"number", json_get_integer(document, "number", &stated) && stated == number},
		{"chain", (is_urgent && is_urgent->type == JSON_TRUE) == urgent},
	};
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (!columns[i].same)
			check_problem(
				check,
				"%s audit record %lld of account %lld: column %s does not match the document",
				urgent ? "urgent" : "ordinary", (long long)number, (long long)db_integer(query, 0),
				columns[i].what);
	return OK;
}

static int check_one(struct check *check, struct db_query *query, bool urgent,
                     struct position *last)
{
	const char *chain = urgent ? "urgent" : "ordinary";
	int64_t account = db_integer(query, 0), number = db_integer(query, 1);
	number = urgent ? -number : number;
	if (account != last->account)
		*last = (struct position){.account = account};
	if (number != last->number + 1)
		check_problem(check, "%s audit records of account %lld: number %lld follows %lld", chain,
		              (long long)account, (long long)number, (long long)last->number);
	struct sha256 hash = audit_chain_hash(&last->hash, db_text(query, 2));
	struct sha256 kept = store_sha256(db_blob(query, 3));
	if (!sha256_equal(&hash, &kept))
		check_problem(
			check, "%s audit record %lld of account %lld: the document does not match chain_hash",
			chain, (long long)number, (long long)account);
	last->number = number;
	last->hash = kept;
	return check_columns(check, query, number, urgent);
}

#define COLUMNS                                                                                    \
	"SELECT t.account, t.number, t.document, t.chain_hash, t.act_id, t.at, t.operation,"           \
	" a.account_id FROM acts t LEFT JOIN accounts a ON a.account = t.account"
static const char ordinary_sql[] =
	COLUMNS " WHERE (t.account > $1 OR (t.account = $1 AND t.number > $2)) AND t.number > 0"
			" ORDER BY t.account, t.number LIMIT $3";
static const char urgent_sql[] =
	COLUMNS " WHERE (t.account > $1 OR (t.account = $1 AND t.number < $2)) AND t.number <= 0"
			" ORDER BY t.account, t.number DESC LIMIT $3";

static int check_chains(struct check *check, bool urgent, struct error *error)
{
	struct position last = {.account = INT64_MIN};
	const int64_t most = tuned_up_to("checked", PAGE);
	bool any = true;
	int result = OK;
	while (any && !result) {
		struct db_connection *reader = check_take_reader(check);
		struct db_query *query = db_query(reader, urgent ? urgent_sql : ordinary_sql);
		db_bind(query, last.account, urgent ? -last.number : last.number, most);
		any = false;
		while (!result && db_step(query)) {
			any = true;
			result = check_one(check, query, urgent, &last);
		}
		int ended = db_end(query, error);
		result = result ? result : ended;
		check_give_reader(check);
	}
	return result;
}

/* ---- their segments ---- */

static int64_t ask_number(struct db_connection *reader, const char *literal_sql, int64_t account,
                          int64_t chain)
{
	struct db_query *query = db_query(reader, literal_sql);
	db_bind_integer(query, account);
	if (chain)
		db_bind_integer(query, chain);
	int64_t number = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	return number;
}

/* Checks that the segments are contiguous from number 1 up to *ret_last. Returns their number. */
static int64_t check_segments(struct check *check, int64_t account, int64_t chain,
                              int64_t *ret_last)
{
	struct db_query *query =
		db_query_long(check->reader, "SELECT number, first_sequence, last_sequence FROM segments"
	                                 " WHERE account = $1 AND chain = $2 ORDER BY number");
	db_bind(query, account, chain);
	int64_t count = 0;
	*ret_last = 0;
	while (db_step(query)) {
		if (db_integer(query, 0) != ++count || db_integer(query, 1) != *ret_last + 1)
			check_problem(check,
			              "audit records of account %lld: a segment before number %lld is missing",
			              (long long)account, (long long)db_integer(query, 1));
		*ret_last = db_integer(query, 2);
	}
	db_release(query);
	return count;
}

/* Checks that each record is either in one segment or listed as unsealed. */
static int check_sealed(struct check *check, int64_t account, int64_t chain, struct error *error)
{
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error);
	int64_t sealed = 0;
	int64_t segments = check_segments(check, account, chain, &sealed);
	int64_t acts = chain == URGENT_AUDIT_CHAIN
	                   ? ask_number(reader,
	                                "SELECT COALESCE(-MIN(number), 0) FROM acts"
	                                " WHERE account = $1 AND number < 0",
	                                account, 0)
	                   : ask_number(reader,
	                                "SELECT COALESCE(MAX(number), 0) FROM acts"
	                                " WHERE account = $1 AND number > 0",
	                                account, 0);
	int64_t unsealed =
		ask_number(reader, "SELECT count(*) FROM unsealed_acts WHERE account = $1 AND chain = $2",
	               account, chain);
	int64_t first = ask_number(reader,
	                           "SELECT COALESCE(MIN(number), 0) FROM unsealed_acts"
	                           " WHERE account = $1 AND chain = $2",
	                           account, chain);
	if (unsealed != acts - sealed || (unsealed > 0 && first != sealed + 1))
		check_problem(
			check,
			"%s audit records of account %lld: %lld of %lld are sealed, but %lld are listed as unsealed",
			chain == URGENT_AUDIT_CHAIN ? "urgent" : "ordinary", (long long)account,
			(long long)sealed, (long long)acts, (long long)unsealed);
	if (!result)
		result = db_failure(reader);
	check_give_reader(check);
	/* Called without a connection, because the listener takes one of its own. */
	for (int64_t number = 1; number <= segments && !result && check->listener->segment; number++) {
		result = check->listener->segment(check->listener->context, account, chain, number);
		result = result == ERR_CORRUPT ? OK : result;
	}
	return result;
}

static int check_account(struct check *check, int64_t account, struct error *error)
{
	int result = check_sealed(check, account, AUDIT_CHAIN, error);
	return result ? result : check_sealed(check, account, URGENT_AUDIT_CHAIN, error);
}

static int check_accounts(struct check *check, struct error *error)
{
	int64_t accounts[PAGE] = {0}; /* 0 first: records without an account */
	const int64_t most = tuned_up_to("checked", PAGE);
	size_t count = 1;
	int result = OK;
	while (count > 0 && !result) {
		int64_t last = accounts[count - 1];
		for (size_t i = 0; i < count && !result; i++)
			result = check_account(check, accounts[i], error);
		if (result)
			return result;
		struct db_query *query =
			db_query(check_take_reader(check), "SELECT account FROM accounts WHERE account > $1"
		                                       " ORDER BY account LIMIT $2");
		db_bind(query, last, most);
		for (count = 0; (int64_t)count < most && db_step(query); count++)
			accounts[count] = db_integer(query, 0);
		result = db_end(query, error);
		check_give_reader(check);
	}
	return result;
}

int check_audit_log(struct check *check, struct error *error)
{
	int result = check_chains(check, false, error);
	if (!result)
		result = check_chains(check, true, error);
	return result ? result : check_accounts(check, error);
}
