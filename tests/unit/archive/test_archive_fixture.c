#include <fcntl.h>
#include <inttypes.h>
#include <openssl/ts.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "ledger/ledger.h"
#include "seal/timestamp.h"
#include "test_archive_fixture.h"

struct maker {
	struct fixture *fixture;
	const struct fixture_plan *plan;
	int64_t base_us; /* received_at of event 1 */
	struct buf configs[2];
	struct buf genesis;
	struct sha256 *hashes; /* [0]: the genesis document, [i]: event i */
	struct buf scratch;
	char event_id[ID_SIZE], client_ref[64], content[128];
	struct archive *archive;
};

/* The second verifier, tests/support/check_archive.py --serve: one process for all checks. */
static struct {
	pid_t process;
	FILE *questions, *verdicts;
} second_verifier;

static void start_second_verifier(const char *log)
{
	const char *script = getenv("CONSTANCIA_CHECK_ARCHIVE");
	int questions[2], verdicts[2];
	assert_non_null(script);
	assert_int_equal(pipe2(questions, O_CLOEXEC), 0);
	assert_int_equal(pipe2(verdicts, O_CLOEXEC), 0);
	second_verifier.process = fork();
	assert_true(second_verifier.process >= 0);
	if (second_verifier.process == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int errors = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (dup2(questions[0], STDIN_FILENO) >= 0 && dup2(verdicts[1], STDOUT_FILENO) >= 0 &&
		    dup2(errors, STDERR_FILENO) >= 0)
			execlp("python3", "python3", "-B", script, "--serve", NULL);
		_exit(127);
	}
	close(questions[0]);
	close(verdicts[1]);
	second_verifier.questions = fdopen(questions[1], "w");
	second_verifier.verdicts = fdopen(verdicts[0], "r");
	assert_true(second_verifier.questions && second_verifier.verdicts);
}

static void stop_second_verifier(void)
{
	if (!second_verifier.process)
		return;
	fclose(second_verifier.questions);
	fclose(second_verifier.verdicts);
	waitpid(second_verifier.process, NULL, 0);
	second_verifier.process = 0;
}

static struct fixture *opened;

void fixture_open(struct fixture *fixture)
{
	opened = fixture;
	scratch_make(fixture->directory);
	char keys[128];
	snprintf(keys, sizeof keys, "%s/keys", fixture->directory);
	struct signer_options options = {.directory = keys, .development = true};
	struct error error = {0};
	if (signer_start(&options, &fixture->signer, &error))
		fail_msg("signer: %s", error.cause);
	snprintf(fixture->trust, sizeof fixture->trust, "%s/trust.pem", fixture->directory);
	fixture_write(fixture->trust, signer_trust(fixture->signer));
	fixture->base_us = clock_now_us() - 100 * US_PER_SECOND;
	strcpy(fixture->certification, FIXTURE_CERTIFICATION);
	fixture->roots = (struct trust_roots){.signers = signer_trust(fixture->signer),
	                                      .timestamps = signer_trust(fixture->signer)};
}

struct round {
	char id[32];
	struct sha256 root;
	struct buf token;
	struct sha256 token_hash;
	int64_t gen_time_us;
	struct buf second; /* made at the fixture's request */
	int64_t second_gen_time_us;
};

struct segment {
	char id[32];
	struct seal_document seal;
	struct sha256 previous_seal, previous_token, hash;
	struct tree_proof path;
	size_t round;
};

struct fixture_seals {
	struct fixture_plan plan;
	size_t count;
	struct segment *segments;
	struct round *rounds;
};

void fixture_forget(struct fixture *fixture)
{
	struct fixture_seals *seals = fixture->seals;
	for (size_t i = 0; seals && i < seals->count; i++) {
		buf_free(&seals->rounds[i].token);
		buf_free(&seals->rounds[i].second);
	}
	if (seals) {
		free(seals->segments);
		free(seals->rounds);
	}
	free(seals);
	fixture->seals = NULL;
}

void fixture_close(struct fixture *fixture)
{
	stop_second_verifier();
	signer_stop(fixture->signer);
	fixture_forget(fixture);
	scratch_remove(fixture->directory);
}

int fixture_tear_down(void **state)
{
	fixture_close(opened);
	return 0;
}

void fixture_read(const char *path, struct buf *out)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	char chunk[65536];
	for (size_t size; (size = fread(chunk, 1, sizeof chunk, file)) > 0;)
		buf_add(out, chunk, size);
	fclose(file);
	assert_int_equal(buf_check(out), 0);
}

