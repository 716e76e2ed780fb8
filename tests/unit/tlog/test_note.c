#include "testing.h"

#include <openssl/evp.h>

#include "tlog/checkpoint.h"
#include "tlog/note.h"

/* The example of the specification of signed notes. */
#define KNOWN_KEY "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
#define KNOWN_TEXT "This is an example message.\n"
#define KNOWN_NOTE                                                                                 \
	KNOWN_TEXT "\n\xe2\x80\x94 example.com/foo "                                                   \
			   "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1"  \
			   "Yu72IneyaQM=\n"

static int parse(struct arena *arena, const char *text, struct note *ret)
{
	return note_parse(arena, slice_of(text), ret, NULL);
}

/* A key pair. */
struct signer {
	struct note_key key;
	EVP_PKEY *private;
};

static struct signer make_signer(const char *name, enum note_key_type type)
{
	struct signer made = {.private = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
	uint8_t public[NOTE_KEY_SIZE];
	size_t size = sizeof public;
	assert_non_null(made.private);
	assert_int_equal(EVP_PKEY_get_raw_public_key(made.private, public, &size), 1);
	made.key = note_key_make(name, type, public);
	return made;
}

static void sign(const struct signer *signer, struct slice message,
                 uint8_t signature[NOTE_SIGNATURE_SIZE])
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = NOTE_SIGNATURE_SIZE;
	assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, signer->private), 1);
	assert_int_equal(
		EVP_DigestSign(context, signature, &size, (const uint8_t *)message.data, message.size), 1);
	EVP_MD_CTX_free(context);
}

static void cosign(const struct signer *witness, const char *text, int64_t time_s, struct buf *out)
{
	uint8_t signature[NOTE_SIGNATURE_SIZE];
	BUF_AUTO struct buf message = {.limit = 4096};
	note_cosigned_message(slice_of(text), time_s, &message);
	sign(witness, buf_slice(&message), signature);
	note_add_cosignature(&witness->key, time_s, signature, out);
}

TEST_CASE(test_known_note)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct note_key key;
	struct note note;
	char vkey[NOTE_VKEY_SIZE];
	assert_int_equal(note_key_parse(slice_of(KNOWN_KEY), &key, NULL), OK);
	assert_string_equal(key.name, "example.com/foo");
	note_key_write(&key, vkey);
	assert_string_equal(vkey, KNOWN_KEY);
	assert_int_equal(parse(&arena, KNOWN_NOTE, &note), OK);
	assert_true(slice_is(note.text, KNOWN_TEXT));
	assert_int_equal(note.count, 1);
	int64_t time_us;
	assert_int_equal(note_verify(&note, &key, &time_us), NOTE_SIGNED);
	assert_true(time_us == TIME_NONE);
	/* Other texts, other names, other ids. */
	assert_int_equal(note_verify_text(slice_of("Another message.\n"), &note, &key, NULL),
	                 NOTE_FALSE);
	struct note_key other = note_key_make("example.com/bar", NOTE_ED25519, key.key);
	assert_int_equal(note_verify(&note, &other, NULL), NOTE_UNSIGNED);
	other = note_key_make("example.com/foo", NOTE_COSIGNATURE, key.key);
	assert_int_equal(note_verify(&note, &other, NULL), NOTE_UNSIGNED);
}

TEST_CASE(test_wrong_keys)
{
	static const char *const wrong[] = {
		"",
		"a",
		"a+b",
		"+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/fop+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U0k",
		"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U",
		"example.com/foo+530d903a+",
		"example.com/foo+530d90+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/ foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/\xe2\x80\x89"
		"foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903a+BukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct note_key key;
		struct error error = {0};
		if (note_key_parse(slice_of(wrong[i]), &key, &error) != ERR_INVALID_EVIDENCE)
			fail_msg("%s was accepted", wrong[i]);
		assert_true(error.cause[0]);
	}
}

TEST_CASE(test_wrong_notes)
{
	static const char *const wrong[] = {"",
	                                    "\n",
	                                    "\n\n",
	                                    "text\n",
	                                    "text\n\n",
	                                    "text\n\nno signature\n",
	                                    KNOWN_TEXT "\n\n",
	                                    "text\n\n\xe2\x80\x94 name\n",
	                                    "text\n\n\xe2\x80\x94 name AAAA\n",
	                                    "text\n\n\xe2\x80\x94 name AAAAAA==",
	                                    "text\n\n\xe2\x80\x94 name AAAAAAA\n",
	                                    "text\n\n\xe2\x80\x94  AAAAAAA=\n",
	                                    "text\n\n\xe2\x80\x94 na+me AAAAAAA=\n",
	                                    "te\txt\n\n\xe2\x80\x94 name AAAAAAA=\n",
	                                    "te\xff\n\n\xe2\x80\x94 name AAAAAAA=\n",
	                                    "text\n\n- name AAAAAAA=\n",
	                                    "text\n\n\xe2\x80\x94 name AAAAAAA= \n",
	                                    "text\r\n\r\n\xe2\x80\x94 name AAAAAAA=\r\n"};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct note note;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (parse(&arena, wrong[i], &note) != ERR_INVALID_EVIDENCE)
			fail_msg("%s was accepted", wrong[i]);
	/* Empty lines may be in the text. */
	assert_int_equal(parse(&arena, "a\n\nb\n\n\xe2\x80\x94 name AAAAAAA=\n", &note), OK);
	assert_true(slice_is(note.text, "a\n\nb\n"));
}

