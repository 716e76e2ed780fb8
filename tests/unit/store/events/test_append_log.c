/* The append log of events, read by numbers, compared with a plain list. */
#include <sqlite3.h>

#include "testing.h"
#include "sample.h"
#include "store/events/append_log.h"

#define CHAINS 5
#define FIRST_CHAIN 1000 /* in addition to the chain of the sample */
#define ACCOUNT 77
#define ROUNDS 400
#define RANGES 40
#define RUN_MAX 12
#define OBJECT_EVERY 7

static int64_t steps;
int __real_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement);
int __wrap_sqlite3_step(sqlite3_stmt *statement)
{
	steps++;
	return __real_sqlite3_step(statement);
}

struct fixture {
	struct sample sample;
	int64_t before[CHAINS], last[CHAINS]; /* sequences: in events_before, of all */
	struct arrival_runs_end ends[CHAINS];
};
static struct error error;

static uint64_t random_state;
static int64_t random_below(int64_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)(random_state >> 33) % bound;
}

static int64_t event_of(int chain, int64_t sequence)
{
	return event_number(FIRST_CHAIN + chain, sequence);
}

static void object_of(int64_t event, char object[32])
{
	snprintf(object, 32, "o/%017lld", (long long)event);
}

static struct db_connection *begin(struct fixture *fixture)
{
	struct db_connection *writer = db_take_writer(fixture->sample.store->db);
	assert_int_equal(db_begin(writer, &error), OK);
	return writer;
}

static void commit(struct db_connection *writer)
{
	int result = db_commit(writer, &error);
	if (result)
		print_error("%s\n", error.cause);
	assert_int_equal(result, OK);
	db_give(writer);
}

#define COLUMNS                                                                                    \
	"event, account, key, client_ref, received_at, hash, config_version, chain_hash, content, "    \
	"content_object"

/* arrival 0: an event from before the append log. */
static void write_event(struct db_connection *writer, int64_t arrival, int64_t event)
{
	char object[32], content[32];
	object_of(event, object);
	int size = snprintf(content, sizeof content, "content %lld", (long long)event);
	struct db_query *query =
		arrival ? db_query(writer, "INSERT INTO events_arrived(" COLUMNS ", arrival) "
	                               "VALUES ($1, $2, 1, 'r', $3, x'00', 1, x'01', $4, $5, $6)")
				: db_query(writer, "INSERT INTO events_before(" COLUMNS ") "
	                               "VALUES ($1, $2, 1, 'r', $3, x'00', 1, x'01', $4, $5)");
	db_bind_integer(query, event);
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, event * 3);
	db_bind_blob(query, content, (size_t)size);
	db_bind_string(query, event % OBJECT_EVERY ? NULL : object);
	if (arrival)
		db_bind_integer(query, arrival);
	assert_int_equal(db_execute(query, NULL, &error), OK);
}

static int64_t last_run_of(struct db_connection *connection, int chain)
{
	struct db_query *query =
		db_query(connection, "SELECT last_run FROM chains WHERE account = $1 AND chain = $2");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, FIRST_CHAIN + chain);
	assert_true(db_step(query));
	int64_t last_run = db_integer(query, 0);
	assert_int_equal(db_end(query, &error), OK);
	return last_run;
}

static void add_run(struct fixture *fixture, struct db_connection *writer, int chain, int64_t count)
{
	int64_t last;
	assert_int_equal(append_log_last(writer, &last, &error), OK);
	int64_t first = event_of(chain, fixture->last[chain] + 1);
	for (int64_t i = 0; i < count; i++)
		write_event(writer, last + 1 + i, first + i);
	/* The run from memory and the run from the table must be equal. */
	struct arrival_runs_end *end = &fixture->ends[chain];
	if (first % 3 == 0)
		*end = (struct arrival_runs_end){.last.arrival = last_run_of(writer, chain)};
	else if (first % 3 == 1)
		end->beyond = (struct append_run){0};
	assert_int_equal(end->last.arrival, last_run_of(writer, chain));
	assert_int_equal(append_log_add_run(writer, last + 1, first, count, end, &error), OK);
	assert_int_equal(end->last.arrival, last + 1);
	struct db_query *query =
		db_query(writer, "UPDATE chains SET last_run = $3 WHERE account = $1 AND chain = $2");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, FIRST_CHAIN + chain);
	db_bind_integer(query, last + 1);
	assert_int_equal(db_execute(query, NULL, &error), OK);
	fixture->last[chain] += count;
}

