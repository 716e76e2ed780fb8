/* Encoding of e-mail messages. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "net/mail_compose.h"

#define LINE_MAX_QP 76
#define WORD_BYTES_MAX 39 /* of an encoded word; with "Subject: " the line has 76 characters */
#define NAME_MAX_BYTES 200
#define ID_MAX 100

bool mail_address_usable(const char *address)
{
	size_t size = address ? strlen(address) : 0;
	const char *at = size ? strchr(address, '@') : NULL;
	if (!at || at == address || at - address > 64 || !at[1] || size > MAIL_ADDRESS_MAX)
		return false;
	for (const char *c = address; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(c < at ? "!#$%&'*+/=?^_`{|}~.-" : ".-", *c) &&
		    c != at)
			return false;
	return at[1] != '.' && at[1] != '-' && address[size - 1] != '.' && address[size - 1] != '-';
}

static bool is_id(const char *id)
{
	size_t size = id ? strlen(id) : 0;
	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)id[i]) && id[i] != '_' && id[i] != '-')
			return false;
	return size >= 1 && size <= ID_MAX;
}

/* ---- headers ---- */

static bool is_header_text(struct slice text, size_t most)
{
	for (size_t i = 0; i < text.size; i++)
		if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
			return false;
	return text.size <= most && utf8_valid(text);
}

/* Encoded words (RFC 2047), one per line, without splitting a character. */
static void encoded_words(struct buf *out, struct slice text)
{
	while (text.size) {
		struct slice part = utf8_cut(text, WORD_BYTES_MAX);
		assert(part.size > 0); /* the text is valid */
		buf_add_text(out, "=?UTF-8?B?");
		buf_add_base64(out, part);
		buf_add_text(out, "?=");
		text = slice_make(text.data + part.size, text.size - part.size);
		if (text.size)
			buf_add_text(out, "\r\n ");
	}
}

/* Short ASCII text is not encoded unless it looks like an encoded word. */
static bool is_plain(struct slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if ((unsigned char)text.data[i] >= 0x7f)
			return false;
	return text.size <= 60 && !memmem(text.data, text.size, "=?", 2);
}

static void subject(struct buf *out, struct slice text)
{
	buf_add_text(out, "Subject: ");
	if (is_plain(text))
		buf_add_slice(out, text);
	else
		encoded_words(out, text);
	buf_add_text(out, "\r\n");
}

static void sender(struct buf *out, const struct mail_message *message)
{
	struct slice name = slice_of(message->from_name);
	buf_add_text(out, "From: ");
	if (name.size && is_plain(name)) {
		buf_add_byte(out, '"');
		for (size_t i = 0; i < name.size; i++) {
			if (name.data[i] == '"' || name.data[i] == '\\')
				buf_add_byte(out, '\\');
			buf_add_byte(out, name.data[i]);
		}
		buf_add_byte(out, '"');
	} else {
		encoded_words(out, name);
	}
	buf_printf(out, "%s<%s>\r\n", name.size ? "\r\n " : "", message->from);
}

static void date(struct buf *out, int64_t time_us)
{
	static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t seconds = (time_t)(time_us / US_PER_SECOND);
	struct tm tm = {0};
	gmtime_r(&seconds, &tm);
	buf_printf(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[tm.tm_wday], tm.tm_mday,
	           months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* ---- the body ---- */

/* Writes lines of at most 76 characters with CRLF; encodes blanks at the end of a line (RFC 2045
 * section 6.7). */
static void quoted_printable(struct buf *out, struct slice text)
{
	size_t column = 0;
	for (size_t i = 0; i < text.size; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		bool ends = i + 1 == text.size || text.data[i + 1] == '\n';
		if (byte == '\n') {
			buf_add_text(out, "\r\n");
			column = 0;
			continue;
		}
		bool plain = (byte > 0x20 && byte < 0x7f && byte != '=') || (byte == ' ' && !ends);
		size_t width = plain ? 1 : 3;
		if (column + width > LINE_MAX_QP - 1) {
			buf_add_text(out, "=\r\n");
			column = 0;
		}
		if (plain)
			buf_add_byte(out, (char)byte);
		else
			buf_printf(out, "=%02X", byte);
		column += width;
	}
	if (column)
		buf_add_text(out, "\r\n");
}

static int check(const struct mail_message *message, struct error *error)
{
	const char *fault = NULL;
	if (!mail_address_usable(message->from))
		fault = "sender's address";
	else if (!mail_address_usable(message->to))
		fault = "recipient's address";
	else if (!is_header_text(slice_of(message->from_name), NAME_MAX_BYTES))
		fault = "sender's name";
	else if (!is_id(message->id))
		fault = "identifier";
	else if (!message->subject.size || !is_header_text(message->subject, MAIL_SUBJECT_MAX))
		fault = "subject";
	else if (!utf8_valid(message->text))
		fault = "text";
	return fault ? error_cause(error, ERR_VALIDATION, "e-mail: %s not usable", fault) : OK;
}

int mail_compose(const struct mail_message *message, struct buf *out, struct error *error)
{
	int result = check(message, error);
	if (result)
		return result;
	date(out, message->time_us);
	sender(out, message);
	buf_printf(out, "To: <%s>\r\n", message->to);
	subject(out, message->subject);
	buf_printf(out, "Message-ID: <%s%s>\r\n", message->id, strchr(message->from, '@'));
	buf_printf(out, "Content-Language: %s\r\n",
	           message->language == LANGUAGE_SPANISH ? "es" : "en");
	/* Suppresses automatic replies (RFC 3834). */
	buf_add_text(out, "Auto-Submitted: auto-generated\r\n"
	                  "MIME-Version: 1.0\r\n"
	                  "Content-Type: text/plain; charset=utf-8\r\n"
	                  "Content-Transfer-Encoding: quoted-printable\r\n\r\n");
	quoted_printable(out, message->text);
	return buf_check(out);
}