void fixture_write(const char *path, struct slice content)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
	assert_int_equal(fclose(file), 0);
}

static int stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
{
	struct fixture *fixture = context;
	if (fixture->stamp)
		return fixture->stamp(fixture->stamp_context, imprint, out, error);
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf response = {.limit = TIMESTAMP_RESPONSE_MAX};
	int result = timestamp_request(imprint, NULL, &request, error);
	if (!result)
		result = signer_timestamp(fixture->signer, buf_slice(&request), &response, error);
	struct slice token;
	if (!result)
		result = timestamp_response_token(buf_slice(&response), &token, error);
	if (!result)
		buf_add_slice(out, token);
	return result;
}

struct cms_signing fixture_signing(struct fixture *fixture, enum mode mode,
                                   struct cms_signer *signer)
{
	*signer = (struct cms_signer){fixture->signer, SIGNER_ARCHIVE};
	return (struct cms_signing){
		.certificates_pem = signer_certificates(fixture->signer),
		.sign = cms_sign_with_signer,
		.sign_context = signer,
		.timestamp = mode == MODE_LIVE ? stamp : NULL,
		.timestamp_context = fixture,
	};
}

static bool is_content(const struct maker *maker, int64_t sequence)
{
	return maker->plan->content && maker->plan->fault != FAULT_MODALITY;
}

/* Content differs in size, and every other one is a "file". */
static struct slice content_of(struct maker *maker, int64_t sequence)
{
	int size =
		snprintf(maker->content, sizeof maker->content,
	             sequence % 2 ? "{\"n\":%" PRId64 "}" : "file %" PRId64 " of the test\n", sequence);
	return slice_make(maker->content, (size_t)size);
}

static size_t config_of(const struct maker *maker, int64_t sequence)
{
	return sequence * 2 > maker->plan->total;
}

static void event_of(struct maker *maker, int64_t sequence, struct event_facts *event)
{
	enum fixture_fault fault = maker->plan->fault;
	event_id_make(FIXTURE_CHANNEL, maker->plan->mode, sequence, maker->event_id);
	snprintf(maker->client_ref, sizeof maker->client_ref, "order \"%" PRId64 "\" ñ\\", sequence);
	*event = (struct event_facts){
		.channel_id = FIXTURE_CHANNEL,
		.chain = maker->plan->mode,
		.sequence = sequence,
		.event_id = slice_of(maker->event_id),
		.declaration = {.client_ref = slice_of(maker->client_ref),
	                    .occurred_at_us = sequence % 2 ? TIME_NONE : maker->base_us,
	                    .hash_algorithm = HASH_SHA256,
	                    .modality = MODALITY_HASH_ONLY},
		.received_at_us = maker->base_us + sequence * 10,
		.config_version = (int64_t)config_of(maker, sequence) + 1,
		.previous_chain_hash = maker->hashes[sequence - 1],
	};
	const struct buf *config = &maker->configs[config_of(maker, sequence)];
	event->config_hash = sha256_of(config->data, config->size);
	struct slice content = content_of(maker, sequence);
	struct sha256 hash = sha256_of(content.data, content.size);
	memset(event->declaration.hash, (int)(sequence & 0xff), DIGEST_SIZE_MAX);
	memcpy(event->declaration.hash, hash.bytes, SHA256_SIZE);
	if (is_content(maker, sequence))
		event->declaration.modality = MODALITY_CONTENT;
	else if (sequence % 6 == 0)
		event->declaration.hash_algorithm = HASH_SHA512;
	if (fault == FAULT_RECEIVED_BEFORE && sequence == 3)
		event->received_at_us = maker->base_us;
	if (fault == FAULT_CONFIG_HASH && sequence == 3)
		event->config_hash.bytes[0] ^= 1;
	if (fault == FAULT_FORK && sequence == 3)
		event->declaration.occurred_at_us = maker->base_us - 1;
	if (fault == FAULT_LATE_EVENT && sequence == maker->plan->last)
		event->received_at_us = clock_now_us() + 4000 * US_PER_SECOND;
}

static struct genesis_facts genesis_of(const struct maker *maker)
{
	return (struct genesis_facts){.channel_id = FIXTURE_CHANNEL,
	                              .chain = maker->plan->mode,
	                              .created_at_us = maker->base_us - 2000 -
	                                               (maker->plan->fault == FAULT_FORK_GENESIS)};
}