/* Adds events of some chains; each has at most one run, as in a batch. */
static void add_batch(struct fixture *fixture, struct db_connection *writer)
{
	for (int chain = 0; chain < CHAINS; chain++)
		if (random_below(3) < 2)
			add_run(fixture, writer, chain, 1 + random_below(RUN_MAX));
}

static int setup(void **state)
{
	static struct fixture fixture;
	fixture = (struct fixture){0};
	random_state = 7;
	sample_open(&fixture.sample, MODALITY_CONTENT, 1000);
	struct db_connection *writer = begin(&fixture);
	for (int chain = 0; chain < CHAINS; chain++) {
		struct db_query *query =
			db_query(writer, "INSERT INTO chains(account, chain, created_at, genesis_hash, "
		                     "last_chain_hash) VALUES ($1, $2, 0, x'00', x'00')");
		db_bind_integer(query, ACCOUNT);
		db_bind_integer(query, FIRST_CHAIN + chain);
		assert_int_equal(db_execute(query, NULL, &error), OK);
		/* Some chains have events from before the append log, some have not. */
		fixture.before[chain] = fixture.last[chain] = chain % 2 ? 40 * chain : 0;
		for (int64_t sequence = 1; sequence <= fixture.before[chain]; sequence++)
			write_event(writer, 0, event_of(chain, sequence));
	}
	commit(writer);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	sample_close(&((struct fixture *)*state)->sample);
	return 0;
}

/* ---- reading ---- */

static void assert_row(struct db_query *query, int64_t event)
{
	char content[32], object[32];
	object_of(event, object);
	snprintf(content, sizeof content, "content %lld", (long long)event);
	assert_int_equal(db_integer(query, 0), event);
	assert_int_equal(db_integer(query, 1), event * 3);
	assert_true(slice_is(db_blob(query, 2), content));
	assert_int_equal(db_is_null(query, 3), event % OBJECT_EVERY != 0);
	if (event % OBJECT_EVERY == 0)
		assert_true(slice_is(db_text(query, 3), object));
}

#define READ "SELECT event, received_at, content, content_object FROM events WHERE account = $1 "
#define IN_RANGE "AND event >= $2 AND event <= $3 ORDER BY event"

static void assert_range(struct db_connection *connection, int chain, int64_t first, int64_t last,
                         int64_t there, bool descending, int64_t limit)
{
	struct db_query *query = descending ? db_query(connection, READ IN_RANGE " DESC LIMIT $4")
	                                    : db_query(connection, READ IN_RANGE " LIMIT $4");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, event_of(chain, first));
	db_bind_integer(query, event_of(chain, last));
	db_bind_integer(query, limit);
	int64_t low = first < 1 ? 1 : first;
	int64_t high = last > there ? there : last;
	int64_t expected = high < low ? 0 : high - low + 1;
	for (int64_t i = 0; i < expected && i < limit; i++) {
		assert_true(db_step(query));
		assert_row(query, event_of(chain, descending ? high - i : low + i));
	}
	assert_false(db_step(query));
	assert_int_equal(db_end(query, &error), OK);
}

static void assert_one(struct db_connection *connection, int chain, int64_t sequence, int64_t there)
{
	struct db_query *query = db_query(connection, READ "AND event = $2");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, event_of(chain, sequence));
	bool found = db_step(query);
	assert_int_equal(found, sequence >= 1 && sequence <= there);
	if (found)
		assert_row(query, event_of(chain, sequence));
	assert_int_equal(db_end(query, &error), OK);
}

static void assert_all_ranges(struct db_connection *connection, const int64_t there[CHAINS])
{
	for (int i = 0; i < RANGES; i++) {
		int chain = (int)random_below(CHAINS);
		int64_t first = random_below(there[chain] + 3);
		int64_t last = random_below(2) ? first + random_below(60) : EVENT_SEQUENCE_MAX;
		int64_t limit = random_below(2) ? 1 + random_below(20) : INT64_C(1) << 40;
		assert_range(connection, chain, first, last, there[chain], random_below(2), limit);
		assert_one(connection, chain, random_below(there[chain] + 3), there[chain]);
	}
}

