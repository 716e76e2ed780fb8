/* Computes the digests of all inputs with two threads. An additional thread proceeds from the last
 * input towards the first, while the caller's thread proceeds from the first one. The caller
 * computes any digest that the thread did not, or could not, compute. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/file.h"
#include "verify/verify_check.h"

struct sums {
	struct input *inputs;
	struct known_sum *known; /* one for each input */
	size_t count;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* Guarded by `mutex`. The caller takes the inputs before `caller_end`, the thread those from
	 * `thread_begin` on. The thread has finished those from `done_begin` on. */
	size_t caller_end, thread_begin, done_begin;
	atomic_bool ended; /* the caller needs no more digests */
};

struct known_sum {
	bool known;
	struct zip_identity identity;
	struct zip_sum sum;
};

static void find_sum(const struct sums *sums, const struct input *input, struct known_sum *known)
{
	struct stat facts;
	DESCRIPTOR_AUTO int fd = file_open_to_read(input->file, 0, &facts);
	if (fd < 0 || !S_ISREG(facts.st_mode))
		return;
	known->identity = zip_identity(&facts);
	known->known = !file_digest_until(&sums->ended, fd, input->path, &known->sum.size_bytes,
	                                  &known->sum.sha256, NULL);
}

static void *find_sums(void *argument)
{
	struct sums *sums = argument;
	pthread_mutex_lock(&sums->mutex);
	while (sums->thread_begin > sums->caller_end) {
		size_t i = --sums->thread_begin;
		pthread_mutex_unlock(&sums->mutex);
		find_sum(sums, &sums->inputs[i], &sums->known[i]);
		pthread_mutex_lock(&sums->mutex);
		sums->done_begin = i;
		pthread_cond_signal(&sums->changed);
	}
	pthread_mutex_unlock(&sums->mutex);
	return NULL;
}

static void sums_free(struct sums *sums)
{
	pthread_cond_destroy(&sums->changed);
	pthread_mutex_destroy(&sums->mutex);
	free(sums->inputs);
	free(sums->known);
	free(sums);
}

void verify_sums_begin(struct run *run)
{
	const size_t count = run->input_count;
	if (!run->options || !run->options->use_threads || count < 2)
		return;
	struct sums *sums = calloc(1, sizeof *sums);
	if (!sums)
		return;
	sums->inputs = calloc(count, sizeof *sums->inputs);
	sums->known = calloc(count, sizeof *sums->known);
	sums->count = sums->thread_begin = sums->done_begin = count;
	pthread_mutex_init(&sums->mutex, NULL);
	pthread_cond_init(&sums->changed, NULL);
	/* A copy, because containers move the inputs of the run. */
	if (sums->inputs && sums->known)
		memcpy(sums->inputs, run->inputs, count * sizeof *sums->inputs);
	if (sums->inputs && sums->known && pthread_create(&sums->thread, NULL, find_sums, sums) == 0)
		run->sums = sums;
	else
		sums_free(sums);
}

bool verify_sums_find(struct run *run, const struct input *input,
                      const struct zip_identity *identity, struct zip_sum *ret_sum)
{
	struct sums *sums = run->sums;
	const size_t place = (size_t)(input - run->inputs);
	if (!sums || place >= sums->count)
		return false;
	pthread_mutex_lock(&sums->mutex);
	if (place < sums->thread_begin)
		sums->caller_end = place + 1;
	while (place >= sums->thread_begin && place < sums->done_begin)
		pthread_cond_wait(&sums->changed, &sums->mutex);
	bool known = place >= sums->thread_begin && sums->known[place].known;
	pthread_mutex_unlock(&sums->mutex);
	if (!known || !zip_identity_equal(&sums->known[place].identity, identity))
		return false;
	*ret_sum = sums->known[place].sum;
	return true;
}

void verify_sums_end(struct run *run)
{
	struct sums *sums = run->sums;
	if (!sums)
		return;
	atomic_store(&sums->ended, true);
	pthread_mutex_lock(&sums->mutex);
	sums->caller_end = sums->count;
	pthread_mutex_unlock(&sums->mutex);
	pthread_join(sums->thread, NULL);
	sums_free(sums);
	run->sums = NULL;
}
