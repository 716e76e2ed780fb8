#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "office.h"
#include "proof/renderer.h"
#include "proof/verify.h"
#include "seal/authority.h"

#define WAIT_MAX_US (120 * US_PER_SECOND)
#define PAUSE_US 5000

static struct signer *signer;
static char signer_directory[64];

int office_start_signer(void **state)
{
	snprintf(signer_directory, sizeof signer_directory, "/tmp/constancia-signer-XXXXXX");
	assert_non_null(mkdtemp(signer_directory));
	struct signer_options options = {.directory = signer_directory, .development = true};
	struct error error = {0};
	int result = signer_start(&options, &signer, &error);
	if (result)
		print_error("signer: %s\n", error.cause);
	return result;
}

int office_stop_signer(void **state)
{
	signer_stop(signer);
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", signer_directory);
	return system(command);
}

static struct authorities *make_authorities(const char *url, const char *roots_path)
{
	struct authority_options authority = {
		.url = url, .kind = AUTHORITY_NON_QUALIFIED, .roots_path = roots_path};
	struct authorities_options options = {
		.authorities = &authority,
		.count = 1,
		.signer = signer,
		.guard = {.allow_all = true},
		.timeout_ms = 2000,
	};
	struct authorities *authorities;
	struct error error = {0};
	int result = authorities_create(&options, &authorities, &error);
	if (result)
		print_error("authority: %s %s\n", error.english, error.cause);
	assert_int_equal(result, OK);
	return authorities;
}

void office_use_channel(struct office *office)
{
	struct key_identity key = {
		.account = office->sample.account,
		.channel = office->sample.channel,
		.chain = office->sample.live_chain,
		.key = 1,
		.mode = MODE_LIVE,
	};
	memcpy(key.account_id, office->sample.account_id, ID_SIZE);
	memcpy(key.channel_id, office->sample.channel_id, ID_SIZE);
	office->live_key = key;
	key.chain = office->sample.test_chain;
	key.mode = MODE_TEST;
	office->test_key = key;
}

void office_open(struct office *office, enum modality modality, int64_t credits)
{
	static char content_url[128];
	memset(office, 0, sizeof *office);
	sample_make_directory(&office->sample);
	snprintf(content_url, sizeof content_url, "file:%s/content", office->sample.directory);
	office->settings = (struct settings){
		.service_prefix = "svc",
		.service_public_url = "http://127.0.0.1:8080",
		.service_name = "Constancia",
		.service_data_dir = office->sample.directory,
		.store_url = office->sample.url,
		.content_url = content_url,
		.payment_provider = "manual",
		.webhook_schedule = "1m,5m",
		.webhook_allow_networks = "127.0.0.0/8",
		.webhook_allow_http = true,
		.webhook_timeout = 2 * US_PER_SECOND,
		.webhook_keep = 30 * US_PER_DAY,
		.seal_interval = 3600 * US_PER_SECOND,
		.seal_clock_bound = 5 * US_PER_SECOND,
		.certification_link_lifetime = 7 * US_PER_DAY,
		.certification_give_up_after = US_PER_DAY,
	};
	struct error error = {0};
	assert_int_equal(service_open(&office->settings, true, &office->service, &error), OK);
	static struct renderer renderer = {.timeout_ms = RENDERER_TIMEOUT_S * 1000};
	renderer.program = getenv("CONSTANCIA");
	assert_non_null(renderer.program);
	office->service.renderer = &renderer;
	office->service.signer = signer;
	office_mend_authority(office);
	sample_fill(&office->sample, office->service.store, modality, credits);
	office_use_channel(office);
}

void office_close(struct office *office)
{
	office_stop_jobs(office);
	service_close(&office->service);
	authorities_free(office->service.authorities);
	sample_remove_directory(&office->sample);
}

void office_start_jobs(struct office *office)
{
	struct error error = {0};
	assert_int_equal(jobs_start(&office->service, &office->jobs, &error), OK);
}

void office_stop_jobs(struct office *office)
{
	jobs_stop(office->jobs);
	office->jobs = NULL;
}

void office_break_authority(struct office *office)
{
	char roots[128];
	snprintf(roots, sizeof roots, "%s/roots.pem", office->sample.directory);
	FILE *file = fopen(roots, "w");
	assert_non_null(file);
	struct slice trust = signer_timestamp_roots(signer);
	assert_int_equal(fwrite(trust.data, 1, trust.size, file), trust.size);
	fclose(file);
	authorities_free(office->service.authorities);
	office->service.authorities = make_authorities("http://127.0.0.1:1/", roots);
}

void office_mend_authority(struct office *office)
{
	authorities_free(office->service.authorities);
	office->service.authorities = make_authorities(AUTHORITY_EMBEDDED_URL, NULL);
}

