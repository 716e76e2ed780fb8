#include "service/request_sampler.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

#define SETS 512 /* a power of two */
#define WAYS 8   /* accounts per set; a new one replaces the one that was idle longest */

enum kind { SUCCEEDED, FAILED, KINDS };

/* The requests of an account of one kind. */
struct sample {
	int64_t parts;      /* of a bucket: a token has US_PER_DAY */
	int64_t skipped;    /* requests without a row since the last one */
	uint32_t in_buffer; /* rows, if `buffer` of the account is the current one */
};
struct slot {
	int64_t account; /* 0: free */
	int64_t touched_us;
	uint64_t buffer;
	struct sample samples[KINDS];
};

struct request_sampler {
	pthread_mutex_t mutex;
	uint64_t buffer; /* number of the current buffer, from 1 */
	size_t count;    /* its rows */
	struct request_record rows[2][REQUEST_ROWS_MAX];
	struct slot slots[SETS][WAYS];
};

struct request_sampler *request_sampler_make(void)
{
	struct request_sampler *sampler = calloc(1, sizeof *sampler);
	if (!sampler)
		return NULL;
	pthread_mutex_init(&sampler->mutex, NULL);
	sampler->buffer = 1;
	return sampler;
}

void request_sampler_free(struct request_sampler *sampler)
{
	if (!sampler)
		return;
	pthread_mutex_destroy(&sampler->mutex);
	free(sampler);
}

/* ---- buckets ---- */

static int64_t rate_of(int64_t per_day, enum kind kind)
{
	int64_t failed = per_day / REQUEST_FAILED_PART;
	int64_t rate = kind == FAILED ? failed : per_day - failed;
	return rate > 1 ? rate : 1;
}

static int64_t full_of(int64_t rate)
{
	return (rate > REQUEST_BURST_PART ? rate / REQUEST_BURST_PART : 1) * US_PER_DAY;
}

static void refill(struct sample *sample, int64_t rate, int64_t passed_us)
{
	int64_t full = full_of(rate), missing = full - sample->parts;
	if (missing <= 0 || passed_us > missing / rate)
		sample->parts = full;
	else if (passed_us > 0)
		sample->parts += passed_us * rate;
}

/* ---- accounts ---- */

static struct slot *set_of(struct request_sampler *sampler, int64_t account)
{
	uint64_t mixed = (uint64_t)account * UINT64_C(0x9e3779b97f4a7c15);
	return sampler->slots[mixed >> 32 & (SETS - 1)];
}

static struct slot *find(struct request_sampler *sampler, int64_t account)
{
	struct slot *set = set_of(sampler, account);
	for (struct slot *slot = set; slot < set + WAYS; slot++)
		if (slot->account == account)
			return slot;
	return NULL;
}

static struct slot *make(struct request_sampler *sampler, const struct sampled_request *request,
                         int64_t now_us)
{
	struct slot *set = set_of(sampler, request->account), *oldest = set;
	for (struct slot *slot = set; slot < set + WAYS; slot++)
		if (slot->touched_us < oldest->touched_us)
			oldest = slot;
	*oldest = (struct slot){.account = request->account, .touched_us = now_us};
	for (enum kind kind = SUCCEEDED; kind < KINDS; kind++)
		oldest->samples[kind].parts = full_of(rate_of(request->per_day, kind));
	return oldest;
}

/* Returns the account, with its buckets filled up to now. */
static struct slot *touch(struct request_sampler *sampler, const struct sampled_request *request,
                          int64_t now_us)
{
	struct slot *slot = find(sampler, request->account);
	if (!slot)
		slot = make(sampler, request, now_us);
	for (enum kind kind = SUCCEEDED; kind < KINDS; kind++)
		refill(&slot->samples[kind], rate_of(request->per_day, kind), now_us - slot->touched_us);
	if (now_us > slot->touched_us)
		slot->touched_us = now_us;
	if (slot->buffer != sampler->buffer) {
		slot->buffer = sampler->buffer;
		slot->samples[SUCCEEDED].in_buffer = slot->samples[FAILED].in_buffer = 0;
	}
	return slot;
}

/* ---- rows ---- */

static bool has_place(const struct request_sampler *sampler, const struct sample *sample)
{
	return sample->parts >= US_PER_DAY && sample->in_buffer < REQUEST_SHARE_MAX &&
	       sampler->count < REQUEST_ROWS_MAX;
}

bool request_sampler_add(struct request_sampler *sampler, const struct sampled_request *request,
                         int64_t now_us)
{
	assert(request->account > 0 && request->per_day > 0);
	pthread_mutex_lock(&sampler->mutex);
	struct slot *slot = touch(sampler, request, now_us);
	struct sample *sample = &slot->samples[request->failed ? FAILED : SUCCEEDED];
	bool kept = has_place(sampler, sample);
	if (kept) {
		struct request_record *row = &sampler->rows[sampler->buffer % 2][sampler->count++];
		*row = (struct request_record){.represents = sample->skipped + 1};
		request->fill(row, request->context);
		assert(row->account == request->account);
		sample->parts -= US_PER_DAY;
		sample->in_buffer++;
	}
	sample->skipped = kept ? 0 : sample->skipped + 1;
	pthread_mutex_unlock(&sampler->mutex);
	return kept;
}

const struct request_record *request_sampler_take(struct request_sampler *sampler,
                                                  size_t *ret_count)
{
	pthread_mutex_lock(&sampler->mutex);
	const struct request_record *rows = sampler->rows[sampler->buffer % 2];
	*ret_count = sampler->count;
	if (sampler->count)
		sampler->buffer++;
	sampler->count = 0;
	pthread_mutex_unlock(&sampler->mutex);
	return rows;
}

void request_sampler_drop(struct request_sampler *sampler, const struct request_record *rows,
                          size_t count)
{
	pthread_mutex_lock(&sampler->mutex);
	for (size_t i = 0; i < count; i++) {
		struct slot *slot = find(sampler, rows[i].account);
		bool failed = request_has_failed(rows[i].status, rows[i].aborted);
		if (slot)
			slot->samples[failed ? FAILED : SUCCEEDED].skipped += rows[i].represents;
	}
	pthread_mutex_unlock(&sampler->mutex);
}
