/* The result as one word and one sentence for non-technical users. */
#include <assert.h>
#include <inttypes.h>

#include "verify/verify_check.h"

#define NAMES_SHOWN 3

enum verify_verdict verify_verdict(const struct verify_result *result)
{
	if (result->wrong > 0)
		return VERIFY_NOT_VALID;
	if (result->unchecked > 0)
		return VERIFY_NOT_CHECKED;
	if (!result->signers_trusted)
		return VERIFY_SIGNER_OPEN;
	if (!result->authorities_trusted && result->signers.count > 0)
		return VERIFY_AUTHORITY_OPEN;
	if (result->existence_only > 0)
		return VERIFY_EXISTENCE_ONLY;
	return result->trusted && result->unestablished == 0 ? VERIFY_VALID : VERIFY_NOT_CHECKED;
}

int verify_exit_code(const struct verify_result *result)
{
	enum verify_verdict verdict = verify_verdict(result);
	return verdict == VERIFY_VALID ? 0 : verdict == VERIFY_NOT_VALID ? 1 : 2;
}

const char *verify_severity_text(enum verify_severity severity)
{
	static const char *const texts[] = {
		[VERIFY_WARNING] = "warning",
		[VERIFY_UNESTABLISHED] = "unestablished",
		[VERIFY_UNCHECKED] = "unchecked",
		[VERIFY_WRONG] = "wrong",
	};
	assert((size_t)severity < sizeof texts / sizeof *texts);
	return texts[severity];
}

const char *verify_verdict_text(enum verify_verdict verdict, enum language language)
{
	static const char *const words[][2] = {
		[VERIFY_VALID] = {"VALID", "VÁLIDO"},
		[VERIFY_NOT_VALID] = {"NOT VALID", "NO VÁLIDO"},
		[VERIFY_SIGNER_OPEN] = {"INTACT, SIGNER NOT ESTABLISHED",
	                            "ÍNTEGRO, FIRMANTE NO ACREDITADO"},
		[VERIFY_AUTHORITY_OPEN] = {"INTACT, TIMESTAMP AUTHORITY NOT ESTABLISHED",
	                               "ÍNTEGRO, AUTORIDAD DE SELLADO DE TIEMPO NO ACREDITADA"},
		[VERIFY_EXISTENCE_ONLY] = {"EXISTENCE ONLY", "SOLO EXISTENCIA"},
		[VERIFY_NOT_CHECKED] = {"COULD NOT BE CHECKED", "NO SE PUDO COMPROBAR"},
	};
	assert((size_t)verdict < sizeof words / sizeof *words);
	return words[verdict][language];
}

/* ---- names ---- */

static bool is_meant(const struct verify_identity *identity, bool unknown)
{
	return !unknown || !identity->trusted;
}

/* Appends "A, B and C": only the untrusted ones, or all. */
static void add_names(const struct verify_identities *list, bool unknown, enum language language,
                      struct buf *out)
{
	bool spanish = language == LANGUAGE_SPANISH;
	size_t count = 0, shown = 0;
	for (const struct verify_identity *at = list->first; at; at = at->next)
		count += is_meant(at, unknown);
	for (const struct verify_identity *at = list->first; at && shown < NAMES_SHOWN; at = at->next) {
		if (!is_meant(at, unknown))
			continue;
		bool last = shown + 1 == count;
		buf_add_text(out, shown == 0 ? "" : !last ? ", " : spanish ? " y " : " and ");
		buf_add_text(out, at->certificate.name);
		shown++;
	}
	if (count > shown)
		buf_printf(out, spanish ? " y %zu más" : " and %zu more", count - shown);
}

/* ---- the sentences ---- */

static void append_valid(const struct verify_result *result, enum language language,
                         struct buf *out)
{
	bool spanish = language == LANGUAGE_SPANISH;
	buf_add_text(out, spanish ? "emitido por " : "issued by ");
	add_names(&result->signers, false, language, out);
	if (result->authorities.count == 0) {
		buf_add_text(out, spanish ? "; es de prueba, sin sellos de tiempo ni valor probatorio"
		                          : "; it is a test, without timestamps or probative value");
		return;
	}
	buf_add_text(out, spanish ? "; las horas las dio " : "; the times were given by ");
	add_names(&result->authorities, false, language, out);
}

