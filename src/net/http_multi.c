#include "net/http_multi.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "net/transfer.h"

#define POLL_MS 60000 /* woken earlier by new work */
#define IDLE_CONNECTIONS_MAX 512L
#define SPARE_MAX                                                                                  \
	512 /* handles kept for later exchanges: creating one costs more than using it                 \
	     */

/* An exchange in progress. */
struct task {
	struct http_transfer transfer;
	struct http_exchange *exchange;
	int64_t started_us;
	struct task *next, *previous;
};

struct list {
	struct http_exchange *first;
	struct http_exchange **end;
};

struct http_multi {
	CURLM *multi;
	pthread_t thread;
	atomic_bool stopping;
	/* Private to the thread: */
	struct task tasks;    /* anchor of the ring */
	struct list finished; /* not returned yet */
	struct http_session *spare[SPARE_MAX];
	size_t spare_count;
	pthread_mutex_t mutex;
	pthread_cond_t some_ended;
	struct list given; /* protected by the mutex */
	struct list ended;
};

static void list_clear(struct list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void list_append(struct list *list, struct http_exchange *exchange)
{
	assert(!*list->end);
	exchange->next = NULL;
	*list->end = exchange;
	list->end = &exchange->next;
}

/* ---- on the thread ---- */

/* Returns all finished exchanges together, so that the other thread is woken once. */
static void give_back(struct http_multi *many)
{
	if (!many->finished.first)
		return;
	pthread_mutex_lock(&many->mutex);
	assert(!*many->ended.end && !*many->finished.end);
	*many->ended.end = many->finished.first;
	many->ended.end = many->finished.end;
	pthread_cond_signal(&many->some_ended);
	pthread_mutex_unlock(&many->mutex);
	list_clear(&many->finished);
}

static struct http_session *take_session(struct http_multi *many)
{
	return many->spare_count ? many->spare[--many->spare_count] : http_session_open();
}

static void keep_session(struct http_multi *many, struct http_session *session)
{
	assert(many->spare_count <= SPARE_MAX);
	if (session && many->spare_count < SPARE_MAX)
		many->spare[many->spare_count++] = session;
	else
		http_session_close(session);
}

static void free_task(struct http_multi *many, struct task *task)
{
	struct http_session *session = task->exchange->request.session;

	transfer_free(&task->transfer);
	task->exchange->request.session = NULL;
	keep_session(many, session);
	free(task);
}

static void end_task(struct http_multi *many, struct task *task, CURLcode code)
{
	assert(task != &many->tasks);
	assert(task->previous->next == task && task->next->previous == task);
	struct http_exchange *exchange = task->exchange;

	exchange->duration_us = clock_monotonic_us() - task->started_us;
	exchange->result = transfer_finish(&task->transfer, code, &exchange->answer, &exchange->error);
	curl_multi_remove_handle(many->multi, task->transfer.easy);
	task->previous->next = task->next;
	task->next->previous = task->previous;
	free_task(many, task);
	list_append(&many->finished, exchange);
}

static int prepare(struct http_multi *many, struct task *task)
{
	assert(!task->exchange->request.session);
	task->exchange->request.session = take_session(many);
	int result = ERR_NO_MEMORY;
	if (task->exchange->request.session)
		result =
			transfer_prepare(&task->transfer, &task->exchange->request, &task->exchange->error);
	CURL *easy = task->transfer.easy;

	if (result)
		return result;
	if (curl_easy_setopt(easy, CURLOPT_PRIVATE, task) != CURLE_OK ||
	    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) != CURLE_OK)
		return error_cause(&task->exchange->error, ERR_NO_MEMORY,
		                   "libcurl does not support an option");
	return 0;
}

static void start_task(struct http_multi *many, struct http_exchange *exchange)
{
	struct task *task = calloc(1, sizeof *task);
	int result = ERR_NO_MEMORY;

	if (task) {
		task->exchange = exchange;
		task->transfer.request = &exchange->request;
		task->started_us = clock_monotonic_us();
		result = prepare(many, task);
	}
	if (task && !result && curl_multi_add_handle(many->multi, task->transfer.easy) != CURLM_OK)
		result = error_cause(&exchange->error, ERR_NO_MEMORY, "libcurl refused a transfer");
	if (!result) {
		task->next = many->tasks.next;
		task->previous = &many->tasks;
		task->next->previous = many->tasks.next = task;
		return;
	}
	if (task)
		free_task(many, task);
	exchange->result = result;
	list_append(&many->finished, exchange);
}

