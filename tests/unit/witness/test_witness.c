#include "testing.h"
#include "scratch.h"

#include <dirent.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tlog/checkpoint.h"
#include "tlog/witness_request.h"
#include "witness/witness.h"
#include "witness/witness_refusals.h"
#include "witness/witness_store.h"

#define ORIGIN "log.example/segments"
#define NAME "witness.example/one"

/* ---- a log ---- */

struct log {
	struct note_key key;
	EVP_PKEY *private;
};

static struct log make_log(const char *origin)
{
	struct log made = {.private = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
	uint8_t public[NOTE_KEY_SIZE];
	size_t size = sizeof public;
	assert_non_null(made.private);
	assert_int_equal(EVP_PKEY_get_raw_public_key(made.private, public, &size), 1);
	made.key = note_key_make(origin, NOTE_ED25519, public);
	return made;
}

static void add_signature(const struct log *log, struct slice text, bool is_false, struct buf *note)
{
	uint8_t signature[NOTE_SIGNATURE_SIZE];
	size_t size = sizeof signature;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, log->private), 1);
	assert_int_equal(
		EVP_DigestSign(context, signature, &size, (const uint8_t *)text.data, text.size), 1);
	EVP_MD_CTX_free(context);
	signature[0] ^= is_false;
	note_add_signature(&log->key, signature, note);
}

/* Leaves; `salt` makes another history. */
static struct sha256 leaf_number(uint64_t number, uint8_t salt)
{
	const uint8_t bytes[2] = {(uint8_t)number, salt};
	return merkle_leaf(slice_make(bytes, sizeof bytes));
}

static struct sha256 root_of(uint64_t first, uint64_t end, uint8_t salt)
{
	uint64_t half = 1;
	if (end == first)
		return merkle_empty_root();
	if (end - first == 1)
		return leaf_number(first, salt);
	while (half * 2 < end - first)
		half *= 2;
	const struct sha256 left = root_of(first, first + half, salt),
						right = root_of(first + half, end, salt);
	return merkle_node(&left, &right);
}

static int read_node(void *context, unsigned level, uint64_t index, struct sha256 *ret,
                     struct error *error)
{
	(void)error;
	*ret = root_of(index << level, (index + 1) << level, *(uint8_t *)context);
	return OK;
}

/* What is special about a request. */
struct request {
	const char *extension;    /* line of the checkpoint, with its end */
	const struct log *signer; /* NULL: the log */
	const struct log *second; /* signs too */
	bool second_is_false, is_false, is_unsigned, has_more_proof, has_empty_proof;
	struct sha256 *root; /* NULL: that of the leaves */
	uint64_t proof_from; /* 0: the old size */
};

static void write_note(const struct log *log, uint64_t size, uint8_t salt,
                       const struct request *request, struct buf *note)
{
	BUF_AUTO struct buf text = {.limit = 4096};
	struct checkpoint checkpoint = {
		.size = size, .root = request->root ? *request->root : root_of(0, size, salt)};
	snprintf(checkpoint.origin, sizeof checkpoint.origin, "%s", log->key.name);
	checkpoint_write(&checkpoint, &text);
	buf_add_text(&text, request->extension ? request->extension : "");
	buf_add_slice(note, buf_slice(&text));
	buf_add_byte(note, '\n');
	if (request->is_unsigned)
		buf_add_text(note, "\xe2\x80\x94 other.example AAAAAAAA\n");
	else
		add_signature(request->signer ? request->signer : log, buf_slice(&text), request->is_false,
		              note);
	if (request->second)
		add_signature(request->second, buf_slice(&text), request->second_is_false, note);
}

