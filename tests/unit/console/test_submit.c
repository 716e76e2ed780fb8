/* The failures of a form that its page reports: every code of the table has a decision. */
#include "testing.h"
#include "console/visit.h"

static const int told[] = {
	ERR_VALIDATION,
	ERR_UNPAID_LIMIT,
	ERR_NOT_OPERATIONAL,
	ERR_INSUFFICIENT_BALANCE,
	ERR_SUSPENDED,
	ERR_ACCOUNT_DISABLED,
	ERR_NOT_FOUND,
	ERR_CONFLICT,
	ERR_TOO_LARGE,
	ERR_LIMIT_BLOCKED,
	ERR_RATE_LIMITED,
	ERR_TEST_QUOTA,
	ERR_UNAVAILABLE,
	ERR_NO_MEMORY,
	ERR_IO,
	ERR_NO_SPACE,
	ERR_UNKNOWN_OUTCOME,
	ERR_USAGE,
	ERR_REFUSED,
	ERR_INVALID_EVIDENCE,
	ERR_AUTHORITY,
	ERR_NETWORK,
	ERR_CLOCK,
	ERR_PIN,
	ERR_PASSKEY,
	ERR_BUSY,
	ERR_FULL,
};
static const int elsewhere[] = {
	ERR_INTERNAL,    ERR_CORRUPT,     ERR_METHOD,    ERR_HEAD_LARGE,
	ERR_INVALID_KEY, ERR_REVOKED_KEY, ERR_FORBIDDEN, ERR_SIGN_IN,
};

static bool is_among(int code, const int *codes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (codes[i] == code)
			return true;
	return false;
}

TEST_CASE(every_failure_has_its_place)
{
	for (int code = -1; code > -ERROR_NUMBERS; code--) {
		bool on_page = is_among(code, told, sizeof told / sizeof *told);
		bool on_own = is_among(code, elsewhere, sizeof elsewhere / sizeof *elsewhere);
		if (on_page + on_own != error_is_known(code))
			fail_msg("%s (%d) was decided about %d times", error_code_text(code), code,
			         on_page + on_own);
		if (error_is_known(code))
			assert_int_equal(is_shown_on_form_page(code), on_page);
	}
}

TEST_MAIN(NULL, NULL)
