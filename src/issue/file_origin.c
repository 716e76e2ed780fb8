#include "issue/file_origin.h"

#include <stdarg.h>

#include "base/json.h"
#include "issue/check_file.h"
#include "store/certifications/certifications.h"
#include "store/evidence/signer_records.h"
#include "verify/verifier.h"
#include "verify/verify.h"

#define LOOKUP_MEMORY_MAX ((size_t)64 << 20)
#define SIGNERS_MEMORY_MAX ((size_t)64 << 20)

struct judging {
	struct service *service;
	const struct sha256 *digest;
	struct arena *arena;
	const struct signer_record *signers;
	size_t signer_count;
	struct file_check *check;
	bool was_valid; /* according to the verifier */
	size_t files;   /* files with an origin */
	bool failed;    /* out of memory */
};

/* ---- the tree ---- */

/* Adds a member, or replaces the member of that name. */
static struct json *put(struct judging *judging, struct json *object, const char *name,
                        enum json_type type, const char *text)
{
	struct json *item = name ? json_member(object, name) : NULL;
	struct json **end = &object->first;
	while (!item && *end)
		end = &(*end)->next;
	if (!item) {
		item = arena_alloc(judging->arena, sizeof *item);
		judging->failed |= !item;
		if (!item)
			return NULL;
		*end = item;
		object->count++;
	}
	*item = (struct json){.type = type, .name = slice_of(name ? name : ""), .next = item->next};
	item->text = slice_of(text ? text : "");
	return item;
}

static void put_truth(struct judging *judging, const char *name, bool value)
{
	(void)put(judging, judging->check->verification, name, value ? JSON_TRUE : JSON_FALSE, NULL);
}

/* Adds a finding or warning about a file: an entry of the table and the values of its
 * placeholders. */
