/* The text of mails. */
#include "testing.h"
#include "net/mail.h"
#include "service/mail_templates.h"
#include "store/notices/mails.h"

static void fill(const char *name, const char *values, enum language language, struct buf *subject,
                 struct buf *text)
{
	struct mail_facts facts = {name, values, "Constancia", "acc_1", language};
	buf_init(subject, MAIL_SUBJECT_MAX);
	buf_init(text, 65536);
	assert_int_equal(mail_template_fill(&facts, subject, text, NULL), OK);
}

TEST_CASE(test_what_is_not_there_has_no_line)
{
	BUF_AUTO struct buf subject, text;
	fill("topup_failed",
	     "{\"reason\":\"payment_failed\",\"pack_id\":\"pck_1\",\"sale_code\":null,"
	     "\"payment_url\":\"https://pay.example.org/1?a=b\"}",
	     LANGUAGE_ENGLISH, &subject, &text);
	assert_string_equal(subject.data,
	                    "Constancia: the automatic top-up failed and has been turned off");
	assert_non_null(strstr(text.data, "of account acc_1 failed: the charge was declined.\n"));
	assert_non_null(strstr(text.data, "\nPack: pck_1\nYou can pay for it here: https://pay."
	                                  "example.org/1?a=b\n"));
	assert_null(strstr(text.data, "Purchase"));
	assert_null(strchr(text.data, '{'));
}

TEST_CASE(test_every_template_in_both_languages)
{
	static const char *const names[] = {MAIL_ENDPOINT_DISABLED, MAIL_TOPUP_FAILED,
	                                    MAIL_ACCOUNT_DISABLED, MAIL_PASSKEY_ADDED,
	                                    MAIL_PASSKEY_REMOVED};
	static const char *const of[] = {"acc_1", "acc_1", "acc_1", "a phone", "a phone"};
	static const char values[] =
		"{\"endpoint_id\":\"whk_1\",\"url\":\"https://example.org/hook\",\"reason\":\"daily_limit\","
		"\"pack_id\":\"pck_1\",\"sale_code\":\"sal_1\",\"payment_url\":\"https://pay.example.org\","
		"\"name\":\"a phone\",\"at\":\"2026-01-01T00:00:00.000000Z\",\"address\":\"192.0.2.7\","
		"\"active_at\":\"2025-01-01T00:00:00.000000Z\"}";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		BUF_AUTO struct buf english, spanish, subject, asunto;
		fill(names[i], values, LANGUAGE_ENGLISH, &subject, &english);
		fill(names[i], values, LANGUAGE_SPANISH, &asunto, &spanish);
		assert_string_not_equal(subject.data, asunto.data);
		assert_ptr_equal(strstr(english.data, "Hello,\n\n"), english.data);
		assert_ptr_equal(strstr(spanish.data, "Hola:\n\n"), spanish.data);
		assert_null(strchr(english.data, '{'));
		assert_null(strchr(spanish.data, '{'));
		assert_non_null(strstr(english.data, of[i]));
		assert_non_null(strstr(spanish.data, of[i]));
	}
}

TEST_CASE(test_values_stay_where_they_belong)
{
	BUF_AUTO struct buf subject, text;
	fill("endpoint_disabled", "{\"endpoint_id\":\"whk\\r\\nBcc: x\",\"url\":\"{account}\\nmore\"}",
	     LANGUAGE_ENGLISH, &subject, &text);
	assert_null(strpbrk(subject.data, "\r\n"));
	assert_non_null(strstr(text.data, "\nAddress: {account} more\n"));

	struct mail_facts bad[] = {
		{"of_another_time", "{}", "Constancia", "acc_1", LANGUAGE_ENGLISH},
		{"topup_failed", "[]", "Constancia", "acc_1", LANGUAGE_ENGLISH},
		{"topup_failed", "{", "Constancia", "acc_1", LANGUAGE_ENGLISH},
		{"endpoint_disabled", "{}", "Constancia", "acc_1", LANGUAGE_ENGLISH},
	};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(mail_template_fill(&bad[i], &subject, &text, NULL), ERR_VALIDATION);
}

TEST_MAIN(NULL, NULL)
