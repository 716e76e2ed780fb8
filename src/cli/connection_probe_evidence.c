/* Checks of what evidence depends on: timestamp authorities, revocation data of their certificates,
 * and the report renderer. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/connection_probe_internal.h"
#include "cli/node_parts.h"
#include "report/renderer.h"
#include "seal/trust.h"

#define PEM_MAX ((size_t)4 << 20)

/* ---- authorities ---- */

/* Returns the first certificate whose revocation data does not suffice; revoked ones take
 * precedence. Certificates that name no source of revocation data are counted instead. */
static const struct revocation_verdict *find_insufficient(const struct revocation_verdict *verdicts,
                                                          size_t count, size_t *ret_unpublished)
{
	const struct revocation_verdict *found = NULL;
	*ret_unpublished = 0;
	for (size_t i = 0; i < count; i++) {
		if (verdicts[i].outcome == REVOCATION_UNPUBLISHED)
			++*ret_unpublished;
		else if (!revocation_is_sufficient(verdicts[i].outcome) &&
		         (!found || verdicts[i].outcome == REVOCATION_REVOKED))
			found = &verdicts[i];
	}
	return found;
}

/* Fetches revocation data as for a certification, for the timestamp just issued. */
static void try_revocation(struct trial *trial, const char *of, struct slice path)
{
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = clock_now_us() - US_PER_SECOND};
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = NULL;
	struct error error = {0};
	size_t count = 0, unpublished;
	probe_begin(trial, "revocation", "revocation.allow_networks");
	int result = node_create_revocation_client(trial->settings, NULL, &client, &error);
	if (!result)
		result = revocation_fetch(client, path, &at, &set, verdicts, &count, &error);
	revocation_client_free(client);
	if (result) {
		probe_fail(trial, result, &error);
		return;
	}
	const struct revocation_verdict *lack = find_insufficient(verdicts, count, &unpublished);
	if (lack)
		probe_end(trial, true, "%s: %s: %s%s%s", of, lack->certificate.name,
		          revocation_outcome_text(lack->outcome), *lack->cause ? ": " : "", lack->cause);
	else if (unpublished)
		probe_end(trial, false,
		          "%s: %zu of %zu certificates name no source of revocation data; the "
		          "others are not revoked",
		          of, unpublished, count);
	else
		probe_end(trial, false, "%s: its %zu certificates are not revoked", of, count);
}

static void fail_authority(struct trial *trial, size_t index,
                           const struct authority_failures *failures)
{
	struct authority_settings settings = settings_authorities(trial->settings);
	const char *remedy = "";
	trial->setting =
		authority_setting_of_fault(&settings, index, failures->items[0].fault, &remedy);
	probe_end(trial, true, "%s: %s%s", failures->items[0].name, failures->items[0].reason, remedy);
}

static void try_authority(struct trial *trial, size_t index)
{
	AUTHORITY_RESULT_AUTO struct authority_result given = {0};
	struct authority_failures failures = {0};
	struct authorities *authorities = NULL;
	struct error error = {0};
	struct sha256 imprint;
	probe_begin(trial, "authority", "tsa.url");
	struct authority_settings settings = settings_authorities(trial->settings);
	int result = authority_create_one(&settings, index, &authorities, &error);
	if (!result && !authorities) {
		probe_end(trial, false, "embedded, for development: its timestamps prove nothing");
		return;
	}
	random_bytes(imprint.bytes, sizeof imprint.bytes);
	if (!result)
		result = authorities_timestamp(authorities, &imprint, TIME_NONE, &given, &failures, &error);
	if (!result)
		probe_end(trial, false, "%s: %s, %s, policy %s, local clock differs by %+lld ms", given.url,
		          given.facts.authority.name, authority_kind_text(given.kind), given.facts.policy,
		          (long long)(clock_now_us() - given.facts.gen_time_us) / 1000);
	else if (failures.count)
		fail_authority(trial, index, &failures);
	else
		probe_fail(trial, result, &error);
	struct authority_certificates seen;
	BUF_AUTO struct buf path;
	buf_init(&path, PEM_MAX);
	if (!result && authorities_get_certificates(authorities, 0, &seen, &path) && !buf_check(&path))
		try_revocation(trial, seen.name, buf_slice(&path));
	authorities_free(authorities);
}

