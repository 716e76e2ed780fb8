/* A thread that holds a reader ends its process when it takes another connection of the database,
 * because threads that do so could wait for each other for ever. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "db/db.h"
#include "scratch.h"

static char directory[SCRATCH_MAX];
static struct db *first, *second;
static struct db_connection *held;

static struct db *open_db(const char *name)
{
	char url[SCRATCH_MAX + 32];
	struct db *db;
	snprintf(url, sizeof url, "sqlite:%s/%s.db", directory, name);
	assert_int_equal(db_open(&(struct db_options){.url = url, .create = true}, NULL, &db, NULL),
	                 OK);
	return db;
}

static int set_up(void **state)
{
	scratch_make(directory);
	first = open_db("first");
	second = open_db("second");
	return 0;
}

static int tear_down(void **state)
{
	db_close(first);
	db_close(second);
	scratch_remove(directory);
	return 0;
}

static void take_reader(void)
{
	db_take_reader(first);
}

static void take_writer(void)
{
	db_take_writer(first);
}

static void take_local(void)
{
	db_take_local(first);
}

static void take_registrar(void)
{
	db_take_registrar(first, 0, 1);
}

static void take_reader_of_second(void)
{
	struct db_connection *other = db_take_reader(second);
	db_give(held); /* in any order */
	db_give(db_take_writer(first));
	db_give(other);
	db_give(db_take_reader(first));
}

static void *give_held(void *unused)
{
	db_give(held);
	return NULL;
}

static void give_elsewhere(void)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, give_held, NULL), 0);
	pthread_join(thread, NULL);
}

/* Returns the signal that ended a process whose thread holds a connection and makes the call, 0 for
 * none. */
static int signal_of(void (*call)(void), bool holds_reader)
{
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		fclose(stderr);
		held = holds_reader ? db_take_reader(first) : db_take_writer(first);
		call();
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE(the_holder_of_a_reader_takes_no_other_connection)
{
	assert_int_equal(signal_of(take_reader, true), SIGABRT);
	assert_int_equal(signal_of(take_writer, true), SIGABRT);
	assert_int_equal(signal_of(take_local, true), SIGABRT);
	assert_int_equal(signal_of(take_registrar, true), SIGABRT);
}

TEST_CASE(other_databases_are_independent)
{
	assert_int_equal(signal_of(take_reader_of_second, true), 0);
}

TEST_CASE(the_writer_may_read_elsewhere)
{
	assert_int_equal(signal_of(take_reader, false), 0);
}

TEST_CASE(the_thread_that_took_a_reader_gives_it_back)
{
	assert_int_equal(signal_of(give_elsewhere, true), SIGABRT);
}

TEST_MAIN(set_up, tear_down)