TEST_CASE_ON(ranges_are_read_as_from_a_list, struct fixture *fixture)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct db_connection *writer = begin(fixture);
		add_batch(fixture, writer);
		if (round % 10 == 0)
			assert_all_ranges(writer, fixture->last); /* uncommitted rows, too */
		commit(writer);
		if (round % 10 != 5)
			continue;
		struct db_connection *reader = db_take_reader(fixture->sample.store->db);
		assert_all_ranges(reader, fixture->last);
		db_give(reader);
	}
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	for (int chain = 0; chain < CHAINS; chain++) {
		assert_true(fixture->last[chain] > 1000);
		assert_range(reader, chain, 1, EVENT_SEQUENCE_MAX, fixture->last[chain], false, INT64_MAX);
		assert_range(reader, chain, 1, EVENT_SEQUENCE_MAX, fixture->last[chain], true, INT64_MAX);
	}
	db_give(reader);
}

/* Two ranges at a time, one within the other. */
TEST_CASE_ON(queries_do_not_disturb_each_other, struct fixture *fixture)
{
	struct db_connection *writer = begin(fixture);
	for (int i = 0; i < 30; i++)
		add_batch(fixture, writer);
	commit(writer);
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	struct db_query *query = db_query(
		reader, "SELECT a.event, (SELECT count(*) FROM events b WHERE b.account = a.account "
				"AND b.event BETWEEN a.event AND $3) FROM events a WHERE a.account = $1 "
				"AND a.event BETWEEN $2 AND $3 ORDER BY a.event");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, event_of(1, 1));
	db_bind_integer(query, event_of(1, EVENT_SEQUENCE_MAX));
	int64_t sequence = 0;
	while (db_step(query)) {
		assert_int_equal(db_integer(query, 0), event_of(1, ++sequence));
		assert_int_equal(db_integer(query, 1), fixture->last[1] - sequence + 1);
	}
	assert_int_equal(db_end(query, &error), OK);
	assert_int_equal(sequence, fixture->last[1]);
	db_give(reader);
}

TEST_CASE_ON(what_is_not_by_key_is_sorted, struct fixture *fixture)
{
	struct db_connection *writer = begin(fixture);
	for (int i = 0; i < 10; i++)
		add_batch(fixture, writer);
	commit(writer);
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	struct db_query *query = db_query(reader, READ "AND event BETWEEN $2 AND $3 "
	                                               "ORDER BY received_at DESC");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, event_of(3, 2));
	db_bind_integer(query, event_of(3, 140));
	for (int64_t sequence = 140; sequence >= 2; sequence--) {
		assert_true(db_step(query));
		assert_row(query, event_of(3, sequence));
	}
	assert_false(db_step(query));
	assert_int_equal(db_end(query, &error), OK);
	db_give(reader);
}

TEST_CASE_ON(a_view_stays_what_it_was, struct fixture *fixture)
{
	struct db_connection *writer = begin(fixture);
	add_batch(fixture, writer);
	commit(writer);
	int64_t then[CHAINS];
	memcpy(then, fixture->last, sizeof then);
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	assert_int_equal(db_begin(reader, &error), OK);
	assert_one(reader, 0, 1, then[0]);
	for (int i = 0; i < 50; i++) {
		writer = begin(fixture);
		add_batch(fixture, writer);
		commit(writer);
	}
	assert_all_ranges(reader, then);
	db_give(reader);
	reader = db_take_reader(fixture->sample.store->db);
	assert_all_ranges(reader, fixture->last);
	db_give(reader);
}

TEST_CASE_ON(what_was_rolled_back_is_not_there, struct fixture *fixture)
{
	struct fixture then;
	for (int i = 0; i < 20; i++) {
		struct db_connection *writer = begin(fixture);
		add_batch(fixture, writer);
		commit(writer);
		then = *fixture;
		writer = begin(fixture);
		add_batch(fixture, writer);
		db_give(writer);
		memcpy(fixture->last, then.last, sizeof then.last);
		memcpy(fixture->ends, then.ends, sizeof then.ends);
	}
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	assert_all_ranges(reader, fixture->last);
	db_give(reader);
}

/* ---- by name, and all ---- */