#define say(judging, list, path, finding, ...)                                                     \
	say_filled(judging, list, path, finding, finding##_EN, finding##_ES, ##__VA_ARGS__)

__attribute__((format(printf, 5, 7), format(printf, 6, 7))) static void say_filled(
	struct judging *judging, const char *list, struct slice path, enum finding finding,
	const char *english, const char *spanish, ...)
{
	struct error texts = {0};
	va_list places, again;
	va_start(places, spanish);
	va_copy(again, places);
	(void)finding_set_list(&texts, ERR_INVALID_EVIDENCE, finding, english, spanish, places, again);
	va_end(again);
	va_end(places);
	struct json *all = json_member(judging->check->verification, list);
	if (!all || all->type != JSON_ARRAY)
		all = put(judging, judging->check->verification, list, JSON_ARRAY, NULL);
	struct json *item = all ? put(judging, all, NULL, JSON_OBJECT, NULL) : NULL;
	struct json *named = item ? put(judging, item, "path", JSON_STRING, NULL) : NULL;
	const char *what = arena_text(judging->arena, texts.english);
	const char *what_es = arena_text(judging->arena, texts.spanish);
	judging->failed |= !named || !what || !what_es;
	if (judging->failed)
		return;
	bool warns = strcmp(list, "warnings") == 0;
	named->text = path;
	(void)put(judging, item, "code", JSON_STRING, finding_code(finding));
	(void)put(judging, item, "detail", JSON_NULL, NULL);
	(void)put(judging, item, "severity", JSON_STRING,
	          verify_severity_text(warns ? VERIFY_WARNING : VERIFY_WRONG));
	(void)put(judging, item, "what", JSON_STRING, what);
	(void)put(judging, item, "what_es", JSON_STRING, what_es);
	(void)put(judging, item, "where", JSON_STRING, "");
}

static bool is_true(const struct json *object, const char *name)
{
	const struct json *member = json_member(object, name);
	return member && member->type == JSON_TRUE;
}

static struct slice text_of(const struct json *object, const char *name)
{
	struct slice text = {"", 0};
	json_get_text(object, name, &text);
	return text;
}

/* ---- who signed ---- */

static const struct signer_record *find_signer(const struct judging *judging, struct slice hex)
{
	struct sha256 sha256;
	if (!hex_decode(hex, sha256.bytes, SHA256_SIZE))
		return NULL;
	for (size_t i = 0; i < judging->signer_count; i++)
		if (sha256_equal(&judging->signers[i].sha256, &sha256))
			return &judging->signers[i];
	return NULL;
}

/* Returns the signer's name in the verifier's result. */
static struct slice name_signer(const struct judging *judging, struct slice hex)
{
	const struct json *list = json_member(judging->check->verification, "signers");
	for (const struct json *item = list && list->type == JSON_ARRAY ? list->first : NULL; item;
	     item = item->next)
		if (slice_equal(text_of(item, "sha256"), hex))
			return text_of(item, "name");
	return slice_of("");
}

/* Returns whether a signature with one of the service's keys is valid for its time; otherwise adds
 * a finding. */
static bool judge_time(struct judging *judging, const struct signer_record *signer,
                       const struct json *file, struct slice path)
{
	int64_t signed_us;
	char from[TIME_TEXT_SIZE], until[TIME_TEXT_SIZE];
	struct slice signed_at = text_of(file, "signed_at");
	bool is_stamped = !time_parse(signed_at, "signed_at", &signed_us, NULL);
	bool has_ended = signer->used_until_us != TIME_NONE;
	time_format(signer->used_from_us, from);
	const char *reason = signer->reason ? signer->reason : "";
	if (has_ended)
		time_format(signer->used_until_us, until);
	if (has_ended && !is_stamped)
		say(judging, "findings", path, FINDING_ORIGIN_KEY_ENDED_UNTIMED, until, reason);
	else if (has_ended && signed_us > signer->used_until_us)
		say(judging, "findings", path, FINDING_ORIGIN_KEY_ENDED, (int)signed_at.size,
		    signed_at.data, until, reason);
	else if (is_stamped && signed_us < signer->used_from_us - VERIFY_CLOCK_TOLERANCE_US)
		say(judging, "findings", path, FINDING_ORIGIN_KEY_NOT_YET, (int)signed_at.size,
		    signed_at.data, from);
	else
		return true;
	return false;
}

static bool judge_signer(struct judging *judging, const struct json *file, struct slice path)
{
	struct slice hex = text_of(file, "signer");
	const struct signer_record *signer = find_signer(judging, hex);
	struct slice name = name_signer(judging, hex);
	if (!signer && hex.size == 0)
		say(judging, "findings", path, FINDING_ORIGIN_NOT_SIGNED);
	else if (!signer)
		say(judging, "findings", path, FINDING_ORIGIN_OTHER_SIGNER, (int)name.size, name.data,
		    (int)hex.size, hex.data);
	if (!signer || !judge_time(judging, signer, file, path) || judging->failed)
		return false;
	if (judging->was_valid && signer->used_until_us == TIME_NONE)
		say(judging, "warnings", path, FINDING_ORIGIN_NOT_RECORDED);
	else if (judging->was_valid)
		say(judging, "warnings", path, FINDING_ORIGIN_NOT_RECORDED_KEY_ENDED,
		    signer->reason ? signer->reason : "");
	return true;
}

/* ---- each file ---- */

static int find_certification(struct judging *judging, struct json *file,
                              const struct sha256 *digest, bool *ret_found, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct certification certification;
	arena_init(&arena, LOOKUP_MEMORY_MAX);
	int result = store_find_issued(judging->service->store, slice_of(""), digest, &arena,
	                               &certification, error);
	if (result && result != ERR_NOT_FOUND)
		return result;
	*ret_found = !result;
	error_clear(error);
	const char *id = result ? NULL : arena_text(judging->arena, certification.certification_id);
	judging->failed |= !result && !id;
	(void)put(judging, file, "certification_id", id ? JSON_STRING : JSON_NULL, id);
	return OK;
}

static int judge_file(struct judging *judging, struct json *file, struct error *error)
{
	static const char *const origins[] = {"foreign", "signed", "issued"};
	struct slice path = text_of(file, "path"), kind = text_of(file, "kind");
	struct sha256 digest;
	bool is_whole = slice_is(path, VERIFIER_FILE), is_issued = false;
	if (is_whole && slice_is(kind, "container"))
		judging->check->is_container = true;
	if (is_whole)
		digest = *judging->digest;
	else if (!hex_decode(text_of(file, "sha256"), digest.bytes, SHA256_SIZE))
		return error_cause(error, ERR_UNAVAILABLE, "the verifier gave no digest of a file");
	int result = find_certification(judging, file, &digest, &is_issued, error);
	/* A container and an evidence record do not show who created them. */
	bool is_judged =
		is_issued || !(slice_is(kind, "container") || slice_is(kind, "evidence_record"));
	bool is_listed = slice_is(kind, "content_part") && is_true(file, "listed");
	enum file_origin origin = FILE_ISSUED;
	if (!result && is_judged && !is_issued)
		origin = is_listed || judge_signer(judging, file, path) ? FILE_SIGNED : FILE_FOREIGN;
	if (origin < judging->check->origin)
		judging->check->origin = origin;
	judging->files += is_judged;
	(void)put(judging, file, "origin", is_judged ? JSON_STRING : JSON_NULL,
	          is_judged ? origins[origin] : NULL);
	return result;
}

static int judge_files(struct judging *judging, struct error *error)
{
	const struct json *files = json_member(judging->check->verification, "files");
	int result = OK;
	for (struct json *file = files && files->type == JSON_ARRAY ? files->first : NULL;
	     file && !result; file = file->next)
		result = file->type == JSON_OBJECT
		             ? judge_file(judging, file, error)
		             : error_cause(error, ERR_UNAVAILABLE, "the verifier gave no list of files");
	return result;
}

/* Replaces the verifier's verdict, which does not consider the origin of files. */
static void put_verdict(struct judging *judging)
{
	static const struct {
		const char *name, *text;
	} sentences[] = {
		{"code", "not_issued"},
		{"en", "NOT VALID: this service did not issue this file, regardless of who signed it."},
		{"es",
	     "NO VÁLIDO: este servicio no ha emitido este fichero, con independencia de quién lo haya "
	     "firmado."},
	};
	struct json *verdict = put(judging, judging->check->verification, "verdict", JSON_OBJECT, NULL);
	for (size_t i = 0; verdict && i < sizeof sentences / sizeof *sentences; i++)
		(void)put(judging, verdict, sentences[i].name, JSON_STRING, sentences[i].text);
}

static void conclude(struct judging *judging)
{
	if (judging->files == 0)
		judging->check->origin = FILE_FOREIGN;
	if (judging->files == 0 && judging->was_valid)
		say(judging, "findings", slice_of(VERIFIER_FILE), FINDING_ORIGIN_NOTHING_SIGNED);
	if (judging->check->origin != FILE_FOREIGN)
		return;
	put_truth(judging, "trusted", false);
	if (judging->files == 0 && !judging->was_valid)
		return; /* it could not be checked, or is invalid anyway */
	if (judging->check->is_intact)
		put_verdict(judging);
	put_truth(judging, "valid", false);
	put_truth(judging, "could_not_check", false);
}

int file_origin_judge(struct service *service, const struct sha256 *digest, struct arena *arena,
                      struct file_check *check, struct error *error)
{
	ARENA_AUTO struct arena list;
	struct signer_record *signers;
	arena_init(&list, SIGNERS_MEMORY_MAX);
	struct judging judging = {
		.service = service,
		.digest = digest,
		.arena = arena,
		.check = check,
		.was_valid = is_true(check->verification, "valid"),
	};
	check->origin = FILE_ISSUED;
	check->is_intact = judging.was_valid || is_true(check->verification, "could_not_check");
	check->is_container = false;
	int result = store_list_signers(service->store, &list, &signers, &judging.signer_count, error);
	judging.signers = signers;
	if (!result)
		result = judge_files(&judging, error);
	if (!result)
		conclude(&judging);
	return !result && judging.failed ? ERR_NO_MEMORY : result;
}
