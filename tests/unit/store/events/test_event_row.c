/* The list of an event's columns against the tables, its readers against its writers, and rows that
 * a registration must not accept. */
#include "testing.h"
#include "registering.h"
#include "sample.h"
#include "store/events/event_row.h"
#include "store/events/register_batch.h"
#include "store/store_internal.h"

static struct error error;

static int setup(void **state)
{
	static struct sample sample;
	memset(&sample, 0, sizeof sample);
	sample_open(&sample, MODALITY_CONTENT, 1000);
	*state = &sample;
	return 0;
}

static int teardown(void **state)
{
	sample_close(*state);
	return 0;
}

/* Columns in alphabetical order, with BIGINT as INTEGER. */
static void list_columns(struct db_connection *reader, const char *sql, char text[1024])
{
	struct db_query *query = db_query(reader, sql);
	size_t size = 0;
	while (db_step(query)) {
		struct slice name = db_text(query, 0), type = db_text(query, 1);
		size += (size_t)snprintf(text + size, 1024 - size, "%.*s %.*s, ", (int)name.size, name.data,
		                         (int)type.size, type.data);
	}
	assert_int_equal(db_end(query, &error), OK);
}

#define COLUMNS_OF(table)                                                                          \
	"SELECT name, replace(type, 'BIGINT', 'INTEGER') FROM pragma_table_info('" table               \
	"') WHERE name <> 'arrival' ORDER BY name"

TEST_CASE_ON(the_tables_have_the_columns_of_the_list, struct sample *sample)
{
	char listed[1024], before[1024], arrived[1024];
	sample_change(sample, "CREATE TABLE listed(event INTEGER, account INTEGER, key INTEGER, "
	                      "content BLOB" EVENT_COLUMN_TYPES ")");
	struct db_connection *reader = db_take_reader(sample->store->db);
	list_columns(reader, COLUMNS_OF("listed"), listed);
	list_columns(reader, COLUMNS_OF("events_before"), before);
	list_columns(reader, COLUMNS_OF("events_arrived"), arrived);
	db_give(reader);
	assert_string_equal(before, listed);
	assert_string_equal(arrived, listed);
}

/* Writes the columns of an event, and reads them into *ret. */
static void write_and_read(struct sample *sample, const struct event *event, struct arena *arena,
                           struct event *ret)
{
	struct db_connection *writer = db_take_writer(sample->store->db);
	assert_int_equal(db_begin(writer, &error), OK);
	struct db_query *query = db_query(
		writer,
		"INSERT INTO events_arrived(arrival, event, account, key, content" EVENT_COLUMN_NAMES
		") VALUES ($1, $2, $3, $4, $5" EVENT_COLUMN_PARAMETERS ")");
	for (int64_t i = 1; i < EVENT_FIRST_PARAMETER - 1; i++)
		db_bind_integer(query, i);
	db_bind_null(query);
	event_row_bind(query, event);
	assert_int_equal(db_execute(query, NULL, &error), OK);
	query = db_query(writer, "SELECT arrival" EVENT_COLUMN_NAMES " FROM events_arrived");
	assert_true(db_step(query));
	event_row_read(query, 1, ret);
	assert_int_equal(event_row_keep(arena, ret), OK);
	assert_int_equal(db_end(query, &error), OK);
	assert_int_equal(db_run(writer, "DELETE FROM events_arrived", &error), OK);
	assert_int_equal(db_commit(writer, &error), OK);
	db_give(writer);
}