static void make_chain(struct maker *maker)
{
	for (int i = 0; i < 2; i++) {
		struct config_facts config = {
			.channel_id = FIXTURE_CHANNEL,
			.version = i + 1,
			.sealed_at_us = maker->base_us - 1000,
			.modality = maker->plan->content ? MODALITY_CONTENT : MODALITY_HASH_ONLY,
			.name = "A channel",
			.declarant = "Declarante & Cía \xe2\x82\xac",
			.description = i == 0                                    ? NULL
		                   : maker->plan->fault == FAULT_FORK_CONFIG ? "another"
		                                                             : "changed",
		};
		buf_init(&maker->configs[i], ARCHIVE_DOCUMENT_MAX);
		config_document(&config, &maker->configs[i]);
	}
	buf_init(&maker->genesis, ARCHIVE_DOCUMENT_MAX);
	const struct genesis_facts genesis = genesis_of(maker);
	genesis_document(&genesis, &maker->genesis);
	buf_init(&maker->scratch, 65536);
	maker->hashes = calloc((size_t)maker->plan->total + 1, sizeof *maker->hashes);
	assert_non_null(maker->hashes);
	maker->hashes[0] = sha256_of(maker->genesis.data, maker->genesis.size);
	struct event_facts event;
	for (int64_t i = 1; i <= maker->plan->total; i++) {
		event_of(maker, i, &event);
		assert_int_equal(event_chain_hash(&event, &maker->scratch, &maker->hashes[i]), OK);
	}
}

static struct part_writer *make_parts(struct maker *maker, const char *directory,
                                      struct fixture_archive *made,
                                      const struct part_facts **ret_parts)
{
	const struct fixture_plan *plan = maker->plan;
	struct part_writer *writer;
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(part_writer_begin(directory, maker->fixture->certification, FIXTURE_CHANNEL, 0,
	                                   plan->part_entries_max, &writer, NULL),
	                 0);
	for (int64_t i = plan->first; i <= plan->last; i++) {
		if (!is_content(maker, i))
			continue;
		struct event_facts event;
		event_of(maker, i, &event);
		struct part_entry entry = {i, event.event_id, {{0}}, i % 2};
		memcpy(entry.hash.bytes, event.declaration.hash, SHA256_SIZE);
		assert_int_equal(part_writer_add(writer, &entry, content_of(maker, i), NULL), 0);
	}
	assert_int_equal(part_writer_finish(writer, ret_parts, &made->part_count, NULL), 0);
	assert_in_range(made->part_count, 0, FIXTURE_PARTS_MAX);
	for (size_t i = 0; i < made->part_count; i++)
		snprintf(made->part_paths[i], FIXTURE_PATH_SIZE, "%s/%s", directory, (*ret_parts)[i].name);
	return writer;
}