void probe_authorities(struct trial *trial)
{
	struct authority_settings settings = settings_authorities(trial->settings);
	size_t count = authority_count(&settings);
	for (size_t i = 0; i < count && i < AUTHORITIES_MAX; i++)
		try_authority(trial, i);
}

/* ---- roots ---- */

/* Describes the first certificate of a file that may hold hundreds, and checks that all can be
 * read. */
static int describe_all(struct slice rest, struct certificate_facts *ret_first, size_t *ret_count,
                        struct error *error)
{
	static const char first[] = "-----BEGIN CERTIFICATE-----", last[] = "-----END CERTIFICATE-----";
	int result = OK;
	*ret_count = 0;
	for (const char *at; !result && (at = memmem(rest.data, rest.size, first, sizeof first - 1));
	     ++*ret_count) {
		struct certificate_facts facts;
		size_t left = rest.size - (size_t)(at - rest.data);
		const char *end = memmem(at, left, last, sizeof last - 1);
		size_t size = end ? (size_t)(end - at) + sizeof last - 1 : left;
		result = trust_describe(slice_make(at, size), *ret_count ? &facts : ret_first, error);
		rest = slice_make(at + size, left - size);
	}
	if (result)
		return error_cause(error, ERR_VALIDATION, "certificate %zu cannot be read", *ret_count);
	return *ret_count ? OK : error_cause(error, ERR_VALIDATION, "the file contains no certificate");
}

void probe_webhook_roots(struct trial *trial)
{
	const char *path = trial->settings->webhook_roots;
	struct certificate_facts facts;
	struct error error = {0};
	size_t count = 0;
	BUF_AUTO struct buf pem;
	buf_init(&pem, PEM_MAX);
	if (!*path)
		return;
	probe_begin(trial, "webhooks", "webhook.roots");
	int result = file_read_whole(path, &pem, &error);
	if (!result)
		result = buf_check(&pem);
	if (!result)
		result = describe_all(buf_slice(&pem), &facts, &count, &error);
	if (result)
		probe_end(trial, true, "%s: %s", path, error_reason(&error, result));
	else
		probe_end(trial, false, "%s: %zu trusted roots for webhook receivers, the first is %s",
		          path, count, facts.name);
}

/* ---- reports ---- */

#define PDF_MAX ((size_t)64 << 20)
#define NOW_US INT64_C(1795252502000000)

/* Fills the facts of a sample report, in scripts of several fonts. */
static void fill_page(struct report_facts *facts, struct report_configuration *configuration,
                      struct report_event *event)
{
	static const struct sha256 digest = {{0x5e, 0xa1}};
	*configuration = (struct report_configuration){
		.facts = {.channel_id = "chn_trial",
	              .version = 1,
	              .sealed_at_us = NOW_US,
	              .modality = MODALITY_HASH_ONLY,
	              .name = "Prueba ñ · Proof · Δοκιμή · Проба",
	              .description = "記録 · 기록 · 记录 · تجربة · ניסיון · परीक्षण",
	              .declarant = "constancia config check"},
		.digest = digest,
	};
	*event = (struct report_event){
		.sequence = 1,
		.received_at_us = NOW_US,
		.occurred_at_us = TIME_NONE,
		.client_ref = slice_of("記録-1"),
		.hash_algorithm = HASH_SHA256,
		.hash = digest.bytes,
	};
	*facts = (struct report_facts){
		.mode = MODE_TEST,
		.service_name = "Constancia",
		.certification_id = "TEST-CERT-2026-0000001",
		.verification_code = "SVC-TEST-2026-0000-0000",
		.verification_url = "https://constancia.example/verify/SVC-TEST-2026-0000-0000",
		.requested_at_us = NOW_US,
		.issued_at_us = NOW_US,
		.channel_id = "chn_trial",
		.modality = MODALITY_HASH_ONLY,
		.configurations = configuration,
		.configuration_rows = 1,
		.configuration_count = 1,
		.from_us = TIME_NONE,
		.to_us = TIME_NONE,
		.seq_from = 1,
		.seq_to = 1,
		.first_sequence = 1,
		.last_sequence = 1,
		.event_count = 1,
		.first_received_at_us = NOW_US,
		.last_received_at_us = NOW_US,
		.chain_hash_before = digest,
		.first_chain_hash = digest,
		.last_chain_hash = digest,
		.events = event,
		.event_rows = 1,
		.archive_name = "TEST-CERT-2026-0000001-evidence.zip",
		.archive_size_bytes = 1,
		.archive_digest = digest,
	};
}