TEST_CASE(what_was_written_is_read)
{
	ARENA_AUTO struct arena arena = {.limit = 4096};
	struct event event = {
		.declaration = {.client_ref = slice_of("order 7"),
	                    .occurred_at_us = 11,
	                    .hash_algorithm = HASH_SHA512},
		.received_at_us = 12,
		.config_version = 13,
		.file_name = "ñ.pdf",
		.content_object = "event/object",
		.content_bytes = 0,
	};
	memset(event.declaration.hash, 0xab, SHA512_SIZE);
	memset(event.chain_hash.bytes, 0xcd, SHA256_SIZE);
	struct event read = {0};
	write_and_read(*state, &event, &arena, &read);
	assert_true(slice_is(read.declaration.client_ref, "order 7"));
	assert_int_equal(read.declaration.occurred_at_us, 11);
	assert_int_equal(read.declaration.hash_algorithm, HASH_SHA512);
	assert_memory_equal(read.declaration.hash, event.declaration.hash, SHA512_SIZE);
	assert_int_equal(read.received_at_us, 12);
	assert_int_equal(read.config_version, 13);
	assert_memory_equal(read.chain_hash.bytes, event.chain_hash.bytes, SHA256_SIZE);
	assert_string_equal(read.file_name, "ñ.pdf");
	assert_string_equal(read.content_object, "event/object");
	assert_int_equal(read.content_bytes, 0);
}

TEST_CASE(null_is_written_and_read)
{
	ARENA_AUTO struct arena arena = {.limit = 4096};
	const struct event event = {
		.declaration = {.client_ref = slice_of("a"), .occurred_at_us = TIME_NONE},
		.content_bytes = -1,
	};
	struct event read = {.file_name = "", .content_object = ""};
	write_and_read(*state, &event, &arena, &read);
	assert_int_equal(read.declaration.hash_algorithm, HASH_SHA256);
	assert_true(read.declaration.occurred_at_us == TIME_NONE);
	assert_null(read.file_name);
	assert_null(read.content_object);
	assert_int_equal(read.content_bytes, -1);
}

/* The server's engine reads rows of any connection. */
TEST_CASE_ON(a_head_of_an_unknown_chain_is_an_error, struct sample *sample)
{
	struct loaded_chain chains[2] = {{.ledger.chain = 4}, {.ledger.chain = 6}};
	struct account_batch part = {.account.chain_count = 2};
	struct batch batch = {0};
	struct db_connection *reader = db_take_reader(sample->store->db);
	part.heads = db_query(reader, "SELECT 8, 0, 0, x'00', 'ch_1', 1, 'hash_only', x'00', 0");
	assert_int_equal(register_on_server.read_heads(&batch, &part, chains, &error), ERR_CORRUPT);
	db_give(reader);
}

static int register_order(struct sample *sample)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct registration item = {.account = sample->account,
	                            .channel = sample->channel,
	                            .chain = sample->live_chain,
	                            .key = 1,
	                            .declaration = {.modality = MODALITY_CONTENT,
	                                            .client_ref = slice_of("order"),
	                                            .occurred_at_us = TIME_NONE},
	                            .content = slice_of("7"),
	                            .content_bytes = 1,
	                            .arena = &arena};
	struct registration *items[] = {&item};
	assert_int_equal(register_items(sample->store, items, 1, sample->now_us, &error), OK);
	return item.result;
}

/* Whether a repetition equals the event cannot be known; other registrations are not affected. */
TEST_CASE_ON(a_damaged_digest_is_not_compared, struct sample *sample)
{
	assert_int_equal(register_order(sample), OK);
	assert_int_equal(register_order(sample), OK);
	sample_change(sample, "UPDATE events_arrived SET hash = x'00'");
	assert_int_equal(register_order(sample), ERR_UNAVAILABLE);

	ARENA_AUTO struct arena arena = {.limit = 4096};
	struct registration given = {.declaration.client_ref = slice_of("order")};
	struct batch_item item = {.registration = &given};
	struct account_batch part = {.first = &item, .count = 1};
	struct batch batch = {.arena = &arena};
	struct db_connection *reader = db_take_reader(sample->store->db);
	part.known = db_query(reader, "SELECT 1, 1, 'order', x'00', NULL");
	assert_int_equal(register_on_server.find_known(&batch, &part, &error), OK);
	assert_int_equal(item.request.result, ERR_UNAVAILABLE);
	db_give(reader);
}

TEST_MAIN_EACH(setup, teardown)