/* Seals segment `number`: its own tree, then a round that also has a segment of another chain. */
static void seal_segment(struct maker *maker, struct segment *segments, struct round *rounds,
                         size_t number)
{
	const struct fixture_plan *plan = maker->plan;
	struct segment *segment = &segments[number];
	struct round *round = &rounds[number];
	int64_t first = (int64_t)number * plan->segment_size + 1;
	int64_t last = first + plan->segment_size - 1;
	if (last > plan->total)
		last = plan->total;
	snprintf(segment->id, sizeof segment->id, "seg_%zu", number);
	segment->seal = (struct seal_document){
		.segment_id = segment->id,
		.channel_id = FIXTURE_CHANNEL,
		.chain = mode_text(plan->mode),
		.first_sequence = first,
		.last_sequence = last,
		.chain_hash_before = maker->hashes[first - 1],
		.chain_hash_last = maker->hashes[last],
		.clock = {plan->fault != FAULT_UNSYNCHRONIZED, plan->fault == FAULT_FORK_SEAL ? 1501 : 1500,
	              plan->fault == FAULT_NOT_COMPARED ? SEAL_CLOCK_UNVERIFIED : "ntp_adjtime"},
	};
	if (number > 0) {
		segment->previous_seal = segments[number - 1].hash;
		segment->previous_token = rounds[number - 1].token_hash;
		segment->seal.previous_seal_hash = &segment->previous_seal;
		if (plan->fault != FAULT_NO_TOKEN_BEFORE)
			segment->seal.previous_token_hash = &segment->previous_token;
		if (plan->fault == FAULT_PREVIOUS_SEAL)
			segment->previous_seal.bytes[3] ^= 1;
		if (plan->fault == FAULT_PREVIOUS_TOKEN)
			segment->previous_token.bytes[3] ^= 1;
	}
	if (plan->fault == FAULT_SEAL_COUNT && last == plan->total)
		segment->seal.last_sequence++;
	segment->hash = seal_document_digest(&segment->seal, &maker->scratch);
	size_t count = (size_t)(last - first + 1);
	struct sha256 *leaves = calloc(count + 1, sizeof *leaves);
	assert_non_null(leaves);
	memcpy(leaves, &maker->hashes[first], count * sizeof *leaves);
	leaves[count] = segment->hash;
	struct hash_tree *tree;
	assert_int_equal(tree_build(leaves, count + 1, &tree), 0);
	struct sha256 roots[3] = {sha256_of("a", 1), tree_root(tree), sha256_of("b", 1)};
	tree_free(tree);
	free(leaves);
	/* The very first round has only this segment: no path. */
	struct sha256 *from = number ? roots : &roots[1];
	assert_int_equal(tree_build(from, number ? 3 : 1, &tree), 0);
	round->root = tree_root(tree);
	tree_prove(tree, number ? 1 : 0, &segment->path);
	tree_free(tree);
	segment->round = number;
	snprintf(round->id, sizeof round->id, "rnd_%zu", number);
	buf_init(&round->token, TIMESTAMP_RESPONSE_MAX);
	struct timestamp_facts facts;
	struct fixture *fixture = maker->fixture;
	assert_int_equal(fixture->only_second ? fixture->second_stamp(fixture->second_context,
	                                                              &round->root, &round->token, NULL)
	                                      : stamp(fixture, &round->root, &round->token, NULL),
	                 0);
	bool valid = timestamp_verify_token(buf_slice(&round->token), &round->root, slice_make(NULL, 0),
	                                    &facts, NULL) == 0;
	assert_true(valid || maker->fixture->stamp); /* an authority of the test may be invalid */
	round->gen_time_us = valid ? facts.gen_time_us : clock_now_us();
	round->token_hash = sha256_of(round->token.data, round->token.size);
}

static void stamp_again(const struct fixture *fixture, struct round *round)
{
	struct timestamp_facts facts;
	buf_init(&round->second, TIMESTAMP_RESPONSE_MAX);
	assert_int_equal(
		fixture->second_stamp(fixture->second_context, &round->root, &round->second, NULL), 0);
	bool valid = timestamp_verify_token(buf_slice(&round->second), &round->root,
	                                    slice_make(NULL, 0), &facts, NULL) == 0;
	round->second_gen_time_us = valid ? facts.gen_time_us : clock_now_us();
}

static int add_leaves(struct maker *maker, int64_t from, int64_t to)
{
	int result = 0;
	for (int64_t i = from; i <= to && !result; i++) {
		struct sha256 hash = maker->hashes[i];
		if (maker->plan->fault == FAULT_LEAF_MISSING && i == from)
			continue;
		if (maker->plan->fault == FAULT_LEAF && i == from)
			hash.bytes[31] ^= 1;
		result = archive_add_leaf(maker->archive, i, &hash, NULL);
	}
	return result;
}

/* The request that such a token answers; empty if OpenSSL cannot read the token. */
static void ask_for(struct slice token, struct buf *out)
{
	const unsigned char *at = (const unsigned char *)token.data;
	PKCS7 *signed_data = d2i_PKCS7(NULL, &at, (long)token.size);
	TS_TST_INFO *info = signed_data ? PKCS7_to_TS_TST_INFO(signed_data) : NULL;
	TS_REQ *request = TS_REQ_new();
	unsigned char *der = NULL;
	assert_non_null(request);
	if (info) {
		const ASN1_INTEGER *nonce = TS_TST_INFO_get_nonce(info);
		assert_true(TS_REQ_set_version(request, 1) && TS_REQ_set_cert_req(request, 1) &&
		            TS_REQ_set_msg_imprint(request, TS_TST_INFO_get_msg_imprint(info)) &&
		            TS_REQ_set_policy_id(request, TS_TST_INFO_get_policy_id(info)) &&
		            (!nonce || TS_REQ_set_nonce(request, nonce)));
		int size = i2d_TS_REQ(request, &der);
		assert_true(size > 0);
		buf_add(out, der, (size_t)size);
	}
	OPENSSL_free(der);
	TS_REQ_free(request);
	TS_TST_INFO_free(info);
	PKCS7_free(signed_data);
}

