#include "testing.h"
#include "base/clock.h"
#include "net/mail_compose.h"
#include "smtp_script.h"

/* ---- composing ---- */

static struct mail_message message_with(const char *subject, const char *text)
{
	return (struct mail_message){
		.from = "notices@example.org",
		.from_name = "Constancia",
		.to = "owner@example.com",
		.id = "eml_1",
		.time_us = INT64_C(1700000000) * US_PER_SECOND,
		.subject = slice_of(subject),
		.text = slice_of(text),
	};
}

static char *composed(const struct mail_message *message, struct buf *out)
{
	buf_init(out, MAIL_MESSAGE_MAX);
	assert_int_equal(mail_compose(message, out, NULL), OK);
	return out->data;
}

TEST_CASE(test_a_plain_message)
{
	struct mail_message message = message_with("Hello", "One line.\nAnother = one \n\n.\n");
	BUF_AUTO struct buf out;
	assert_string_equal(composed(&message, &out),
	                    "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
	                    "From: \"Constancia\"\r\n <notices@example.org>\r\n"
	                    "To: <owner@example.com>\r\n"
	                    "Subject: Hello\r\n"
	                    "Message-ID: <eml_1@example.org>\r\n"
	                    "Content-Language: en\r\n"
	                    "Auto-Submitted: auto-generated\r\n"
	                    "MIME-Version: 1.0\r\n"
	                    "Content-Type: text/plain; charset=utf-8\r\n"
	                    "Content-Transfer-Encoding: quoted-printable\r\n"
	                    "\r\n"
	                    "One line.\r\nAnother =3D one=20\r\n\r\n.\r\n");
}