static void write_body(const struct log *log, uint64_t old_size, uint64_t size, uint8_t salt,
                       const struct request *request, struct buf *body)
{
	const struct merkle_source source = {read_node, &salt};
	struct witness_request asked = {.old_size = old_size};
	BUF_AUTO struct buf note = {.limit = NOTE_SIZE_MAX};
	write_note(log, size, salt, request, &note);
	uint64_t from = request->proof_from ? request->proof_from : old_size;
	if (from <= size && !request->has_empty_proof)
		assert_int_equal(merkle_prove_consistency(&source, from, size, &asked.path, NULL), OK);
	if (request->has_more_proof)
		asked.path.hashes[asked.path.count++] = merkle_empty_root();
	asked.checkpoint = buf_slice(&note);
	witness_request_write(&asked, body);
}

static struct witness_answer submit_as(struct witness *witness, const struct log *log,
                                       uint64_t old_size, uint64_t size, uint8_t salt,
                                       const struct request *request)
{
	struct witness_answer answer;
	BUF_AUTO struct buf body = {.limit = WITNESS_REQUEST_MAX};
	write_body(log, old_size, size, salt, request, &body);
	witness_add_checkpoint(witness, buf_slice(&body), &answer);
	return answer;
}

/* Returns the status of a request. */
static int submit_with(struct witness *witness, const struct log *log, uint64_t old_size,
                       uint64_t size, uint8_t salt, const struct request *request)
{
	struct witness_answer answer = submit_as(witness, log, old_size, size, salt, request);
	assert_int_equal(buf_check(&answer.body), OK);
	witness_answer_free(&answer);
	return answer.status;
}

static int submit(struct witness *witness, const struct log *log, uint64_t old_size, uint64_t size,
                  uint8_t salt)
{
	static const struct request ordinary;
	return submit_with(witness, log, old_size, size, salt, &ordinary);
}

/* Submits a good request, and verifies the cosignature. */
static void grow(struct witness *witness, const struct log *log, uint64_t old_size, uint64_t size)
{
	static const struct request ordinary;
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf note = {.limit = NOTE_SIZE_MAX};
	struct witness_answer answer = submit_as(witness, log, old_size, size, 0, &ordinary);
	struct note parsed, lines;
	int64_t time_us;
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.origin, log->key.name);
	write_note(log, size, 0, &ordinary, &note);
	assert_int_equal(note_parse(&arena, buf_slice(&note), &parsed, NULL), OK);
	assert_int_equal(note_parse_signatures(&arena, buf_slice(&answer.body), &lines, NULL), OK);
	assert_int_equal(lines.count, 1);
	assert_int_equal(note_verify_text(parsed.text, &lines, witness_key(witness), &time_us),
	                 NOTE_SIGNED);
	int64_t now_us = clock_now_us();
	assert_true(time_us <= now_us && time_us > now_us - 600 * US_PER_SECOND);
	witness_answer_free(&answer);
}

/* ---- a witness ---- */

static char directory[SCRATCH_MAX];
static struct log logs[2]; /* of two origins */

static int set_up(void **state)
{
	(void)state;
	scratch_make(directory);
	logs[0] = make_log(ORIGIN);
	logs[1] = make_log("other.example/log");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(directory);
	EVP_PKEY_free(logs[0].private);
	EVP_PKEY_free(logs[1].private);
	return 0;
}

static int try_open(const char *name, struct witness **ret)
{
	const struct note_key keys[] = {logs[0].key, logs[1].key};
	const struct witness_options options = {
		.directory = directory, .name = name, .logs = keys, .log_count = 2};
	struct error error = {0};
	return witness_open(&options, ret, &error);
}

static struct witness *open_witness(void)
{
	struct witness *witness;
	assert_int_equal(try_open(NAME, &witness), OK);
	return witness;
}

static struct witness *reopen(struct witness *witness)
{
	witness_close(witness);
	return open_witness();
}