static int add_round(struct maker *maker, const struct round *round, const struct round *before)
{
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	ask_for(buf_slice(&round->token), &request);
	struct archive_token token = {
		.authority = "An authority",
		.kind = AUTHORITY_DEVELOPMENT,
		.request = buf_slice(&request),
		.token = buf_slice(&round->token),
		.gen_time_us = round->gen_time_us,
	};
	struct archive_round facts = {round->id, round->root, {token}, 1};
	const struct fixture *fixture = maker->fixture;
	struct archive_token *second =
		&facts.tokens[facts.token_count - (fixture->only_second ? 1 : 0)];
	if (fixture->second_stamp)
		*second = (struct archive_token){
			.authority = "Another authority",
			.kind = AUTHORITY_NON_QUALIFIED,
			.token = fixture->only_second ? token.token : buf_slice(&round->second),
			.gen_time_us = fixture->only_second ? token.gen_time_us : round->second_gen_time_us,
			.certificates = fixture->certificates,
			.certificate_count = fixture->certificate_count,
			.revocations = fixture->revocations,
			.revocation_count = fixture->revocation_count,
		};
	facts.token_count += fixture->second_stamp && !fixture->only_second;
	if (fixture->renew)
		fixture->renew(maker->fixture, &facts.tokens[0]);
	if (maker->plan->fault == FAULT_ROUND_ROOT)
		facts.root.bytes[9] ^= 1;
	if (maker->plan->fault == FAULT_GEN_TIME)
		facts.tokens[0].gen_time_us++;
	if (maker->plan->fault == FAULT_ROUND_REPLAY && before)
		facts.tokens[0].token = buf_slice(&before->token);
	return archive_add_round(maker->archive, &facts, NULL);
}

static bool same_chain(const struct fixture_plan *a, const struct fixture_plan *b)
{
	return a->mode == b->mode && a->total == b->total && a->segment_size == b->segment_size &&
	       a->content == b->content && a->fault == b->fault;
}

static void seal_chain(struct maker *maker, size_t count)
{
	struct fixture *fixture = maker->fixture;
	fixture_forget(fixture);
	struct fixture_seals *seals = calloc(1, sizeof *seals);
	assert_non_null(seals);
	*seals = (struct fixture_seals){*maker->plan, count, calloc(count, sizeof *seals->segments),
	                                calloc(count, sizeof *seals->rounds)};
	assert_true(seals->segments && seals->rounds);
	fixture->seals = seals;
	for (size_t i = 0; i < count; i++) {
		seal_segment(maker, seals->segments, seals->rounds, i);
		if (fixture->second_stamp)
			stamp_again(fixture, &seals->rounds[i]);
	}
}

void fixture_write_seals(const struct fixture *fixture, size_t begin, size_t end, const char *path)
{
	BUF_AUTO struct buf text;
	buf_init(&text, 65536);
	for (size_t i = begin; i < end; i++) {
		seal_document_write(&fixture->seals->segments[i].seal, &text);
		buf_add_byte(&text, '\n');
	}
	assert_int_equal(buf_check(&text), 0);
	fixture_write(path, buf_slice(&text));
}

/* Writes the seal document of a segment. Later ones refer to it as it is. */
static int add_document(struct maker *maker, const struct segment *segments, size_t number,
                        size_t begin)
{
	const enum fixture_history history = maker->fixture->history;
	struct seal_document seal = segments[number].seal;
	const bool is_last = number + 1 == begin;
	if (history == HISTORY_FOREIGN && is_last)
		seal.channel_id = "chn_another";
	if (history == HISTORY_TIME && is_last)
		seal.clock.max_error_us++;
	if (history == HISTORY_START && number == 0)
		seal.chain_hash_before.bytes[0] ^= 1;
	buf_clear(&maker->scratch);
	seal_document_write(&seal, &maker->scratch);
	return archive_add_history(
		maker->archive, history == HISTORY_JUNK ? slice_of("{}") : buf_slice(&maker->scratch),
		NULL);
}

static int add_history(struct maker *maker, const struct segment *segments, size_t begin)
{
	const enum fixture_history history = maker->fixture->history;
	const size_t end = history == HISTORY_LONG    ? begin + 1
	                   : history == HISTORY_SHORT ? begin - 1
	                                              : begin;
	int result = 0;
	for (size_t i = history == HISTORY_LATE; history != HISTORY_NONE && i < end && !result; i++)
		if (history != HISTORY_GAP || i != 1)
			result = add_document(maker, segments, i, begin);
	return result;
}

