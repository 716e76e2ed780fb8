#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sample.h"

#define BATCH_MAX 500

static void add_channel(struct sample *sample, enum modality modality)
{
	struct config_facts config = {
		.modality = modality, .name = "Sample", .declarant = "Sample & Co"};
	struct error error = {0};
	assert_int_equal(store_create_channel(sample->store, slice_of(sample->account_id), &config,
	                                      sample->now_us, sample->channel_id, &error),
	                 OK);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 1 << 20);
	struct channel_record channel;
	assert_int_equal(
		store_find_channel(sample->store, slice_of(sample->channel_id), &arena, &channel, &error),
		OK);
	sample->account = channel.account;
	sample->channel = channel.channel;
	sample->live_chain = channel.channel * 2;
	sample->test_chain = channel.channel * 2 + 1;
}

void sample_make_directory(struct sample *sample)
{
	*sample = (struct sample){.now_us = clock_now_us() - US_PER_SECOND};
	snprintf(sample->directory, sizeof sample->directory, "/tmp/constancia-test-XXXXXX");
	assert_non_null(mkdtemp(sample->directory));
	snprintf(sample->url, sizeof sample->url, "sqlite:%s/store.db", sample->directory);
}

void sample_fill(struct sample *sample, struct store *store, enum modality modality,
                 int64_t credits)
{
	sample->store = store;
	struct error error = {0};
	struct account_record account = {.name = "Sample", .unpaid_limit = 100};
	assert_int_equal(
		store_create_account(store, &account, credits, sample->now_us, sample->account_id, &error),
		OK);
	add_channel(sample, modality);
}

void sample_open(struct sample *sample, enum modality modality, int64_t credits)
{
	sample_make_directory(sample);
	struct store *store;
	struct error error = {0};
	assert_int_equal(
		store_open(&(struct db_options){.url = sample->url, .create = true}, &store, &error), OK);
	sample_fill(sample, store, modality, credits);
}

void sample_add_channel(struct sample *sample, enum modality modality)
{
	add_channel(sample, modality);
}

static void register_batch(struct sample *sample, enum mode mode, size_t count)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 64 << 20);
	struct channel channel;
	struct error error = {0};
	assert_int_equal(store_get_channel(sample->store, sample->account, sample->channel, &arena,
	                                   &channel, &error),
	                 OK);
	struct registration **items = arena_alloc(&arena, count * sizeof *items);
	for (size_t i = 0; i < count; i++) {
		struct registration *item = items[i] = arena_alloc(&arena, sizeof *item);
		item->account = sample->account;
		item->channel = sample->channel;
		item->chain = mode == MODE_TEST ? sample->test_chain : sample->live_chain;
		item->key = 1;
		item->key_id = "key_sample";
		item->modality = channel.configs[channel.config_count - 1].facts.modality;
		item->client_ref =
			slice_of(arena_printf(&arena, "order-%lld", (long long)++sample->references));
		item->occurred_at_us = TIME_NONE;
		item->content_bytes = -1;
		struct slice content =
			slice_of(arena_printf(&arena, "{\"order\":%lld}", (long long)sample->references));
		struct sha256 hash = sha256_of(content.data, content.size);
		memcpy(item->hash, hash.bytes, sizeof hash.bytes);
		if (item->modality == MODALITY_CONTENT) {
			item->content = content;
			item->content_bytes = (int64_t)content.size;
		}
		item->arena = &arena;
	}
	sample->now_us += 1000;
	assert_int_equal(store_register(sample->store, 0, items, count, sample->now_us, &error), OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(items[i]->result, OK);
}

void sample_register(struct sample *sample, enum mode mode, int64_t count)
{
	while (count > 0) {
		int64_t batch = count < BATCH_MAX ? count : BATCH_MAX;
		register_batch(sample, mode, (size_t)batch);
		count -= batch;
	}
}

void sample_remove_directory(struct sample *sample)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", sample->directory);
	assert_int_equal(system(command), 0);
}

void sample_close(struct sample *sample)
{
	store_close(sample->store);
	sample_remove_directory(sample);
}
