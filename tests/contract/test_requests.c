/* The contract of the request log of accounts, on a SQLite file in a new directory, or on a server:
 *     contract-requests [postgresql://… postgresql://…] */
#include "testing.h"
#include "sample.h"
#include "store/usage/request_records.h"

#define NOW INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */
#define LIVE_KEY 1
#define TEST_KEY 2

static const char *server_url; /* postgresql://…; NULL: a SQLite file */

struct fixture {
	struct sample sample;
	struct arena arena;
	char key_ids[2][ID_SIZE];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)64 << 20);
	sample_create_store(&fixture->sample, server_url);
	fixture->sample.now_us = NOW;
	sample_fill(&fixture->sample, fixture->sample.store, MODALITY_HASH_ONLY, 5);
	sample_add_key(&fixture->sample, MODE_LIVE, "live", fixture->key_ids[0]);
	sample_add_key(&fixture->sample, MODE_TEST, "test", fixture->key_ids[1]);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sample_close(&fixture->sample);
	arena_free(&fixture->arena);
	free(fixture);
	return 0;
}

static struct request_record record_make(const struct fixture *fixture, int64_t at_us,
                                         int64_t number)
{
	return (struct request_record){
		.account = fixture->sample.account,
		.channel = fixture->sample.channel,
		.key = LIVE_KEY,
		.at_us = at_us,
		.number = number,
		.method = "GET",
		.route = "/v1/events",
		.path = "/v1/events",
		.query = "limit=2",
		.status = 200,
		.duration = 17,
		.bytes_in = 3,
		.bytes_out = 4,
		.represents = 1,
	};
}

static void add(struct fixture *fixture, const struct request_record *records, size_t count)
{
	size_t added = 0;
	assert_int_equal(store_add_requests(fixture->sample.store, records, count, &added, NULL), OK);
	assert_int_equal(added, count);
}

static struct request_filter everything(const struct fixture *fixture)
{
	return (struct request_filter){
		.account_id = slice_of(fixture->sample.account_id),
		.since_us = INT64_MIN,
		.until_us = INT64_MAX,
		.highest_status = 999,
	};
}

static int find(struct fixture *fixture, const struct request_filter *filter, int64_t limit,
                struct request_view_list *ret)
{
	return store_list_requests(fixture->sample.store, filter, limit, &fixture->arena, ret, NULL);
}

static size_t count_of(struct fixture *fixture, const struct request_filter *filter)
{
	struct request_view_list list = {0};
	assert_int_equal(find(fixture, filter, 100, &list), OK);
	return list.count;
}

TEST_CASE(identifiers_are_read_and_written)
{
	static const char *const wrong[] = {"",
	                                    "req_",
	                                    "req_0123456789abcde",
	                                    "req_0123456789abcdef0",
	                                    "inc_0123456789abcdef",
	                                    "req_0123456789abcdeg"};
	char text[REQUEST_NUMBER_SIZE];
	int64_t number = 0;
	assert_true(request_number_parse(slice_of("req_fedcba9876543210"), &number));
	assert_int_equal((uint64_t)number, UINT64_C(0xfedcba9876543210));
	request_number_text(number, text);
	assert_string_equal(text, "req_fedcba9876543210");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(request_number_parse(slice_of(wrong[i]), &number));
}

TEST_CASE_ON(a_row_has_what_was_added, struct fixture *fixture)
{
	struct request_record record = record_make(fixture, NOW, -5);
	record.key = TEST_KEY;
	record.code = "not_found";
	record.status = 404;
	record.aborted = true;
	record.represents = 12;
	strcpy(record.incident_id, "inc_1");
	add(fixture, &record, 1);
	add(fixture, &record, 1); /* the same row again changes nothing */
	struct request_filter filter = everything(fixture);
	struct request_view_list list = {0};
	assert_int_equal(find(fixture, &filter, 10, &list), OK);
	assert_int_equal(list.count, 1);
	assert_false(list.more);
	const struct request_view *view = list.items;
	assert_string_equal(view->request_id, "req_fffffffffffffffb");
	assert_int_equal(view->at_us, NOW);
	assert_string_equal(view->method, "GET");
	assert_string_equal(view->route, "/v1/events");
	assert_string_equal(view->path, "/v1/events");
	assert_string_equal(view->query, "limit=2");
	assert_int_equal(view->status, 404);
	assert_string_equal(view->code, "not_found");
	assert_string_equal(view->incident_id, "inc_1");
	assert_int_equal(view->duration, 17);
	assert_int_equal(view->bytes_in, 3);
	assert_int_equal(view->bytes_out, 4);
	assert_true(view->aborted);
	assert_int_equal(view->represents, 12);
	assert_string_equal(view->channel_id, fixture->sample.channel_id);
	assert_non_null(view->channel_name);
	assert_string_equal(view->key_id, fixture->key_ids[1]);
	assert_null(view->key_name); /* the key has none */
	assert_string_equal(view->mode, "test");
}

TEST_CASE_ON(what_a_request_lacks_is_null, struct fixture *fixture)
{
	struct request_record record = record_make(fixture, NOW, 1);
	record.method = record.route = NULL;
	record.status = 0;
	add(fixture, &record, 1);
	struct request_filter filter = everything(fixture);
	struct request_view_list list = {0};
	assert_int_equal(find(fixture, &filter, 10, &list), OK);
	assert_int_equal(list.count, 1);
	assert_null(list.items->method);
	assert_null(list.items->route);
	assert_null(list.items->code);
	assert_null(list.items->incident_id);
	assert_int_equal(list.items->status, 0);
}