/* Returns the status; the note of the answer is verified by both keys and has this size. */
static int get(struct witness *witness, const char *origin, uint64_t expected)
{
	const struct sha256 hash = sha256_of(origin, strlen(origin));
	char text[2 * SHA256_SIZE + 1];
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct witness_answer answer;
	struct note note;
	struct checkpoint checkpoint;
	hex_encode(hash.bytes, SHA256_SIZE, text);
	witness_get_checkpoint(witness, slice_of(text), &answer);
	if (answer.status == 200) {
		assert_int_equal(note_parse(&arena, buf_slice(&answer.body), &note, NULL), OK);
		assert_int_equal(note.count, 2);
		assert_int_equal(note_verify(&note, &logs[0].key, NULL), NOTE_SIGNED);
		assert_int_equal(note_verify(&note, witness_key(witness), NULL), NOTE_SIGNED);
		assert_int_equal(checkpoint_parse(note.text, &checkpoint, NULL), OK);
		assert_int_equal(checkpoint.size, expected);
	}
	witness_answer_free(&answer);
	return answer.status;
}

/* Returns the number of kept refusals whose names contain a text. */
static size_t count_kept(const char *part)
{
	char path[64];
	size_t count = 0;
	snprintf(path, sizeof path, "%s/refused", directory);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += strstr(entry->d_name, part) != NULL;
	closedir(folder);
	return count;
}

/* ---- the tests ---- */

TEST_CASE(test_a_tree_that_grows_is_cosigned)
{
	struct witness *witness = open_witness();
	assert_int_equal(get(witness, ORIGIN, 0), 404);
	uint64_t size = 0;
	for (uint64_t next = 1; next < 70; size = next, next += 1 + next / 8) {
		grow(witness, &logs[0], size, next);
		assert_int_equal(get(witness, ORIGIN, next), 200);
		if (next % 3 == 0)
			witness = reopen(witness);
	}
	grow(witness, &logs[0], size, size);
	assert_int_equal(get(witness, ORIGIN, size), 200);
	assert_int_equal(get(witness, "other.example/log", 0), 404);
	assert_int_equal(count_kept(".json"), 0);
	witness_close(witness);
}

TEST_CASE(test_another_size_gets_the_known_one)
{
	static const struct request ordinary;
	struct witness *witness = open_witness();
	grow(witness, &logs[0], 0, 12);
	for (uint64_t old = 0; old <= 20; old++) {
		if (old == 12)
			continue;
		struct witness_answer answer = submit_as(witness, &logs[0], old, 20, 0, &ordinary);
		assert_int_equal(answer.status, 409);
		assert_string_equal(answer.type, "text/x.tlog.size");
		assert_true(slice_is(buf_slice(&answer.body), "12\n"));
		witness_answer_free(&answer);
	}
	/* A tree that was superseded. */
	assert_int_equal(submit(witness, &logs[0], 3, 7, 0), 409);
	assert_int_equal(submit(witness, &logs[0], 12, 7, 0), 400);
	assert_int_equal(submit(witness, &logs[0], 21, 20, 0), 400);
	/* Another log is another matter. */
	grow(witness, &logs[1], 0, 5);
	assert_int_equal(get(witness, ORIGIN, 12), 200);
	assert_int_equal(count_kept(".json"), 0);
	witness_close(witness);
}

