#include "testing.h"

#include "tlog/policy.h"

#define WITNESSES 6

/* The verifier key of a number. */
static const char *vkey(struct arena *arena, const char *name, enum note_key_type type,
                        uint8_t number)
{
	const uint8_t bytes[NOTE_KEY_SIZE] = {number};
	const struct note_key key = note_key_make(name, type, bytes);
	char text[NOTE_VKEY_SIZE];
	note_key_write(&key, text);
	char *copy = arena_text(arena, text);
	assert_non_null(copy);
	return copy;
}

static const char *witness_lines(struct arena *arena)
{
	static const char *const names[WITNESSES] = {"X1", "X2", "X3", "Y1", "Y2", "Y3"};
	const char *text = "";
	for (uint8_t i = 0; i < WITNESSES; i++)
		text = arena_printf(arena, "%switness %s %s\n", text, names[i],
		                    vkey(arena, "witness.example", NOTE_COSIGNATURE, i));
	return text;
}

static int parse(struct arena *arena, const char *text, struct policy *ret)
{
	struct error error = {0};
	int result = policy_parse(arena, slice_of(text), ret, &error);
	assert_true(!result == !error.cause[0]);
	return result;
}

/* Two groups: 2 of 3, and 1 of 3. All subsets are judged. */
TEST_CASE(test_quorum_of_groups)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct policy policy;
	const char *text =
		arena_printf(&arena,
	                 "# a comment\n\n log\t%s  https://log.example/log \n%sgroup X 2 X1 X2 X3\n"
	                 "group Y any Y1 Y2 Y3\ngroup both all X Y\nquorum both",
	                 vkey(&arena, "log.example", NOTE_ED25519, 9), witness_lines(&arena));
	assert_int_equal(parse(&arena, text, &policy), OK);
	assert_int_equal(policy.log_count, 1);
	assert_string_equal(policy.logs[0].url, "https://log.example/log");
	assert_int_equal(policy.witness_count, WITNESSES);
	for (unsigned set = 0; set < 1U << WITNESSES; set++) {
		bool cosigned[WITNESSES];
		for (unsigned i = 0; i < WITNESSES; i++)
			cosigned[i] = set >> i & 1;
		int x = cosigned[0] + cosigned[1] + cosigned[2],
			y = cosigned[3] + cosigned[4] + cosigned[5];
		assert_int_equal(policy_is_satisfied(&policy, cosigned), x >= 2 && y >= 1);
	}
}

TEST_CASE(test_simple_quorums)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct policy policy;
	bool none[WITNESSES] = {false}, first[WITNESSES] = {true};
	assert_int_equal(parse(&arena, "quorum none\n", &policy), OK);
	assert_true(policy_is_satisfied(&policy, none));
	const char *text = arena_printf(&arena, "%squorum X1\n", witness_lines(&arena));
	assert_int_equal(parse(&arena, text, &policy), OK);
	assert_false(policy_is_satisfied(&policy, none));
	assert_true(policy_is_satisfied(&policy, first));
}

TEST_CASE(test_policies_of_options)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct note_key keys[3];
	struct policy policy;
	bool cosigned[3] = {true, false, true};
	for (uint8_t i = 0; i < 3; i++) {
		const uint8_t bytes[NOTE_KEY_SIZE] = {i};
		keys[i] = note_key_make("w", NOTE_COSIGNATURE, bytes);
	}
	assert_int_equal(policy_make(&arena, NULL, 0, keys, 3, 2, &policy, NULL), OK);
	assert_true(policy_is_satisfied(&policy, cosigned));
	cosigned[0] = false;
	assert_false(policy_is_satisfied(&policy, cosigned));
	assert_int_equal(policy_make(&arena, NULL, 0, keys, 3, 0, &policy, NULL), OK);
	assert_true(policy_is_satisfied(&policy, cosigned));
	assert_int_equal(policy_make(&arena, NULL, 0, keys, 3, 4, &policy, NULL), ERR_INVALID_EVIDENCE);
	keys[2] = keys[0];
	assert_int_equal(policy_make(&arena, NULL, 0, keys, 3, 2, &policy, NULL), ERR_INVALID_EVIDENCE);
}

/* The time at which the quorum was reached: for all orders of three witnesses' times. */
TEST_CASE(test_time_of_a_quorum)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct note_key keys[3];
	for (uint8_t i = 0; i < 3; i++) {
		const uint8_t bytes[NOTE_KEY_SIZE] = {i};
		keys[i] = note_key_make("w", NOTE_COSIGNATURE, bytes);
	}
	static const int64_t orders[][3] = {{0, 5, 9}, {0, 9, 5}, {5, 0, 9},
	                                    {5, 9, 0}, {9, 0, 5}, {9, 5, 0}};
	static const int64_t expected[] = {0, 0, 5, 9}; /* none: the earliest */
	for (size_t quorum = 0; quorum <= 3; quorum++) {
		struct policy policy;
		assert_int_equal(policy_make(&arena, NULL, 0, keys, 3, quorum, &policy, NULL), OK);
		for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
			assert_int_equal(policy_time(&policy, orders[i]), expected[quorum]);
		const int64_t two[] = {7, TIME_NONE, 6}, none[] = {TIME_NONE, TIME_NONE, TIME_NONE};
		assert_int_equal(policy_time(&policy, two), quorum < 2 ? 6 : quorum == 2 ? 7 : TIME_NONE);
		assert_int_equal(policy_time(&policy, none), TIME_NONE);
	}
}

TEST_CASE(test_wrong_policies)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	const char *witnesses = witness_lines(&arena);
	const char *log = vkey(&arena, "log.example", NOTE_ED25519, 9);
	const char *wrong[] = {
		"",
		"log\nquorum none\n",
		"quorum none\nquorum none\n",
		"quorum\n",
		"quorum X1\n",
		"quorum none X1\n",
		"policy 1\nquorum none\n",
		"log a+b+c\nquorum none\n",
		"qu\rorum none\n",
		arena_printf(&arena, "log %s a b\nquorum none\n", log),
		arena_printf(&arena, "log %s\nlog %s\nquorum none\n", log, log),
		arena_printf(&arena, "witness W %s\nquorum W\n", log),
		arena_printf(&arena, "log %s\nquorum none\n", vkey(&arena, "w", NOTE_COSIGNATURE, 1)),
		arena_printf(&arena, "witness none %s\nquorum none\n",
	                 vkey(&arena, "w", NOTE_COSIGNATURE, 9)),
		arena_printf(&arena, "%switness Z %s\nquorum X1\n", witnesses,
	                 vkey(&arena, "w", NOTE_COSIGNATURE, 1)),
		arena_printf(&arena, "%switness X1 %s\nquorum X1\n", witnesses,
	                 vkey(&arena, "w", NOTE_COSIGNATURE, 9)),
		arena_printf(&arena, "%sgroup G 0 X1\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G 2 X1\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G 01 X1\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G all\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G all G\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G all none\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G all X1 X1\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G all X1\ngroup H all X1\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup G all H\ngroup H all X1\nquorum G\n", witnesses),
		arena_printf(&arena, "%sgroup X1 all X2\nquorum X1\n", witnesses),
	};
	struct policy policy;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (parse(&arena, wrong[i], &policy) != ERR_INVALID_EVIDENCE)
			fail_msg("%s was accepted", wrong[i]);
}

TEST_MAIN(NULL, NULL)