/* Also among rows of the same microsecond. */
TEST_CASE_ON(pages_are_complete_and_newest_first, struct fixture *fixture)
{
	for (int i = 0; i < 10; i++) {
		struct request_record record = record_make(fixture, NOW + i / 4, i - 5);
		add(fixture, &record, 1);
	}
	struct request_filter filter = everything(fixture);
	struct request_view_list list = {.more = true};
	int64_t last_us = INT64_MAX;
	size_t seen = 0;
	for (; list.more; filter.after = slice_of(list.items[list.count - 1].cursor)) {
		list = (struct request_view_list){0};
		assert_int_equal(find(fixture, &filter, 3, &list), OK);
		for (size_t i = 0; i < list.count; i++, seen++) {
			char expected[REQUEST_NUMBER_SIZE];
			request_number_text(4 - (int64_t)seen, expected);
			assert_string_equal(list.items[i].request_id, expected);
			assert_true(list.items[i].at_us <= last_us);
			last_us = list.items[i].at_us;
		}
	}
	assert_int_equal(seen, 10);
	filter.after = slice_of("nonsense");
	assert_int_equal(find(fixture, &filter, 3, &list), ERR_USAGE);
}

TEST_CASE_ON(filters_select_rows, struct fixture *fixture)
{
	struct request_record records[4];
	for (int i = 0; i < 4; i++)
		records[i] = record_make(fixture, NOW + i, i + 1);
	records[1].status = 404;
	records[2].status = 499;
	records[2].key = TEST_KEY;
	records[3].status = 500;
	add(fixture, records, 4);
	struct request_filter filter = everything(fixture);
	filter.lowest_status = 400;
	filter.highest_status = 499;
	assert_int_equal(count_of(fixture, &filter), 2);
	filter.key_id = slice_of(fixture->key_ids[1]);
	assert_int_equal(count_of(fixture, &filter), 1);
	filter = everything(fixture);
	filter.since_us = NOW + 1;
	filter.until_us = NOW + 3;
	assert_int_equal(count_of(fixture, &filter), 2);
	filter = everything(fixture);
	filter.has_number = true;
	filter.number = 3;
	assert_int_equal(count_of(fixture, &filter), 1);
	filter.number = 5;
	assert_int_equal(count_of(fixture, &filter), 0);
	filter = everything(fixture);
	filter.channel_id = slice_of(fixture->sample.channel_id);
	assert_int_equal(count_of(fixture, &filter), 4);
	sample_add_channel(&fixture->sample, MODALITY_HASH_ONLY);
	filter.channel_id = slice_of(fixture->sample.channel_id);
	assert_int_equal(count_of(fixture, &filter), 0);
}

TEST_CASE_ON(an_account_sees_its_own_only, struct fixture *fixture)
{
	struct request_record record = record_make(fixture, NOW, 1);
	add(fixture, &record, 1);
	struct request_filter own = everything(fixture), other = own;
	struct request_view_list list;
	char other_id[ID_SIZE], other_channel[ID_SIZE];
	memcpy(other_channel, fixture->sample.channel_id, ID_SIZE);
	sample_fill(&fixture->sample, fixture->sample.store, MODALITY_HASH_ONLY, 5);
	memcpy(other_id, fixture->sample.account_id, ID_SIZE);
	other.account_id = slice_of(other_id);
	other.has_number = true;
	other.number = 1;
	assert_int_equal(count_of(fixture, &other), 0);
	other.has_number = false;
	assert_int_equal(count_of(fixture, &other), 0);
	other.key_id = slice_of(fixture->key_ids[0]);
	assert_int_equal(find(fixture, &other, 1, &list), ERR_NOT_FOUND);
	other.key_id = slice_of("");
	other.channel_id = slice_of(other_channel);
	assert_int_equal(find(fixture, &other, 1, &list), ERR_NOT_FOUND);
	other.channel_id = slice_of("");
	other.account_id = slice_of("acc_none");
	assert_int_equal(find(fixture, &other, 1, &list), ERR_NOT_FOUND);
}

/* In batches of 500. */
TEST_CASE_ON(old_rows_are_deleted, struct fixture *fixture)
{
	struct request_record records[1003];
	for (int i = 0; i < 1003; i++)
		records[i] = record_make(fixture, NOW + i, i);
	add(fixture, records, 1003);
	records[0].account++; /* rows only: there is no such account */
	records[1].account++;
	add(fixture, records, 2);
	struct sample *sample = &fixture->sample;
	const atomic_bool stopping = true;
	int64_t removed = -1;
	assert_int_equal(store_forget_requests(sample->store, NOW + 1001, &stopping, &removed, NULL),
	                 OK);
	assert_int_equal(removed, 0);
	assert_int_equal(store_forget_requests(sample->store, NOW, NULL, &removed, NULL), OK);
	assert_int_equal(removed, 0);
	assert_int_equal(store_forget_requests(sample->store, NOW + 1001, NULL, &removed, NULL), OK);
	assert_int_equal(removed, 1003);
	assert_int_equal(sample_number(sample, "SELECT COUNT(*) FROM requests"), 2);
	assert_int_equal(sample_number(sample, "SELECT MIN(at) FROM requests"), NOW + 1001);
	assert_int_equal(sample_check(sample), 0);
}

int main(int argc, char **argv)
{
	server_url = argc > 2 ? argv[1] : NULL;
	return tests_run(NULL, NULL, set_up, tear_down);
}
