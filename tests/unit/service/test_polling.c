/* A call that may wait for a disk or a network ends the process when a polling thread makes it. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "base/thread.h"
#include "content/content.h"
#include "db/db.h"
#include "net/http.h"
#include "scratch.h"
#include "store/store.h"
#include "store/store_internal.h"

#define OBJECT "area/aa/object"

static struct {
	char directory[SCRATCH_MAX];
	struct store *store;
	struct content_store *content;
	struct content_writer *writer;
	struct content_reader *reader;
	struct db_connection *connection;
	struct db_query *query;
} here;

static void take_writer(void)
{
	db_take_writer(here.store->db);
}

static void take_registrar(void)
{
	db_take_registrar(here.store->db, 0, 1);
}

static void take_reader(void)
{
	db_take_reader(here.store->db);
}

static void ready(void)
{
	(void)!store_ready(here.store, NULL);
}

static void begin(void)
{
	(void)!db_begin(here.connection, NULL);
}

static void commit(void)
{
	(void)!db_commit(here.connection, NULL);
}

static void run(void)
{
	(void)!db_run(here.connection, "SELECT 1", NULL);
}

static void step(void)
{
	(void)!db_step(here.query);
}

static void content_is_ready(void)
{
	(void)!content_ready(here.content, NULL);
}

static void write_begin(void)
{
	struct content_writer *writer;
	(void)!content_write_begin(here.content, &writer, NULL);
}

static void write_some(void)
{
	(void)!content_write(here.writer, "a", 1, NULL);
}

static void write_commit(void)
{
	(void)!content_write_commit(here.writer, OBJECT, NULL);
}

static void write_abort(void)
{
	content_write_abort(here.writer);
}

static void put_file(void)
{
	(void)!content_put_file(here.content, "/dev/null", OBJECT, NULL);
}

static void read_begin(void)
{
	struct content_reader *reader;
	uint64_t size;
	(void)!content_read_begin(here.content, OBJECT, 0, &reader, &size, NULL);
}

static void read_some(void)
{
	char byte;
	(void)!content_read(here.reader, &byte, 1, NULL);
}

static void read_end(void)
{
	content_read_end(here.reader);
}

static void read_descriptor(void)
{
	uint64_t size;
	(void)!content_read_descriptor(here.content, OBJECT, &size);
}

static void delete (void)
{
	(void)!content_delete(here.content, OBJECT, NULL);
}

static int visit(void *context, const char *name)
{
	return 0;
}

static void list(void)
{
	struct content_range range = {.area = ""};
	(void)!content_list(here.content, &range, visit, NULL, NULL);
}

static void tidy(void)
{
	struct content_range range = {.area = ""};
	(void)!content_remove_leftovers(here.content, &range, visit, NULL, NULL);
}

static void tell_time(void)
{
	int64_t now_us;
	(void)!content_now_us(here.content, &now_us, NULL);
}

static void send_http(void)
{
	struct http_request request = {.url = "http://127.0.0.1:1/"};
	struct http_answer answer;
	(void)!http_send(&request, &answer, NULL);
}

static const struct {
	const char *name;
	void (*call)(void);
} waiting[] = {
	{"db_take_writer", take_writer},
	{"db_take_registrar", take_registrar},
	{"db_take_reader", take_reader},
	{"store_ready", ready},
	{"db_begin", begin},
	{"db_commit", commit},
	{"db_run", run},
	{"db_step", step},
	{"content_ready", content_is_ready},
	{"content_write_begin", write_begin},
	{"content_write", write_some},
	{"content_write_commit", write_commit},
	{"content_write_abort", write_abort},
	{"content_put_file", put_file},
	{"content_read_begin", read_begin},
	{"content_read", read_some},
	{"content_read_end", read_end},
	{"content_read_descriptor", read_descriptor},
	{"content_delete", delete},
	{"content_list", list},
	{"content_remove_leftovers", tidy},
	{"content_now_us", tell_time},
	{"http_send", send_http},
};

/* Returns the signal that ended a process making the call, 0 for none. */
static int signal_of(void (*call)(void), bool polling)
{
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		fclose(stderr);
		if (polling)
			thread_mark_polling();
		call();
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE(test_what_waits)
{
	for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
		if (signal_of(waiting[i].call, true) != SIGABRT)
			fail_msg("%s waits in a thread that polls", waiting[i].name);
}

/* Other threads may make it. */
TEST_CASE(test_other_threads)
{
	assert_int_equal(signal_of(content_is_ready, false), 0);
	assert_int_equal(signal_of(write_begin, false), 0);
	assert_int_equal(signal_of(read_begin, false), 0);
}

static int set_up(void **state)
{
	struct error error = {0};
	char url[128];
	uint64_t size;
	scratch_make(here.directory);
	snprintf(url, sizeof url, "sqlite:%s/store.db", here.directory);
	struct db_options options = {.url = url, .create = true};
	assert_int_equal(store_open(&options, &here.store, &error), 0);
	snprintf(url, sizeof url, "file:%s/content", here.directory);
	assert_int_equal(content_open(url, true, &here.content, &error), 0);
	assert_int_equal(content_write_begin(here.content, &here.writer, &error), 0);
	assert_int_equal(content_write(here.writer, "a", 1, &error), 0);
	assert_int_equal(content_write_commit(here.writer, OBJECT, &error), 0);
	assert_int_equal(content_write_begin(here.content, &here.writer, &error), 0);
	assert_int_equal(content_read_begin(here.content, OBJECT, 0, &here.reader, &size, &error), 0);
	here.connection = db_take_reader(here.store->db);
	here.query = db_query(here.connection, "SELECT 1");
	return 0;
}

static int tear_down(void **state)
{
	(void)!db_end(here.query, NULL);
	db_give(here.connection);
	content_write_abort(here.writer);
	content_read_end(here.reader);
	content_close(here.content);
	store_close(here.store);
	scratch_remove(here.directory);
	return 0;
}

TEST_MAIN(set_up, tear_down)