static int add_seals(struct maker *maker)
{
	const struct fixture_plan *plan = maker->plan;
	size_t count = (size_t)((plan->total + plan->segment_size - 1) / plan->segment_size);
	size_t begin = (size_t)((plan->first - 1) / plan->segment_size);
	size_t end = (size_t)((plan->last - 1) / plan->segment_size);
	if (!maker->fixture->seals || !same_chain(&maker->fixture->seals->plan, plan))
		seal_chain(maker, count);
	struct segment *segments = maker->fixture->seals->segments;
	struct round *rounds = maker->fixture->seals->rounds;
	int result = add_leaves(maker, segments[begin].seal.first_sequence, plan->first - 1);
	int64_t last = (int64_t)(end + 1) * plan->segment_size;
	if (!result)
		result = add_leaves(maker, plan->last + 1, last < plan->total ? last : plan->total);
	for (size_t i = begin; i <= end && !result; i++) {
		struct archive_segment segment = {segments[i].seal, &segments[i].path,
		                                  rounds[segments[i].round].id};
		struct tree_proof longer = segments[i].path;
		longer.siblings[longer.count++] = sha256_of("c", 1);
		if (plan->fault == FAULT_PATH)
			segment.path = &longer;
		if (plan->fault != FAULT_SEGMENT_MISSING || i != begin)
			result = archive_add_segment(maker->archive, &segment, NULL);
	}
	bool left_out = plan->fault == FAULT_ROUND_LEFT_OUT || plan->fault == FAULT_NO_TOKEN_BEFORE;
	size_t ahead = plan->fault == FAULT_ROUND_EXTRA ? 2 : left_out ? 0 : 1;
	for (size_t i = begin >= ahead ? begin - ahead : 0; i <= end && !result; i++)
		result = add_round(maker, &rounds[i], i > 0 ? &rounds[i - 1] : NULL);
	for (size_t i = 0; i < maker->fixture->object_count && !result; i++)
		result = archive_add_object(maker->archive, &maker->fixture->objects[i], NULL);
	for (size_t i = 0; i < maker->fixture->stamp_count && !result; i++)
		result = archive_add_renewal(maker->archive, &maker->fixture->stamps[i], NULL);
	return result ? result : add_history(maker, segments, begin);
}

static int write_archive(struct maker *maker, const struct archive_facts *facts,
                         struct fixture_archive *made)
{
	const struct fixture_plan *plan = maker->plan;
	int result = archive_begin(made->path, facts, &maker->archive, NULL);
	if (!result && maker->fixture->signer_list.size)
		result = archive_add_signers(maker->archive, maker->fixture->signer_list, NULL);
	for (size_t i = 0; i < 2 && !result; i++)
		if ((config_of(maker, plan->first) <= i && config_of(maker, plan->last) >= i) ||
		    plan->fault == FAULT_UNUSED_CONFIG)
			result = archive_add_config(maker->archive, (int64_t)i + 1,
			                            buf_slice(&maker->configs[i]), NULL);
	for (int64_t i = plan->first; i <= plan->last && !result; i++) {
		struct event_facts event;
		event_of(maker, i, &event);
		if (plan->fault == FAULT_PREVIOUS_CHAIN_HASH && i == 3)
			event.previous_chain_hash.bytes[0] ^= 1;
		if (plan->fault == FAULT_EVENT_FOREIGN && i == plan->last)
			event.declaration.client_ref = slice_of("another");
		result = archive_add_event(maker->archive, &event, NULL);
	}
	if (!result && plan->mode == MODE_LIVE)
		result = add_seals(maker);
	struct cms_signer signer;
	struct cms_signing signing = maker->fixture->signing
	                                 ? *maker->fixture->signing
	                                 : fixture_signing(maker->fixture, plan->mode, &signer);
	struct error error = {0};
	if (!result)
		result = archive_finish(maker->archive, &signing, &made->sum, &error);
	if (error.cause[0])
		print_message("archive_finish: %s\n", error.cause);
	if (!result) {
		made->first_chain_hash = archive_first_chain_hash(maker->archive);
		made->last_chain_hash = archive_last_chain_hash(maker->archive);
	}
	archive_free(maker->archive);
	return result;
}