TEST_CASE_ON(named_ones_are_found_by_their_names, struct fixture *fixture)
{
	for (int i = 0; i < 40; i++) {
		struct db_connection *writer = begin(fixture);
		add_batch(fixture, writer);
		commit(writer);
	}
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	int64_t event = 0, found = 0, all = 0, counted = 0;
	for (int chain = 0; chain < CHAINS; chain++)
		for (int64_t sequence = 1; sequence <= fixture->last[chain]; sequence++)
			all += event_of(chain, sequence) % OBJECT_EVERY == 0;
	struct db_query *query =
		db_query(reader, "SELECT event, received_at, content, content_object FROM events "
	                     "WHERE content_object > $1 ORDER BY content_object LIMIT $2");
	char object[32] = "";
	bool more = true;
	while (more) {
		more = false;
		query = db_query(reader, "SELECT event, received_at, content, content_object FROM events "
		                         "WHERE content_object > $1 ORDER BY content_object LIMIT $2");
		db_bind_string(query, object);
		db_bind_integer(query, 10);
		while (db_step(query)) {
			more = true;
			assert_true(db_integer(query, 0) > event); /* names have the order of numbers */
			event = db_integer(query, 0);
			assert_row(query, event);
			object_of(event, object);
			found++;
		}
		assert_int_equal(db_end(query, &error), OK);
	}
	assert_int_equal(found, all);
	query = db_query(reader, "SELECT event FROM events WHERE content_object = $1");
	db_bind_string(query, object);
	assert_true(db_step(query));
	assert_int_equal(db_integer(query, 0), event);
	assert_false(db_step(query));
	assert_int_equal(db_end(query, &error), OK);
	query = db_query(reader, "SELECT count(*) FROM events WHERE account = $1");
	db_bind_integer(query, ACCOUNT);
	assert_true(db_step(query));
	counted = db_integer(query, 0);
	assert_int_equal(db_end(query, &error), OK);
	for (int chain = 0; chain < CHAINS; chain++)
		counted -= fixture->last[chain];
	assert_int_equal(counted, 0);
	db_give(reader);
}

/* ---- what lists cost ---- */

#define UNPAID 3000
#define LISTED 20

static int count_one(void *context, const struct event *event)
{
	assert_int_equal(event->status, STATUS_UNPAID);
	++*(int *)context;
	return OK;
}

/* Each is found individually; those after the end of the list are not read. */
TEST_CASE_ON(a_list_of_unpaid_events_reads_what_it_lists, struct fixture *fixture)
{
	struct sample *sample = &fixture->sample;
	sample_change(sample, "UPDATE accounts SET balance = 0, unpaid_limit = 1000000");
	sample_register(sample, MODE_LIVE, UNPAID);
	int listed = 0;
	struct event_filter filter = {
		.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_to = UNPAID, .status = STATUS_UNPAID};
	steps = 0;
	assert_int_equal(store_list_events(sample->store, sample->account, sample->live_chain, &filter,
	                                   LISTED, true, count_one, &listed, &error),
	                 OK);
	assert_int_equal(listed, LISTED);
	assert_in_range(steps, LISTED, 40 * LISTED);
}

/* ---- what is damaged ---- */

static int read_first(struct fixture *fixture)
{
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	assert_int_equal(db_begin(reader, &error), OK);
	struct db_query *query = db_query(reader, READ "AND event = $2");
	db_bind_integer(query, ACCOUNT);
	db_bind_integer(query, event_of(0, 1));
	db_step(query);
	int result = db_end(query, &error);
	db_give(reader);
	return result;
}

TEST_CASE_ON(runs_that_lead_nowhere_are_told, struct fixture *fixture)
{
	struct db_connection *writer = begin(fixture);
	for (int i = 0; i < 20; i++)
		add_run(fixture, writer, 0, 3);
	commit(writer);
	assert_int_equal(read_first(fixture), OK);
	static const char *const damages[] = {
		"UPDATE events_runs SET jump = arrival + 1000, previous = arrival WHERE event > 0",
		"UPDATE events_runs SET previous = arrival + 3, jump = 0",
		"UPDATE events_runs SET previous = arrival, jump = 0",
		"UPDATE events_runs SET count = 0",
		"DELETE FROM events_runs",
		"UPDATE events_runs SET event = event + 1099511627776",
	};
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		sample_change(&fixture->sample, "CREATE TABLE kept AS SELECT * FROM events_runs");
		sample_change(&fixture->sample, damages[i]);
		assert_int_equal(read_first(fixture), ERR_CORRUPT);
		sample_change(&fixture->sample, "DELETE FROM events_runs");
		sample_change(&fixture->sample, "INSERT INTO events_runs SELECT * FROM kept");
		sample_change(&fixture->sample, "DROP TABLE kept");
		assert_int_equal(read_first(fixture), OK);
	}
	/* A run that does not follow the last one of the chain is not written. */
	writer = begin(fixture);
	struct arrival_runs_end end = {.last.arrival = last_run_of(writer, 0)};
	int64_t last;
	assert_int_equal(append_log_last(writer, &last, &error), OK);
	int64_t event = event_of(0, fixture->last[0] + 2);
	assert_int_equal(append_log_add_run(writer, last + 1, event, 1, &end, &error), ERR_CORRUPT);
	db_give(writer);
}