/* Appends why the name in a certificate is not sufficient. */
static void append_no_root(bool given, enum language language, struct buf *out)
{
	bool spanish = language == LANGUAGE_SPANISH;
	buf_add_text(out, spanish ? "; cualquiera puede crear un certificado con ese nombre, y "
	                          : "; anyone can create a certificate in that name, and ");
	if (given)
		buf_add_text(out, spanish ? "este no conduce a ninguna de las raíces dadas"
		                          : "this one does not chain to any of the given roots");
	else
		buf_add_text(out, spanish ? "no se dio ninguna raíz de confianza que lo avale (--trust)"
		                          : "no trusted root was given that vouches for it (--trust)");
}

static void append_signer_open(const struct verify_result *result, enum language language,
                               struct buf *out)
{
	buf_add_text(out, language == LANGUAGE_SPANISH
	                      ? "no ha cambiado nada desde que se firmó en nombre de "
	                      : "nothing was changed since it was signed in the name of ");
	add_names(&result->signers, true, language, out);
	append_no_root(result->signers_given, language, out);
}

static void append_authority_open(const struct verify_result *result, enum language language,
                                  struct buf *out)
{
	bool spanish = language == LANGUAGE_SPANISH;
	buf_add_text(out, spanish ? "emitido por " : "issued by ");
	add_names(&result->signers, false, language, out);
	buf_add_text(out, spanish ? ", pero las horas se dieron en nombre de "
	                          : ", but the times were given in the name of ");
	add_names(&result->authorities, true, language, out);
	append_no_root(result->authorities_given, language, out);
}

static void append_existence(const struct verify_result *result, enum language language,
                             struct buf *out)
{
	bool spanish = language == LANGUAGE_SPANISH, trusted = result->authorities_trusted;
	const struct verify_existence *first = &result->existence;
	char since[TIME_TEXT_SIZE];
	time_format(first->since_us, since);
	if (first->is_event)
		buf_add_text(out, spanish ? "nada muestra quién registró este evento"
		                          : "nothing shows who recorded this event");
	else
		buf_add_text(out, spanish ? "nada muestra quién hizo este fichero"
		                          : "nothing shows who made this file");
	buf_printf(out,
	           spanish ? ", %s, que existía el %.19sZ según un sello de tiempo %s "
	                   : ", %s, which existed at %.19sZ by a timestamp %s ",
	           first->path, since,
	           spanish ? (trusted ? "de" : "en nombre de") : (trusted ? "of" : "in the name of"));
	add_names(&result->authorities, !trusted, language, out);
	if (result->existence_only > 1)
		buf_printf(out,
		           spanish ? "; lo mismo vale para otros %" PRIu64 " ficheros"
		                   : "; the same holds for %" PRIu64 " more files",
		           result->existence_only - 1);
	if (!trusted)
		append_no_root(result->authorities_given, language, out);
}

/* Appends the first finding of that severity. */
static void append_finding(const struct verify_result *result, enum verify_severity severity,
                           enum language language, struct buf *out)
{
	bool spanish = language == LANGUAGE_SPANISH;
	const struct verify_finding *at = result->first;
	while (at && at->severity != severity)
		at = at->next;
	for (at = at ? at : result->first; at && at->severity == VERIFY_WARNING;)
		at = at->next;
	if (!at) {
		buf_add_text(out, spanish ? "no contiene ninguna firma" : "the file contains no signature");
		return;
	}
	buf_printf(out, "%s%s%s%s%s", at->path, at->path[0] ? ": " : "", at->where,
	           at->where[0] ? ": " : "", spanish ? at->what_es : at->what);
}

int verify_write_sentence(const struct verify_result *result, enum language language,
                          struct buf *out)
{
	enum verify_verdict verdict = verify_verdict(result);
	buf_printf(out, "%s: ", verify_verdict_text(verdict, language));
	switch (verdict) {
	case VERIFY_VALID: append_valid(result, language, out); break;
	case VERIFY_SIGNER_OPEN: append_signer_open(result, language, out); break;
	case VERIFY_AUTHORITY_OPEN: append_authority_open(result, language, out); break;
	case VERIFY_EXISTENCE_ONLY: append_existence(result, language, out); break;
	case VERIFY_NOT_VALID: append_finding(result, VERIFY_WRONG, language, out); break;
	case VERIFY_NOT_CHECKED: append_finding(result, VERIFY_UNCHECKED, language, out); break;
	}
	buf_add_text(out, ".");
	return buf_check(out);
}