/* A witness's time is part of what it signs. A false signature of a known key spoils the note, one
 * of an unknown key does not. */
TEST_CASE(test_cosignatures)
{
	static const char text[] = "example.com/log\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf lines = {.limit = 65536};
	struct signer log = make_signer("example.com/log", NOTE_ED25519);
	struct signer witness = make_signer("witness.example/w1", NOTE_COSIGNATURE);
	struct signer other = make_signer("witness.example/w2", NOTE_COSIGNATURE);
	uint8_t signature[NOTE_SIGNATURE_SIZE];
	sign(&log, slice_of(text), signature);
	buf_add_text(&lines, text);
	buf_add_byte(&lines, '\n');
	note_add_signature(&log.key, signature, &lines);
	cosign(&witness, text, 1679315147, &lines);
	cosign(&witness, text, 1679315149, &lines);
	struct note note;
	int64_t time_us;
	assert_int_equal(note_parse(&arena, buf_slice(&lines), &note, NULL), OK);
	assert_int_equal(note.count, 3);
	assert_int_equal(note_verify(&note, &log.key, NULL), NOTE_SIGNED);
	assert_int_equal(note_verify(&note, &witness.key, &time_us), NOTE_SIGNED);
	/* The first of its signatures counts. */
	assert_true(time_us == INT64_C(1679315147) * US_PER_SECOND);
	assert_int_equal(note_verify(&note, &other.key, NULL), NOTE_UNSIGNED);
	/* The times of the two are exchanged. */
	char *first = (char *)note.signatures[1].bytes.data,
		 *second = (char *)note.signatures[2].bytes.data;
	for (int i = 0; i < 8; i++) {
		char byte = first[i];
		first[i] = second[i];
		second[i] = byte;
	}
	assert_int_equal(note_verify(&note, &witness.key, NULL), NOTE_FALSE);
	assert_int_equal(note_verify(&note, &log.key, NULL), NOTE_SIGNED);
	EVP_PKEY_free(log.private);
	EVP_PKEY_free(witness.private);
	EVP_PKEY_free(other.private);
}

/* Of what was stored, a reader of the whole note gets the first line of each key. */
TEST_CASE(test_readable_lines)
{
	static const char text[] = "example.com/log\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
	BUF_AUTO struct buf lines = {.limit = 1 << 20}, expected = {.limit = 65536};
	BUF_AUTO struct buf readable = {.limit = 65536};
	struct signer one = make_signer("witness.example/w1", NOTE_COSIGNATURE);
	struct signer two = make_signer("witness.example/w2", NOTE_COSIGNATURE);
	cosign(&one, text, 1679315147, &expected);
	buf_add_slice(&lines, buf_slice(&expected));
	for (int64_t i = 0; i < 1000; i++)
		cosign(&one, text, 1679315148 + i, &lines);
	buf_add_text(&lines, "not a line\n\n\xe2\x80\x94 short AAAAAAA=\n\xe2\x80\x94 ");
	for (int i = 0; i < 600; i++)
		buf_add_byte(&lines, 'n');
	buf_add_text(&lines, " AAAAAAAA\n");
	cosign(&two, text, 1679315147, &expected);
	cosign(&two, text, 1679315147, &lines);
	buf_add_text(&lines, "without an end");
	assert_int_equal(note_add_readable(buf_slice(&lines), &readable), OK);
	assert_true(slice_equal(buf_slice(&readable), buf_slice(&expected)));
	/* One of each of many keys, up to the limit. */
	buf_clear(&lines);
	buf_clear(&readable);
	for (int i = 0; i < NOTE_COSIGNATURES_MAX + 1; i++) {
		snprintf(one.key.name, sizeof one.key.name, "w%d", i);
		cosign(&one, text, 1679315147, &lines);
	}
	assert_int_equal(note_add_readable(buf_slice(&lines), &readable), OK);
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct note note;
	assert_int_equal(note_parse_signatures(&arena, buf_slice(&readable), &note, NULL), OK);
	assert_int_equal(note.count, NOTE_COSIGNATURES_MAX);
	buf_clear(&readable);
	assert_int_equal(note_add_readable(slice_of(""), &readable), OK);
	assert_int_equal(readable.size, 0);
	EVP_PKEY_free(one.private);
	EVP_PKEY_free(two.private);
}

TEST_CASE(test_checkpoints)
{
	static const char text[] =
		"example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
	struct checkpoint checkpoint;
	BUF_AUTO struct buf written = {.limit = 4096};
	assert_int_equal(checkpoint_parse(slice_of(text), &checkpoint, NULL), OK);
	assert_string_equal(checkpoint.origin, "example.com/behind-the-sofa");
	assert_int_equal(checkpoint.size, 20852163);
	checkpoint_write(&checkpoint, &written);
	assert_true(slice_is(buf_slice(&written), text));
	buf_add_text(&written, "an extension\n");
	assert_int_equal(checkpoint_parse(buf_slice(&written), &checkpoint, NULL), OK);
	static const char *const wrong[] = {
		"",
		"a\n",
		"a\n1\n",
		"\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\x1b[31m\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\x7f\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\xc2\x9b\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\xff\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\n01\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\n\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\n-1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\n9007199254740993\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n",
		"a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I\n",
		"a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=",
		"a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n",
		"a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\nb"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (checkpoint_parse(slice_of(wrong[i]), &checkpoint, NULL) != ERR_INVALID_EVIDENCE)
			fail_msg("%s was accepted", wrong[i]);
}

TEST_MAIN(NULL, NULL)