TEST_CASE(test_another_history_is_refused_and_kept)
{
	static const struct request ordinary;
	struct witness *witness = open_witness();
	grow(witness, &logs[0], 0, 12);
	struct witness_answer answer = submit_as(witness, &logs[0], 12, 12, 1, &ordinary);
	assert_int_equal(answer.status, 422);
	assert_string_equal(answer.kept_kind, "fork");
	char path[160];
	snprintf(path, sizeof path, "%s/%s", directory, answer.kept_name);
	witness_answer_free(&answer);
	BUF_AUTO struct buf kept = {.limit = 1 << 20};
	assert_int_equal(file_read_whole(path, &kept, NULL), OK);
	assert_non_null(strstr(kept.data, "\"origin\":\"" ORIGIN "\",\"request\":\"old 12\\n\\n"));
	assert_non_null(strstr(kept.data, "\"known\":\"" ORIGIN "\\n12\\n"));
	/* The same again is not kept twice, and neither is it new. */
	answer = submit_as(witness, &logs[0], 12, 12, 1, &ordinary);
	assert_int_equal(answer.status, 422);
	assert_null(answer.kept_kind);
	witness_answer_free(&answer);
	/* A fork is proof, whatever the request says of the old size. */
	assert_int_equal(submit(witness, &logs[0], 0, 12, 2), 409);
	assert_int_equal(count_kept("-fork-"), 2);
	/* A larger tree may only have a wrong proof. */
	assert_int_equal(submit(witness, &logs[0], 12, 20, 1), 422);
	const struct request more = {.has_more_proof = true}, none = {.has_empty_proof = true},
						 other = {.proof_from = 11};
	assert_int_equal(submit_with(witness, &logs[0], 12, 20, 0, &more), 422);
	assert_int_equal(submit_with(witness, &logs[0], 12, 20, 0, &none), 422);
	assert_int_equal(submit_with(witness, &logs[0], 12, 20, 0, &other), 422);
	assert_int_equal(count_kept("-unproven-"), 2);
	witness = reopen(witness);
	assert_int_equal(get(witness, ORIGIN, 12), 200);
	grow(witness, &logs[0], 12, 20);
	witness_close(witness);
}

TEST_CASE(test_kept_refusals_are_bounded)
{
	static const struct request ordinary;
	struct witness *witness = open_witness();
	grow(witness, &logs[0], 0, 3);
	grow(witness, &logs[1], 0, 3);
	for (unsigned salt = 1; salt <= WITNESS_REFUSALS_MAX + 3; salt++) {
		struct witness_answer answer = submit_as(witness, &logs[0], 3, 3, (uint8_t)salt, &ordinary);
		assert_int_equal(answer.status, 422);
		assert_int_equal(answer.failure.code, salt <= WITNESS_REFUSALS_MAX ? OK : ERR_FULL);
		witness_answer_free(&answer);
	}
	assert_int_equal(count_kept("-fork-"), WITNESS_REFUSALS_MAX);
	/* Other kinds and other logs have space of their own. */
	assert_int_equal(submit(witness, &logs[0], 3, 9, 1), 422);
	assert_int_equal(submit(witness, &logs[1], 3, 3, 1), 422);
	assert_int_equal(count_kept(".json"), WITNESS_REFUSALS_MAX + 2);
	witness_close(witness);
}

TEST_CASE(test_requests_without_a_valid_signature)
{
	struct witness *witness = open_witness();
	const struct log unknown = make_log("unknown.example"), same_name = make_log(ORIGIN);
	const struct request unsigned_ = {.is_unsigned = true}, false_ = {.is_false = true},
						 other = {.signer = &logs[1]}, impostor = {.signer = &same_name};
	assert_int_equal(submit(witness, &unknown, 0, 1, 0), 404);
	assert_int_equal(submit_with(witness, &logs[0], 0, 1, 0, &unsigned_), 403);
	assert_int_equal(submit_with(witness, &logs[0], 0, 1, 0, &false_), 403);
	assert_int_equal(submit_with(witness, &logs[0], 0, 1, 0, &other), 403);
	assert_int_equal(submit_with(witness, &logs[0], 0, 1, 0, &impostor), 403);
	/* Unknown keys are ignored. */
	const struct request with_unknown = {.second = &same_name, .second_is_false = true};
	assert_int_equal(submit_with(witness, &logs[0], 0, 1, 0, &with_unknown), 200);
	assert_int_equal(get(witness, ORIGIN, 1), 200); /* with two signatures */
	EVP_PKEY_free(unknown.private);
	EVP_PKEY_free(same_name.private);
	witness_close(witness);
}

