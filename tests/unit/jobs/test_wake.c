/* A caller that creates work for a job wakes all threads of that job and no others. */
#include <stdatomic.h>
#include <unistd.h>

#include "testing.h"
#include "jobs/job_thread.h"
#include "office.h"

#define THREADS_MAX 32

static struct office office;
static struct started {
	char name[16];
	struct job_thread *thread;
	atomic_int woken;
} threads[THREADS_MAX];
static size_t thread_count;

int __real_job_thread_start(const char *name, job_thread_run_function *run, void *context,
                            struct job_thread **ret_thread, struct error *error);
int __wrap_job_thread_start(const char *name, job_thread_run_function *run, void *context,
                            struct job_thread **ret_thread, struct error *error);
void __real_job_thread_wake(struct job_thread *thread);
void __wrap_job_thread_wake(struct job_thread *thread);

int __wrap_job_thread_start(const char *name, job_thread_run_function *run, void *context,
                            struct job_thread **ret_thread, struct error *error)
{
	int result = __real_job_thread_start(name, run, context, ret_thread, error);
	assert_true(thread_count < THREADS_MAX && strlen(name) < sizeof threads->name);
	strcpy(threads[thread_count].name, name);
	threads[thread_count++].thread = *ret_thread;
	return result;
}

void __wrap_job_thread_wake(struct job_thread *thread)
{
	for (size_t i = 0; i < thread_count; i++)
		if (threads[i].thread == thread)
			atomic_fetch_add(&threads[i].woken, 1);
	__real_job_thread_wake(thread);
}

static int set_up(void **state)
{
	memset(threads, 0, sizeof threads);
	thread_count = 0;
	office_open(&office, MODALITY_HASH_ONLY, 1000);
	office_start_jobs(&office);
	return 0;
}

static void forget(void)
{
	for (size_t i = 0; i < thread_count; i++)
		atomic_store(&threads[i].woken, 0);
}

/* Each thread of that name once, and no other. */
static void assert_woken(const char *name, size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < thread_count; i++) {
		bool is_named = strcmp(threads[i].name, name) == 0;
		assert_int_equal(atomic_load(&threads[i].woken), is_named);
		found += is_named;
	}
	assert_int_equal(found, count);
}

TEST_CASE(each_kind_of_work_has_its_threads)
{
	static const struct {
		enum wake which;
		const char *name;
	} kinds[] = {{WAKE_SEALER, "sealer"},
	             {WAKE_ISSUER, "issuer"},
	             {WAKE_TOPUP, "topup"},
	             {WAKE_CLOCK, "clock"}};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		size_t count = 0;
		for (size_t j = 0; j < thread_count; j++)
			count += strcmp(threads[j].name, kinds[i].name) == 0;
		assert_true(count > 0);
		forget();
		service_wake(&office.service, kinds[i].which);
		assert_woken(kinds[i].name, count);
	}
}

/* Certifications that waited for a seal are issued as soon as it exists. */
TEST_CASE(a_seal_wakes_the_issuers)
{
	forget();
	sample_register(&office.sample, MODE_LIVE, 5);
	service_wake(&office.service, WAKE_SEALER);
	office_await_seal(&office, 5);
	for (size_t i = 0; i < thread_count; i++)
		while (strcmp(threads[i].name, "issuer") == 0 && atomic_load(&threads[i].woken) == 0)
			usleep(1000);
}

TEST_CASE(without_jobs_nobody_is_woken)
{
	office_stop_jobs(&office);
	forget();
	for (enum wake which = WAKE_SEALER; which <= WAKE_CLOCK; which++) {
		service_wake(&office.service, which);
		service_wake(NULL, which);
	}
	assert_woken("", 0);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