TEST_CASE(test_words_are_encoded)
{
	struct mail_message message =
		message_with("Recarga automática: ha fallado y se ha desactivado del todo, mañana más", "");
	message.from_name = "Constancia Ñ";
	message.language = LANGUAGE_SPANISH;
	BUF_AUTO struct buf out;
	const char *text = composed(&message, &out);
	assert_non_null(strstr(text, "From: =?UTF-8?B?Q29uc3RhbmNpYSDDkQ==?=\r\n <notices@"));
	assert_non_null(strstr(text,
	                       "Subject: =?UTF-8?B?UmVjYXJnYSBhdXRvbcOhdGljYTogaGEgZmFsbGFkbyB5IHNlIGhh"
	                       "?=\r\n"
	                       " =?UTF-8?B?IGRlc2FjdGl2YWRvIGRlbCB0b2RvLCBtYcOxYW5hIG3DoXM=?=\r\n"));
	assert_non_null(strstr(text, "Content-Language: es\r\n"));
	for (const char *line = text; *line;) {
		const char *end = strstr(line, "\r\n");
		assert_non_null(end);
		assert_true(end - line <= 76);
		for (const char *c = line; c < end; c++)
			assert_true((unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7f);
		line = end + 2;
	}
}

TEST_CASE(test_what_looks_encoded_is_encoded)
{
	struct mail_message message = message_with("=?UTF-8?B?aGk=?=", "");
	message.from_name = "A \"quoted\" \\ name";
	BUF_AUTO struct buf out;
	const char *text = composed(&message, &out);
	assert_non_null(strstr(text, "Subject: =?UTF-8?B?PT9VVEYtOD9CP2FHaz0/PQ==?=\r\n"));
	assert_non_null(strstr(text, "From: \"A \\\"quoted\\\" \\\\ name\"\r\n <"));
}

TEST_CASE(test_long_lines_are_folded)
{
	char body[1001];
	for (size_t i = 0; i < 1000; i++)
		body[i] = "abc \xc3\xb1"[i % 6];
	body[1000] = '\0';
	body[996] = '\0'; /* 996 = 6 * 166: complete characters */
	struct mail_message message = message_with("s", body);
	BUF_AUTO struct buf out;
	const char *text = strstr(composed(&message, &out), "\r\n\r\n") + 4;
	size_t decoded = 0;
	char plain[1001];
	while (*text) {
		size_t size = strcspn(text, "\r");
		assert_true(size <= 76);
		for (size_t i = 0; i < size; i++) {
			unsigned byte = (unsigned char)text[i];
			if (byte == '=' && i + 1 == size)
				break;
			if (byte == '=') {
				assert_int_equal(sscanf(text + i + 1, "%2X", &byte), 1);
				i += 2;
			}
			plain[decoded++] = (char)byte;
		}
		text += size + 2;
	}
	assert_int_equal(decoded, 996);
	assert_memory_equal(plain, body, 996);
}

TEST_CASE(test_nothing_ends_a_header)
{
	struct mail_message bad[10];
	for (size_t i = 0; i < 10; i++)
		bad[i] = message_with("s", "t");
	bad[0].subject = slice_of("s\r\nBcc: other@example.com");
	bad[1].subject = slice_of("");
	bad[2].subject = slice_of("\xff");
	bad[3].from_name = "n\n";
	bad[4].to = "owner@example.com>\r\nRCPT TO:<other@example.com";
	bad[5].to = "owner";
	bad[6].to = NULL;
	bad[7].from = "a@b c";
	bad[8].id = "eml\r\n1";
	bad[9].id = "";
	for (size_t i = 0; i < 10; i++) {
		BUF_AUTO struct buf out = {.limit = MAIL_MESSAGE_MAX};
		if (mail_compose(&bad[i], &out, NULL) != ERR_VALIDATION)
			fail_msg("message %zu", i);
	}
}

TEST_CASE(test_addresses)
{
	static const char *const good[] = {"a@b", "a.b+c@example.org", "o'x@sub.example.org"};
	static const char *const bad[] = {
		"",     "a",    "@b",   "a@",    "a@b@c",         "a b@c", "a@b c",   "a@b>",  "\"a\"@b",
		"a@.b", "a@b.", "a@-b", "a,b@c", "ñ@example.org", "a@b\n", "a@b;c@d", "<a@b>", "a(x)@b"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(mail_address_usable(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (mail_address_usable(bad[i]))
			fail_msg("%s", bad[i]);
	assert_false(mail_address_usable(NULL));
}

TEST_CASE(test_server_addresses)
{
	static const char *const good[] = {"smtp://mail.example.org", "smtp://mail.example.org:587",
	                                   "smtps://[::1]:465/", "smtp://127.0.0.1:25"};
	static const char *const bad[] = {"",
	                                  "mail.example.org",
	                                  "http://mail.example.org",
	                                  "smtp://",
	                                  "smtp:///mail",
	                                  "smtp://user@mail.example.org",
	                                  "smtp://user:password@mail.example.org",
	                                  "smtp://mail.example.org/name",
	                                  "smtp://mail.example.org?a=b",
	                                  "smtp://mail.example.org#a",
	                                  "smtp://mail.example.org\r\nEHLO",
	                                  "imap://mail.example.org"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (mail_url_check(good[i]))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (mail_url_check(bad[i]) != ERR_VALIDATION)
			fail_msg("%s", bad[i]);
	assert_int_equal(mail_url_check(NULL), ERR_VALIDATION);
}

/* ---- sending ---- */

static struct address_guard loopback;

static int deliver(struct smtp_script *script, struct mail_server *server, struct error *error)
{
	char url[64];
	struct mail_message message = message_with("Hello", "A line.\n.\n.. and dots\n");
	smtp_start(script);
	snprintf(url, sizeof url, "smtp://127.0.0.1:%d", script->port);
	server->url = url;
	server->guard = &loopback;
	server->timeout_ms = 20000;
	*error = (struct error){0};
	int result = mail_send(server, &message, error);
	smtp_finish(script);
	assert_int_equal(result, error->code);
	return result;
}

TEST_CASE(test_a_message_is_sent)
{
	struct smtp_script script = {0};
	struct mail_server server = {0};
	struct error error;
	assert_int_equal(deliver(&script, &server, &error), OK);
	assert_ptr_equal(strstr(script.heard, "EHLO example.org\r\n"), script.heard);
	assert_non_null(strstr(script.heard, "\nMAIL FROM:<notices@example.org>"));
	assert_non_null(strstr(script.heard, "\nRCPT TO:<owner@example.com>\r\n"));
	assert_non_null(strstr(script.heard, "\r\nSubject: Hello\r\n"));
	/* A line with only a dot would end the message. */
	assert_non_null(strstr(script.heard, "\r\n\r\nA line.\r\n..\r\n... and dots\r\n.\r\n"));
	assert_null(strstr(script.heard, "AUTH"));
}

TEST_CASE(test_with_a_password)
{
	struct smtp_script script = {.extensions = "250-AUTH PLAIN\r\n"};
	struct mail_server server = {.user = "someone", .password = "secret"};
	struct error error;
	assert_int_equal(deliver(&script, &server, &error), OK);
	/* printf '\0someone\0secret' | base64 */
	assert_non_null(strstr(script.heard, "\nAUTH PLAIN\r\nAHNvbWVvbmUAc2VjcmV0\r\n"));
	/* The operator must correct a refused password: the mail stays queued. */
	struct smtp_script refusing = {.extensions = "250-AUTH PLAIN\r\n",
	                               .answers = {{[SMTP_AUTH] = "535 no"}}};
	assert_int_equal(deliver(&refusing, &server, &error), ERR_NETWORK);
	assert_null(strstr(error.cause, "secret"));
	assert_null(strstr(refusing.heard, "MAIL FROM"));
}

TEST_CASE(test_no_password_and_no_text_without_tls)
{
	struct smtp_script script = {.extensions = "250-AUTH PLAIN\r\n"};
	struct mail_server server = {.user = "someone", .password = "secret", .require_tls = true};
	struct error error;
	assert_int_equal(deliver(&script, &server, &error), ERR_NETWORK);
	assert_null(strstr(script.heard, "AUTH"));
	assert_null(strstr(script.heard, "MAIL FROM"));
}

TEST_CASE(test_refusals)
{
	static const struct {
		enum smtp_stage stage;
		const char *answer;
		int result;
	} cases[] = {
		{SMTP_RCPT, "550 no such user", ERR_REFUSED},
		{SMTP_RCPT, "450 busy mailbox", ERR_NETWORK},
		{SMTP_RCPT, "530 authenticate first", ERR_NETWORK},
		{SMTP_RCPT, "", ERR_NETWORK},
		{SMTP_MAIL, "553 not you", ERR_NETWORK}, /* as for every other mail */
		{SMTP_MAIL, "451 later", ERR_NETWORK},
		{SMTP_DATA, "554 no", ERR_REFUSED},
		{SMTP_DATA, "452 no space", ERR_NETWORK},
		{SMTP_TEXT, "554 looks like spam", ERR_REFUSED},
		{SMTP_TEXT, "451 later", ERR_NETWORK},
		{SMTP_TEXT, "", ERR_NETWORK}, /* accepted or not? */
		{SMTP_GREETING, "554 no service", ERR_NETWORK},
		{SMTP_GREETING, "421 later", ERR_NETWORK},
		{SMTP_GREETING, "", ERR_NETWORK},
		{SMTP_GREETING, "HTTP/1.1 200 OK", ERR_NETWORK},
		{SMTP_EHLO, "", ERR_NETWORK},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct smtp_script script = {0};
		struct mail_server server = {0};
		struct error error;
		script.answers[0][cases[i].stage] = cases[i].answer;
		if (deliver(&script, &server, &error) != cases[i].result)
			fail_msg("stage %d, %s: %s", (int)cases[i].stage, cases[i].answer, error.cause);
		assert_true(*error.cause);
	}
}

TEST_CASE(test_the_guard)
{
	struct mail_message message = message_with("Hello", "");
	struct mail_server server = {.url = "smtp://127.0.0.1:1"};
	struct error error = {0};
	assert_int_equal(mail_send(&server, &message, &error), ERR_NETWORK);
	assert_string_equal(error.cause, "address 127.0.0.1 is loopback and not permitted");
	server.url = "smtp://user@127.0.0.1";
	assert_int_equal(mail_send(&server, &message, &error), ERR_VALIDATION);
}

static int setup(void **state)
{
	return network_list_parse(slice_of("127.0.0.0/8"), &loopback.allowed, NULL);
}

TEST_MAIN(setup, NULL)