TEST_CASE(test_a_log_with_two_keys)
{
	const struct log newer = make_log(ORIGIN);
	const struct note_key keys[] = {logs[0].key, newer.key};
	const struct witness_options options = {
		.directory = directory, .name = NAME, .logs = keys, .log_count = 2};
	struct witness *witness;
	assert_int_equal(witness_open(&options, &witness, NULL), OK);
	const struct request both = {.second = &newer}, one = {.signer = &newer},
						 one_is_false = {.second = &newer, .second_is_false = true};
	assert_int_equal(submit_with(witness, &logs[0], 0, 1, 0, &both), 200);
	assert_int_equal(submit_with(witness, &logs[0], 1, 2, 0, &one_is_false), 403);
	assert_int_equal(submit_with(witness, &logs[0], 1, 2, 0, &one), 200);
	assert_int_equal(submit(witness, &logs[0], 2, 3, 0), 200);
	/* The history is one, whichever key signs. */
	assert_int_equal(submit_with(witness, &logs[0], 2, 3, 1, &one), 409);
	assert_int_equal(count_kept("-fork-"), 1);
	EVP_PKEY_free(newer.private);
	witness_close(witness);
}

TEST_CASE(test_malformed_requests)
{
	static const char *const bodies[] = {"",
	                                     "old 0\n",
	                                     "old 0\n\n",
	                                     "old 0\n\nx\n",
	                                     "old 0\n\nx\n1\ny\n\n\xe2\x80\x94 x AAAAAAAA\n",
	                                     "old 0\n\n" ORIGIN "\n1\n\n\xe2\x80\x94 x AAAAAAAA\n",
	                                     "old 0\n\n\xff\n\n"};
	struct witness *witness = open_witness();
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct witness_answer answer;
		witness_add_checkpoint(witness, slice_of(bodies[i]), &answer);
		assert_int_equal(answer.status, 400);
		assert_true(answer.body.size > 1);
		witness_answer_free(&answer);
	}
	static const char *const hashes[] = {"", "00", "../../../../etc/passwd"};
	for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
		struct witness_answer answer;
		witness_get_checkpoint(witness, slice_of(hashes[i]), &answer);
		assert_int_equal(answer.status, 404);
		witness_answer_free(&answer);
	}
	witness_close(witness);
}

TEST_CASE(test_the_empty_tree)
{
	struct witness *witness = open_witness();
	struct sha256 wrong = leaf_number(0, 0);
	const struct request wrong_root = {.root = &wrong}, more = {.has_more_proof = true};
	assert_int_equal(submit_with(witness, &logs[0], 0, 0, 0, &wrong_root), 422);
	assert_int_equal(submit_with(witness, &logs[0], 0, 0, 0, &more), 422);
	assert_int_equal(submit_with(witness, &logs[0], 0, 4, 0, &more), 422);
	grow(witness, &logs[0], 0, 0);
	assert_int_equal(get(witness, ORIGIN, 0), 200);
	grow(witness, &logs[0], 0, 4);
	witness_close(witness);
}

TEST_CASE(test_a_repeated_request_costs_no_write)
{
	static const struct request ordinary;
	const struct request extended = {.extension = "more\n"};
	struct witness *witness = open_witness();
	struct witness_answer first = submit_as(witness, &logs[0], 0, 4, 0, &ordinary);
	struct witness_answer second = submit_as(witness, &logs[0], 4, 4, 0, &ordinary);
	assert_true(first.is_new);
	assert_int_equal(second.status, 200);
	assert_false(second.is_new);
	assert_true(slice_equal(buf_slice(&first.body), buf_slice(&second.body)));
	/* Another text is cosigned, too. */
	struct witness_answer third = submit_as(witness, &logs[0], 4, 4, 0, &extended);
	assert_int_equal(third.status, 200);
	assert_false(third.is_new);
	assert_false(slice_equal(buf_slice(&first.body), buf_slice(&third.body)));
	witness_answer_free(&first);
	witness_answer_free(&second);
	witness_answer_free(&third);
	witness_close(witness);
}

/* ---- key and memory ---- */