/* `store check` finds damage that a reader of events must not notice. */
TEST_CASE_ON(what_leads_elsewhere_is_found, struct fixture *fixture)
{
	sample_change(&fixture->sample, "DELETE FROM chains WHERE account = 77");
	sample_change(&fixture->sample, "DELETE FROM events_before");
	for (int i = 0; i < 8; i++)
		sample_register(&fixture->sample, MODE_LIVE, 3);
	sample_register(&fixture->sample, MODE_TEST, 3);
	assert_int_equal(sample_check(&fixture->sample), 0);
	static const char *const damages[] = {
		"UPDATE events_runs SET jump = 0 WHERE place = 5",
		"UPDATE events_runs SET jump_key = jump_key - 1 WHERE place = 6",
		"UPDATE events_runs SET jump_place = jump_place - 1 WHERE place = 6",
		"UPDATE events_runs SET place = 9 WHERE place = 8",
		"UPDATE events_runs SET count = 2 WHERE place = 8",
		"UPDATE events_runs SET previous = 4 WHERE place = 8",
		"DELETE FROM events_runs WHERE place = 3",
		"UPDATE chains SET last_run = last_run - 3 WHERE last_run = 22",
		"UPDATE chains SET last_run = 0 WHERE last_run = 25",
		"INSERT INTO events_runs SELECT 100, event, count, place, previous, jump, jump_key,"
		" jump_place FROM events_runs WHERE place = 4",
		"UPDATE events_arrived SET event = event + 1 WHERE arrival = 6",
		"UPDATE events_arrived SET account = account + 1 WHERE arrival = 6",
		"INSERT INTO events_before SELECT event, account, key, client_ref, received_at,"
		" occurred_at, hash, config_version, chain_hash, content, file_name, content_object,"
		" content_bytes FROM events_arrived WHERE arrival = 9",
	};
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		sample_change(&fixture->sample, "CREATE TABLE kept_runs AS SELECT * FROM events_runs;"
		                                "CREATE TABLE kept_events AS SELECT * FROM events_arrived;"
		                                "CREATE TABLE kept_chains AS SELECT * FROM chains");
		sample_change(&fixture->sample, damages[i]);
		if (sample_check(&fixture->sample) == 0)
			fail_msg("not found: %s", damages[i]);
		sample_change(&fixture->sample,
		              "DELETE FROM events_runs; INSERT INTO events_runs SELECT * FROM kept_runs;"
		              "DELETE FROM events_arrived;"
		              "INSERT INTO events_arrived SELECT * FROM kept_events;"
		              "DELETE FROM chains; INSERT INTO chains SELECT * FROM kept_chains;"
		              "DELETE FROM events_before;"
		              "DROP TABLE kept_runs; DROP TABLE kept_events; DROP TABLE kept_chains");
		assert_int_equal(sample_check(&fixture->sample), 0);
	}
}

/* ---- finding a run ---- */

#define MANY 100000

TEST_CASE_WITH(every_run_is_near_the_last, NULL, NULL)
{
	static struct append_run runs[MANY + 1];
	for (int64_t i = 1; i <= MANY; i++) {
		runs[i] = (struct append_run){.arrival = i, .key = 10 * i, .count = 10};
		append_run_link(&runs[i], &runs[i - 1], &runs[runs[i - 1].jump]);
		assert_int_equal(runs[i].place, i);
		assert_int_equal(runs[i].previous, i - 1);
		assert_true(runs[i].jump < i);
		assert_int_equal(runs[i].jump_place, runs[i].jump);
		assert_int_equal(runs[i].jump_key, 10 * runs[i].jump);
	}
	for (int64_t key = 3; key < 10 * MANY; key += 37) {
		int64_t at = MANY, taken = 0;
		while (at && runs[at].key > key) {
			at = append_run_step(&runs[at], key);
			taken++;
		}
		assert_int_equal(at, key / 10);
		assert_true(taken <= 3 * 17); /* 2^17 > MANY */
	}
}

TEST_MAIN_EACH(setup, teardown)