void office_register_object(struct office *office, struct slice content, const char *file_name,
                            char ret_object[CONTENT_NAME_MAX])
{
	ARENA_AUTO struct arena arena;
	struct error error = {0};
	struct content_writer *writer;
	arena_init(&arena, 1 << 20);
	content_fresh_name("event", ret_object);
	assert_int_equal(content_write_begin(office->service.content, &writer, &error), OK);
	assert_int_equal(content_write(writer, content.data, content.size, &error), OK);
	assert_int_equal(content_write_commit(writer, ret_object, &error), OK);
	struct sha256 hash = sha256_of(content.data, content.size);
	struct registration item = {
		.account = office->sample.account,
		.channel = office->sample.channel,
		.chain = office->sample.live_chain,
		.key = 1,
		.key_id = "key_sample",
		.modality = MODALITY_CONTENT,
		.client_ref = slice_of(ret_object),
		.occurred_at_us = TIME_NONE,
		.content_object = ret_object,
		.file_name = file_name,
		.content_bytes = (int64_t)content.size,
		.arena = &arena,
	};
	memcpy(item.hash, hash.bytes, sizeof hash.bytes);
	struct registration *items[] = {&item};
	office->sample.now_us += 1000;
	assert_int_equal(
		store_register(office->service.store, 0, items, 1, office->sample.now_us, &error), OK);
	assert_int_equal(item.result, OK);
}

void office_await_seal(struct office *office, int64_t sequence)
{
	int64_t end_us = clock_monotonic_us() + WAIT_MAX_US;
	struct chain_head head = {0};
	while (head.sealed_sequence < sequence && clock_monotonic_us() < end_us) {
		assert_int_equal(store_get_chain(office->service.store, office->sample.account,
		                                 office->sample.live_chain, &head, NULL),
		                 OK);
		usleep(PAUSE_US);
	}
	assert_true(head.sealed_sequence >= sequence);
}

void office_request(struct office *office, enum mode mode, int64_t first, int64_t last,
                    char ret_id[ID_SIZE])
{
	struct certification_range range = {
		.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = first, .seq_to = last};
	BUF_AUTO struct buf out;
	buf_init(&out, 1 << 20);
	struct error error = {0};
	int result = certification_request(&office->service,
	                                   mode == MODE_TEST ? &office->test_key : &office->live_key,
	                                   &range, LANGUAGE_ENGLISH, &out, &error);
	if (result)
		print_error("request: %s %s\n", error.english, error.cause);
	assert_int_equal(result, OK);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 1 << 20);
	struct json *json;
	assert_int_equal(json_parse(&arena, buf_slice(&out), NULL, &json, &error), OK);
	struct slice id;
	assert_true(json_get_text(json, "certification_id", &id));
	assert_true(id.size < ID_SIZE);
	memcpy(ret_id, id.data, id.size);
	ret_id[id.size] = '\0';
}

struct certification office_await(struct office *office, enum mode mode, const char *id)
{
	int64_t end_us = clock_monotonic_us() + WAIT_MAX_US;
	struct certification certification = {0};
	while (certification.status == CERTIFICATION_PROCESSING && clock_monotonic_us() < end_us) {
		ARENA_AUTO struct arena arena;
		arena_init(&arena, 1 << 20);
		assert_int_equal(store_find_certification(office->service.store, office->sample.account,
		                                          mode == MODE_TEST ? office->sample.test_chain
		                                                            : office->sample.live_chain,
		                                          slice_of(id), &arena, &certification, NULL),
		                 OK);
		if (certification.last_error)
			print_message("%s: %s\n", id, certification.last_error);
		usleep(PAUSE_US);
	}
	assert_int_not_equal(certification.status, CERTIFICATION_PROCESSING);
	return certification;
}

static void copy_out(struct office *office, const struct document *document, const char *path)
{
	struct content_reader *reader;
	uint64_t size;
	struct error error = {0};
	assert_int_equal(
		content_read_begin(office->service.content, document->object, 0, &reader, &size, &error),
		OK);
	assert_int_equal(size, document->size_bytes);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	char piece[65536];
	int64_t count;
	while ((count = content_read(reader, piece, sizeof piece, &error)) > 0)
		assert_int_equal(fwrite(piece, 1, (size_t)count, file), count);
	assert_int_equal(count, 0);
	fclose(file);
	content_read_end(reader);
}

int office_verify(struct office *office, const struct certification *certification)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, 4 << 20);
	struct document *documents;
	size_t count;
	struct error error = {0};
	assert_int_equal(store_list_documents(office->service.store, certification->account,
	                                      certification->certification, &arena, &documents, &count,
	                                      &error),
	                 OK);
	assert_true(count >= 3);
	const char *directory =
		arena_printf(&arena, "%s/%s", office->sample.directory, certification->certification_id);
	mkdir(directory, 0700);
	const char **paths = arena_alloc(&arena, count * sizeof *paths);
	for (size_t i = 0; i < count; i++) {
		paths[i] = arena_printf(&arena, "%s/%s", directory, documents[i].name);
		copy_out(office, &documents[i], paths[i]);
	}
	struct slice roots = signer_trust(signer);
	struct verify_result result;
	assert_int_equal(
		verify_paths(paths, count, &(struct trust_roots){roots, roots}, NULL, &result, &error), OK);
	int code = verify_exit_code(&result);
	verify_print(&result, false, stdout);
	assert_true(result.trusted || code);
	verify_result_free(&result);
	return code;
}