static void move(const char *from, const char *to)
{
	char one[80], other[80];
	snprintf(one, sizeof one, "%s/%s", directory, from);
	snprintf(other, sizeof other, "%s/%s", directory, to);
	assert_int_equal(rename(one, other), 0);
}

TEST_CASE(test_a_new_witness_needs_a_name)
{
	struct witness *witness;
	struct note_key key;
	assert_int_equal(witness_read_key(directory, &key, NULL), ERR_NOT_FOUND);
	assert_int_equal(try_open(NULL, &witness), ERR_USAGE);
	assert_int_equal(try_open("a b", &witness), ERR_USAGE);
	witness = open_witness();
	assert_string_equal(witness_key(witness)->name, NAME);
	/* Only one process serves, and others may read the key. */
	struct witness *second;
	assert_int_equal(try_open(NAME, &second), ERR_UNAVAILABLE);
	assert_int_equal(witness_read_key(directory, &key, NULL), OK);
	assert_true(note_key_equal(&key, witness_key(witness)));
	witness_close(witness);
	assert_int_equal(try_open("witness.example/two", &witness), ERR_USAGE);
	assert_int_equal(try_open(NULL, &witness), OK);
	assert_true(note_key_equal(&key, witness_key(witness)));
	witness_close(witness);
}

TEST_CASE(test_key_and_memory_belong_together)
{
	struct witness *witness = open_witness();
	grow(witness, &logs[0], 0, 4);
	witness_close(witness);
	move("witness.db", "away.db");
	assert_int_equal(try_open(NAME, &witness), ERR_REFUSED);
	move("away.db", "witness.db");
	move("witness.key", "away.key");
	assert_int_equal(try_open(NAME, &witness), ERR_REFUSED);
	/* The key of another witness. */
	move("witness.db", "away.db");
	witness = open_witness();
	witness_close(witness);
	move("away.db", "witness.db");
	assert_int_equal(try_open(NAME, &witness), ERR_REFUSED);
	move("away.key", "witness.key");
	witness = open_witness();
	assert_int_equal(get(witness, ORIGIN, 4), 200);
	witness_close(witness);
}

TEST_CASE(test_an_interrupted_beginning_is_completed)
{
	struct witness *witness;
	struct witness_store *store;
	struct note_key key;
	/* The memory, and not yet a key. */
	assert_int_equal(witness_store_open(directory, &store, NULL), OK);
	witness_store_close(store);
	assert_int_equal(witness_read_key(directory, &key, NULL), ERR_NOT_FOUND);
	assert_int_equal(try_open(NULL, &witness), ERR_USAGE);
	witness = open_witness();
	key = *witness_key(witness);
	witness_close(witness);
	/* Both, and the key has not its name yet. */
	move("witness.key", "witness.key.new");
	witness = open_witness();
	assert_true(note_key_equal(&key, witness_key(witness)));
	witness_close(witness);
	/* A key without its name, and a memory that does not know it yet. */
	move("witness.key", "witness.key.new");
	move("witness.db", "away.db");
	witness = open_witness();
	assert_true(note_key_equal(&key, witness_key(witness)));
	grow(witness, &logs[0], 0, 4);
	witness_close(witness);
	/* Not the beginning: a memory that was emptied. */
	move("witness.db", "away.db");
	assert_int_equal(witness_store_open(directory, &store, NULL), OK);
	witness_store_close(store);
	assert_int_equal(try_open(NAME, &witness), ERR_REFUSED);
}

TEST_CASE(test_the_key_is_readable_by_its_owner_only)
{
	struct witness *witness = open_witness();
	char path[80];
	struct stat facts;
	snprintf(path, sizeof path, "%s/witness.key", directory);
	assert_int_equal(stat(path, &facts), 0);
	assert_int_equal(facts.st_mode & 0777, 0600);
	witness_close(witness);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(try_open(NAME, &witness), ERR_REFUSED);
}

TEST_MAIN_EACH(set_up, tear_down)