/* Returns whether the PDF embeds the font. In a PDF the name of a font follows the tag of its
 * subset and ends where its letters end. */
static bool has_font(struct slice pdf, const char *name)
{
	size_t size = strlen(name);
	for (const char *at; (at = memmem(pdf.data, pdf.size, name, size));) {
		pdf = slice_make(at + size, pdf.size - (size_t)(at + size - pdf.data));
		if (at[-1] == '+' && pdf.size && !isalnum((unsigned char)*pdf.data) && *pdf.data != '-')
			return true;
	}
	return false;
}

/* Checks that every font was used: for an unreadable font the renderer substitutes another font or
 * boxes. */
static int find_fonts(const char *path, size_t *ret_size, struct error *error)
{
	static const char *const names[] = {
		"NotoSans-Regular", "NotoSans-Bold",       "NotoSerif-Regular",     "NotoSerif-Bold",
		"DejaVuSansMono",   "DejaVuSansMono-Bold", "NotoSansCJKjp-Regular", "DejaVuSans"};
	BUF_AUTO struct buf pdf;
	buf_init(&pdf, PDF_MAX);
	int result = file_read_whole(path, &pdf, error);
	if (!result)
		result = buf_check(&pdf);
	for (size_t i = 0; !result && i < sizeof names / sizeof *names; i++)
		if (!has_font(buf_slice(&pdf), names[i]))
			result = error_cause(
				error, ERR_IO,
				"a report was rendered without the font %s, which is installed but does "
				"not work; reinstall its package",
				names[i]);
	*ret_size = pdf.size;
	return result;
}

static int render_page(const struct renderer *renderer, size_t *ret_size, struct error *error)
{
	struct report_configuration configuration;
	struct report_event event;
	struct report_facts facts;
	const char *place = getenv("TMPDIR");
	char directory[PATH_MAX - 16], path[PATH_MAX];
	snprintf(directory, sizeof directory, "%s/constancia-XXXXXX", place && *place ? place : "/tmp");
	if (!mkdtemp(directory))
		return error_cause(error, ERR_IO, "%s: %s", directory, strerror(errno));
	snprintf(path, sizeof path, "%s/report.pdf", directory);
	fill_page(&facts, &configuration, &event);
	int result = renderer_draw(renderer, &facts, LANGUAGE_SPANISH, path, error);
	if (!result)
		result = find_fonts(path, ret_size, error);
	(void)unlink(path);
	(void)rmdir(directory);
	return result;
}

void probe_renderer(struct trial *trial)
{
	struct renderer renderer = {.program = -1};
	struct error error = {0};
	size_t size = 0;
	probe_begin(trial, "reports", NULL);
	int result = renderer_find(&renderer, &error);
	if (!result)
		result = render_page(&renderer, &size, &error);
	renderer_close(&renderer);
	if (result)
		probe_fail(trial, result, &error);
	else
		probe_end(trial, false, "rendered a report of %zu KiB in seven scripts", size / 1024);
}
