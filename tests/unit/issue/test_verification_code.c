/* The ways in which users type and paste a verification code or a digest. */
#include "testing.h"
#include "issue/verification_code.h"

#define CODE "SVC-2026-7K3M-Q9XD"

static struct verification_codes read_typed(const char *typed)
{
	return verification_code_read(slice_of(typed));
}

static void stands_for(const char *code, const char *typed)
{
	struct verification_codes codes = read_typed(typed);
	if (codes.count == 0 || strcmp(codes.codes[0], code) != 0)
		print_error("%s\n", typed);
	assert_true(codes.count > 0);
	assert_string_equal(codes.codes[0], code);
}

TEST_CASE(test_however_a_code_is_written)
{
	static const char *const typed[] = {
		CODE,
		"svc-2026-7k3m-q9xd",
		CODE " ",
		CODE "\n",
		"\t" CODE "\r\n",
		"SVC20267K3MQ9XD",
		"SVC 2026 7K3M Q9XD",
		"S V C - 2 0 2 6 - 7 K 3 M - Q 9 X D",
		/* Hyphens and dashes: non-breaking, en, em, minus, soft, full-width. */
		"SVC\u20112026\u20117K3M\u2011Q9XD",
		"SVC\u20132026\u20147K3M\u2212Q9XD",
		"SVC\u00ad-2026-\u00ad7K3M-Q9XD",
		"SVC\uff0d2026\uff0d7K3M\uff0dQ9XD",
		"SVC--2026 - 7K3M\u2014-Q9XD",
		"SVC-\U00010ead2026-7K3M-Q9XD",
		/* Spaces: no-break, narrow no-break, ideographic, zero-width, byte order mark, marks of
	     * direction. */
		"\u00a0" CODE "\u202f",
		"SVC\u30002026\u30007K3M\u3000Q9XD",
		"\ufeffSVC-2026-\u200b7K3M-Q9XD",
		"\u202a" CODE "\u202c",
		"SVC-2026-7K3M-\u2028Q9XD",
		/* Full-width letters and digits. */
		"\uff33\uff36\uff23-\uff12\uff10\uff12\uff16-\uff17\uff2b\uff13\uff2d-Q9XD",
		"\uff53vc-2026-7k3m-q9xd",
		/* Line breaks of an e-mail: plain, quoted, and in quoted-printable. */
		"SVC-2026-\r\n7K3M-Q9XD",
		"SVC-2026-7K\n3M-Q9XD",
		"SVC-2026-\n> 7K3M-Q9XD",
		"> " CODE,
		"SVC-2026-7K=\r\n3M-Q9XD",
		/* The characters around it in a sentence. */
		CODE ".",
		"(" CODE ")",
		"\u00ab" CODE "\u00bb",
		"\u201c" CODE "\u201d,",
		"\"" CODE "\"",
		"<" CODE ">",
		"*" CODE "*",
		": " CODE,
	};
	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		stands_for(CODE, typed[i]);
		assert_int_equal(read_typed(typed[i]).count, 1);
	}
}

TEST_CASE(test_what_is_no_code)
{
	static const char *const typed[] = {
		"",
		" ",
		"-",
		"null",
		"x",
		"CERT-2026-0000001",
		"SVC-2026-7K3M-Q9X",
		"SVC-20Z6-7K3M-Q9XD",
		"S-2026-7K3M-Q9XD",
		"ABCDEFGHIJK-2026-7K3M-Q9XD",
		CODE " " CODE,
		CODE "; " CODE,
		CODE ".pdf",
		"SVC-2026-7K3M_Q9XD",
		"SVC-2026-7K3M/Q9XD",
		"SVC-2026-7K3M.Q9XD",
		"SVC-2026-7K3M-Q9X\u0414",
		"SVC-2026-7K3M-Q9X\u0301D",
		("SVC-2026-7K3M-Q9X\xff"
	     "D"),
		"\xc3",
		"SVC-\u0662\u0660\u0662\u0666-7K3M-Q9XD",
	};
	for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
		if (read_typed(typed[i]).count != 0)
			print_error("%s\n", typed[i]);
		assert_int_equal(read_typed(typed[i]).count, 0);
	}
}