static void start_given(struct http_multi *many)
{
	pthread_mutex_lock(&many->mutex);
	struct http_exchange *exchange = many->given.first;
	list_clear(&many->given);
	pthread_mutex_unlock(&many->mutex);
	while (exchange) {
		struct http_exchange *next = exchange->next;
		start_task(many, exchange);
		exchange = next;
	}
}

static void end_finished(struct http_multi *many)
{
	int left;
	CURLMsg *message;

	while ((message = curl_multi_info_read(many->multi, &left))) {
		struct task *task = NULL;
		CURLcode code = message->data.result; /* read before the handle is removed */
		if (message->msg == CURLMSG_DONE &&
		    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&task) == CURLE_OK)
			end_task(many, task, code);
	}
}

static void *run(void *argument)
{
	struct http_multi *many = argument;
	int running;

	thread_mark_polling();
	while (!atomic_load(&many->stopping)) {
		start_given(many);
		curl_multi_perform(many->multi, &running);
		end_finished(many);
		give_back(many);
		curl_multi_poll(many->multi, NULL, 0, POLL_MS, NULL);
	}
	start_given(many);
	while (many->tasks.next != &many->tasks)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the ring has lost the task that is freed */
		end_task(many, many->tasks.next, CURLE_ABORTED_BY_CALLBACK);
	give_back(many);
	return NULL;
}

/* ---- interface ---- */

static void http_many_free(struct http_multi *many)
{
	assert(many->tasks.next == &many->tasks);
	assert(!many->given.first && !many->finished.first);
	while (many->spare_count)
		http_session_close(many->spare[--many->spare_count]);
	if (many->multi)
		curl_multi_cleanup(many->multi);
	pthread_cond_destroy(&many->some_ended);
	pthread_mutex_destroy(&many->mutex);
	free(many);
}

int http_multi_start(struct http_multi **ret_many, struct error *error)
{
	assert(ret_many);
	struct http_multi *many = calloc(1, sizeof *many);

	if (!many)
		return ERR_NO_MEMORY;
	many->tasks.next = many->tasks.previous = &many->tasks;
	list_clear(&many->given);
	list_clear(&many->ended);
	list_clear(&many->finished);
	pthread_mutex_init(&many->mutex, NULL);
	pthread_cond_init(&many->some_ended, NULL);
	int result = guarded_start(error);
	if (result) {
		http_many_free(many);
		return result;
	}
	many->multi = curl_multi_init();
	if (!many->multi ||
	    curl_multi_setopt(many->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX) != CURLM_OK ||
	    pthread_create(&many->thread, NULL, run, many) != 0) {
		http_many_free(many);
		return error_cause(error, ERR_NO_MEMORY, "cannot start the thread for outbound HTTP");
	}
	pthread_setname_np(many->thread, "http-many");
	*ret_many = many;
	return 0;
}

struct http_exchange *http_multi_stop(struct http_multi *many)
{
	if (!many)
		return NULL;
	atomic_store(&many->stopping, true);
	curl_multi_wakeup(many->multi);
	pthread_join(many->thread, NULL);
	struct http_exchange *first = many->ended.first;
	http_many_free(many);
	return first;
}

void http_multi_submit(struct http_multi *many, struct http_exchange *exchange)
{
	assert(many && exchange);
	assert(!exchange->request.session); /* each handle has its own */
	exchange->result = 0;
	exchange->answer = (struct http_answer){0};
	error_clear(&exchange->error);
	exchange->duration_us = 0;
	pthread_mutex_lock(&many->mutex);
	bool first = !many->given.first;
	list_append(&many->given, exchange);
	pthread_mutex_unlock(&many->mutex);
	if (first)
		curl_multi_wakeup(many->multi);
}

struct http_exchange *http_multi_collect(struct http_multi *many, int64_t timeout_us)
{
	assert(timeout_us >= 0);
	int64_t until_us = clock_monotonic_us() + timeout_us;

	pthread_mutex_lock(&many->mutex);
	while (!many->ended.first)
		if (!thread_wait_until(&many->some_ended, &many->mutex, until_us))
			break;
	struct http_exchange *first = many->ended.first;
	list_clear(&many->ended);
	pthread_mutex_unlock(&many->mutex);
	return first;
}