/* The requested range, and the time of issue. */
static void request_range(const struct maker *maker, struct archive_facts *facts)
{
	const struct fixture_plan *plan = maker->plan;
	int64_t first_us = maker->base_us + plan->first * 10,
			last_us = maker->base_us + plan->last * 10;
	if (plan->fault == FAULT_REQUESTED)
		facts->requested_last = 1000;
	if (plan->fault == FAULT_ISSUED_EARLY)
		facts->issued_at_us -= 3 * 3600 * US_PER_SECOND;
	if (plan->fault == FAULT_ISSUED_LATE)
		facts->issued_at_us += 1000 * US_PER_SECOND;
	if (plan->fault < FAULT_BY_TIME || plan->fault > FAULT_FROM_EARLY)
		return;
	facts->requested_first = facts->requested_last = 0;
	facts->requested_from_us = plan->fault == FAULT_FROM_LATE    ? first_us + 1
	                           : plan->fault == FAULT_FROM_EARLY ? first_us - 10
	                                                             : first_us;
	facts->requested_to_us = plan->fault == FAULT_TO_EARLY   ? last_us
	                         : plan->fault == FAULT_TO_FIRST ? first_us - 1
	                                                         : last_us + 1;
}

int fixture_make(struct fixture *fixture, const char *name, const struct fixture_plan *plan,
                 struct fixture_archive *ret_archive)
{
	struct maker maker = {.fixture = fixture, .plan = plan};
	maker.base_us = fixture->base_us - (plan->fault == FAULT_OLD ? 30 * US_PER_DAY : 0);
	make_chain(&maker);
	struct fixture_archive made = {0};
	char directory[128];
	snprintf(directory, sizeof directory, "%s/%s", fixture->directory, name);
	snprintf(made.path, sizeof made.path, "%s.zip", directory);
	struct archive_facts facts = {
		.certification_id = fixture->certification,
		.verification_code = FIXTURE_CODE,
		.channel_id = FIXTURE_CHANNEL,
		.mode = plan->mode,
		.genesis = genesis_of(&maker),
		.issued_at_us = clock_now_us() + fixture->clock_offset_us,
		.requested_from_us = TIME_NONE,
		.requested_to_us = TIME_NONE,
		.requested_first = plan->first,
		.requested_last = plan->last,
		.first_sequence = plan->first,
		.last_sequence = plan->last,
		.service_name = "Constancia",
		.service_prefix = "svc",
		.verification_url = "https://example.test/v/SVC-2026-7K3M-Q9XD",
	};
	facts.genesis.created_at_us += plan->fault == FAULT_GENESIS;
	request_range(&maker, &facts);
	struct part_writer *parts =
		plan->content ? make_parts(&maker, directory, &made, &facts.parts) : NULL;
	facts.part_count = made.part_count;
	int result = write_archive(&maker, &facts, &made);
	part_writer_free(parts);
	buf_free(&maker.configs[0]);
	buf_free(&maker.configs[1]);
	buf_free(&maker.genesis);
	buf_free(&maker.scratch);
	free(maker.hashes);
	if (!result)
		*ret_archive = made;
	return result;
}

/* Ends the question, whose text is already written. Without roots, intact evidence counts as
 * good. */
static bool second_verdict(const char *log, bool rooted)
{
	char verdict[4096];
	fputc('\n', second_verifier.questions);
	fflush(second_verifier.questions);
	if (!fgets(verdict, sizeof verdict, second_verifier.verdicts))
		fail_msg("the second verifier ended; %s has its reason", log);
	if (strncmp(verdict, "valid: ", 7) == 0)
		return true;
	if (strncmp(verdict, "not established: ", 17) == 0)
		return !rooted;
	assert_int_equal(strncmp(verdict, "not valid: ", 11), 0);
	return false;
}

static void find_second_verifier(const struct fixture *fixture, char log[FIXTURE_PATH_SIZE])
{
	snprintf(log, FIXTURE_PATH_SIZE, "%s/script.log", fixture->directory);
	if (!second_verifier.process)
		start_second_verifier(log);
}

bool fixture_agrees(const struct fixture *fixture, const char *path,
                    const struct fixture_archive *parts, const char *other_path)
{
	char log[FIXTURE_PATH_SIZE];
	find_second_verifier(fixture, log);
	fprintf(second_verifier.questions, "--trust %s %s %s %s", fixture->trust,
	        other_path ? "--beside" : "", other_path ? other_path : "", path);
	for (size_t i = 0; parts && i < parts->part_count; i++)
		fprintf(second_verifier.questions, " %s", parts->part_paths[i]);
	return second_verdict(log, true);
}