TEST_CASE(test_the_length_is_bounded)
{
	char typed[VERIFICATION_TYPED_MAX + 2];
	memset(typed, ' ', sizeof typed - 1);
	typed[sizeof typed - 1] = '\0';
	memcpy(typed, CODE, sizeof CODE - 1);
	assert_int_equal(read_typed(typed).count, 0);
	typed[sizeof typed - 2] = '\0';
	stands_for(CODE, typed);
	memset(typed, 'A', sizeof typed - 2);
	assert_int_equal(read_typed(typed).count, 0);
}

/* It finds no other code of this service or of one with another prefix. */
TEST_CASE(test_a_letter_more_or_less_is_another_code)
{
	char changed[sizeof CODE];
	for (size_t i = 0; i < sizeof CODE - 1; i++)
		for (int c = 1; c < 0x80; c++) {
			memcpy(changed, CODE, sizeof changed);
			if (c == changed[i] || c == changed[i] + 32)
				continue;
			changed[i] = (char)c;
			struct verification_codes codes = read_typed(changed);
			for (size_t k = 0; k < codes.count; k++)
				if (strcmp(codes.codes[k], CODE) ==
				    0) /* a separator in the place of another separator */
					assert_int_equal(CODE[i], '-');
		}
}

TEST_CASE(test_codes_of_the_test_mode)
{
	stands_for("SVC-TEST-2026-7K3M-Q9XD", "svc-test-2026-7k3m-q9xd");
	stands_for("SVC-TEST-2026-7K3M-Q9XD", "svc test 2026 7k3m q9xd");
	stands_for("TEST-2026-7K3M-Q9XD", "test-2026-7k3m-q9xd");
	assert_int_equal(read_typed("test20267k3mq9xd").count, 1);
	stands_for("TEST-TEST-2026-7K3M-Q9XD", "test-test-2026-7k3m-q9xd");
}

/* "LATEST" in the live mode and "LA" in the test mode differ in hyphens alone. */
TEST_CASE(test_a_prefix_that_ends_like_the_mark)
{
	stands_for("LATEST-2026-7K3M-Q9XD", "latest-2026-7k3m-q9xd");
	stands_for("LA-TEST-2026-7K3M-Q9XD", "la-test-2026-7k3m-q9xd");
	assert_true(read_typed("latest-2026-7k3m-q9xd").is_certain);
	assert_true(read_typed("la-test-2026-7k3m-q9xd").is_certain);
	assert_true(read_typed("la test20267k3mq9xd").is_certain);
	struct verification_codes codes = read_typed("latest20267k3m-q9xd");
	assert_false(codes.is_certain);
	assert_int_equal(codes.count, 2);
	assert_string_equal(codes.codes[0], "LATEST-2026-7K3M-Q9XD");
	assert_string_equal(codes.codes[1], "LA-TEST-2026-7K3M-Q9XD");
	assert_int_equal(read_typed("abcdefghijtest20267k3mq9xd").count, 1);
}

#define DIGEST "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TEST_CASE(test_digests)
{
	static const char *const good[] = {
		DIGEST, " " DIGEST "\n", "\ufeff" DIGEST "\u00a0",
		"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
		"e3b0c442 98fc1c149afbf4c8996fb924\n27ae41e4649b934ca495991b7852b855"};
	static const char *const bad[] = {
		"",
		"0",
		DIGEST "0",
		"g" DIGEST,
		"-" DIGEST,
		DIGEST " " DIGEST,
		"g3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"\xff"};
	struct sha256 expected = sha256_of("", 0), found;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(verification_digest_read(slice_of(good[i]), &found));
		assert_true(sha256_equal(&found, &expected));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(verification_digest_read(slice_of(bad[i]), &found));
}

TEST_MAIN(NULL, NULL)