bool fixture_agrees_without_roots(const struct fixture *fixture, const char *path)
{
	char log[FIXTURE_PATH_SIZE];
	find_second_verifier(fixture, log);
	fputs(path, second_verifier.questions);
	return second_verdict(log, false);
}

static void in_shell(const struct fixture *fixture, const char *command)
{
	if (system(command) == 0)
		return;
	char shown[FIXTURE_PATH_SIZE + 32];
	snprintf(shown, sizeof shown, "cat %s/hand/out >&2", fixture->directory);
	assert_true(system(shown) >= 0);
	fail_msg("%s", command);
}

void fixture_follow_readme(const struct fixture *fixture, const char *path, const char *verdict)
{
	char command[4096];
	snprintf(command, sizeof command,
	         "cd %s && rm -rf hand && mkdir -p hand/archive && cd hand/archive && unzip -q %s &&"
	         " cp %s ../trust-signer.pem && cp %s ../trust-timestamps.pem &&"
	         " sed -n 's/^  3\\. sed/sed/p; s/^     bash/bash/p' README.txt >../steps &&"
	         " { bash ../steps >../out 2>&1; code=$?; } && tail -n 1 ../out | grep -q '%s' &&"
	         " test $code -eq %d",
	         fixture->directory, path, fixture->trust, fixture->trust, verdict,
	         strncmp(verdict, "^NOT", 4) == 0);
	in_shell(fixture, command);
}

void fixture_readme_said(const struct fixture *fixture, const char *line)
{
	char command[1024];
	snprintf(command, sizeof command, "grep -q '%s' %s/hand/out", line, fixture->directory);
	in_shell(fixture, command);
}

/* Findings must not depend on who checked the parts, or when. */
static void assert_same(const struct verify_result *a, const struct verify_result *b)
{
	const struct verify_finding *x = a->first, *y = b->first;
	for (; x && y; x = x->next, y = y->next) {
		assert_int_equal(x->severity, y->severity);
		assert_string_equal(x->path, y->path);
		assert_string_equal(x->where, y->where);
		assert_string_equal(x->what, y->what);
	}
	assert_true(!x && !y);
	assert_int_equal(a->wrong, b->wrong);
	assert_int_equal(a->unchecked, b->unchecked);
	assert_int_equal(a->unestablished, b->unestablished);
	assert_int_equal(a->warnings, b->warnings);
	assert_int_equal(a->kept, b->kept);
	assert_memory_equal(&a->checked, &b->checked, sizeof a->checked);
}

void fixture_verify(const char *const *paths, size_t count, const struct trust_roots *roots,
                    struct verify_result *ret_result)
{
	struct error error = {0};
	const struct verify_options options = {.use_threads = true};
	struct verify_result again;
	if (verify_paths(paths, count, roots, NULL, ret_result, &error) ||
	    verify_paths(paths, count, roots, &options, &again, &error))
		fail_msg("verify_paths: %s", error.cause);
	assert_same(ret_result, &again);
	verify_result_free(&again);
}

uint64_t fixture_warnings(const struct verify_result *result)
{
	uint64_t count = result->warnings;
	for (const struct verify_finding *at = result->first; at; at = at->next)
		if (at->severity == VERIFY_WARNING &&
		    (strstr(at->what, "before timestamps that do not cover them") ||
		     strstr(at->what, "refers to no earlier timestamp, like the first one") ||
		     strstr(at->what, "but the first timestamp that proves it is")))
			count--;
	return count;
}

bool fixture_finds(const struct verify_result *result, enum verify_severity severity,
                   const char *where, const char *what)
{
	for (const struct verify_finding *at = result->first; at; at = at->next)
		if (at->severity == severity && strstr(at->where, where) && strstr(at->what, what))
			return true;
	return false;
}

void fixture_expect_exit(const struct verify_result *result, int exit_code)
{
	if (verify_exit_code(result) == exit_code)
		return;
	verify_print(result, false, stderr);
	fail_msg("the exit code is not %d", exit_code);
}

void fixture_expect_finding(const struct verify_result *result, enum verify_severity severity,
                            const char *where, const char *what)
{
	if (fixture_finds(result, severity, where, what))
		return;
	verify_print(result, false, stderr);
	fail_msg("not found: '%s'", what);
}

void fixture_make_good(struct fixture *fixture, const char *name, const struct fixture_plan *plan,
                       struct fixture_archive *ret_archive)
{
	if (fixture_make(fixture, name, plan, ret_archive) != 0)
		fail_msg("the archive %s could not be made", name);
}
