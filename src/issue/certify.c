#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "evidence/evidence_chain.h"
#include "issue/certify.h"
#include "issue/certify_range.h"
#include "issue/links.h"
#include "service/read_only.h"
#include "service/service.h"
#include "store/certifications/certifications.h"
#include "store/certifications/idempotency.h"

#define CERTIFY_MEMORY_MAX ((size_t)64 << 20) /* a page of certifications with many parts each */

/* ---- the record ---- */

static void write_link(const struct service *service, const struct certification *certification,
                       const struct document *document, const char *member, int64_t now_us,
                       struct json_writer *writer)
{
	BUF_AUTO struct buf link;
	buf_init(&link, 4096);
	if (!document) {
		json_null(writer, member);
		return;
	}
	document_link(service, certification->certification_id, document, now_us, &link);
	writer->out->failed |= link.failed; /* a failed response is better than a broken link */
	json_slice(writer, member, buf_slice(&link));
}

static const char *language_tag(enum language language)
{
	return language == LANGUAGE_SPANISH ? "es" : "en";
}

static void write_range(const struct certification_range *range, struct json_writer *writer)
{
	json_begin_object(writer, "range");
	json_time(writer, "from", range->from_us);
	json_time(writer, "to", range->to_us);
	if (range->seq_from) {
		json_integer(writer, "seq_from", range->seq_from);
		json_integer(writer, "seq_to", range->seq_to);
	} else {
		json_null(writer, "seq_from");
		json_null(writer, "seq_to");
	}
	json_end_object(writer);
}

/* Writes the documents of one kind, in the order of the list. */
static void write_documents(const struct service *service,
                            const struct certification *certification,
                            const struct document *documents, size_t count, enum document_kind kind,
                            int64_t now_us, struct json_writer *writer)
{
	for (size_t i = 0; i < count; i++) {
		const struct document *document = &documents[i];
		if (document->kind != kind)
			continue;
		json_begin_object(writer, NULL);
		if (kind == DOCUMENT_REPORT) {
			json_begin_array(writer, "languages");
			json_text(writer, NULL, language_tag(document->language));
			json_end_array(writer);
		} else {
			json_text(writer, "name", document->name);
		}
		write_link(service, certification, document, "url", now_us, writer);
		json_hex(writer, "sha256", document->sha256.bytes, SHA256_SIZE);
		if (kind == DOCUMENT_PART)
			json_integer(writer, "bytes", document->size_bytes);
		json_end_object(writer);
	}
}

static const struct document *pick(const struct document *documents, size_t count,
                                   enum document_kind kind, enum language language)
{
	for (size_t i = 0; i < count; i++)
		if (documents[i].kind == kind &&
		    (kind != DOCUMENT_REPORT || documents[i].language == language))
			return &documents[i];
	return NULL;
}

/* The evidence record is separate from the issued documents and changes with each renewal. */
static void write_evidence_record(const struct service *service,
                                  const struct certification *certification,
                                  const struct evidence_offer *offer, struct json_writer *writer)
{
	char url[4096];
	snprintf(url, sizeof url, "%s/v1/certifications/%s/evidence-record",
	         service->settings->service_public_url, certification->certification_id);
	json_text(writer, "evidence_record_url", offer ? url : NULL);
	if (offer && offer->has_digest)
		json_hex(writer, "evidence_record_sha256", offer->sha256.bytes, SHA256_SIZE);
	else
		json_null(writer, "evidence_record_sha256");
	json_time(writer, "evidence_record_since", offer ? offer->exists_since_us : TIME_NONE);
	json_time(writer, "evidence_record_renew_at", offer ? offer->renew_at_us : TIME_NONE);
}

static void write_record(const struct service *service, const struct certification *certification,
                         const struct document *documents, size_t count,
                         const struct evidence_offer *offer, enum language language, int64_t now_us,
                         struct json_writer *writer)
{
	bool completed = certification->status == CERTIFICATION_COMPLETED;
	json_begin_object(writer, NULL);
	json_text(writer, "certification_id", certification->certification_id);
	json_text(writer, "channel_id", certification->channel_id);
	json_text(writer, "status", certification_status_text(certification->status));
	if (certification->status == CERTIFICATION_PROCESSING)
		json_number(writer, "progress", (double)certification->progress_permille / 1000);
	else
		json_null(writer, "progress");
	json_time(writer, "requested_at", certification->requested_at_us);
	json_time(writer, "completed_at", certification->completed_at_us);
	write_range(&certification->range, writer);
	json_integer(writer, "event_count",
	             certification->last_sequence - certification->first_sequence + 1);
	json_raw(writer, "config_versions_in_range", slice_of(certification->config_versions));
	write_link(service, certification, pick(documents, count, DOCUMENT_REPORT, language),
	           "report_url", now_us, writer);
	json_begin_array(writer, "reports");
	write_documents(service, certification, documents, count, DOCUMENT_REPORT, now_us, writer);
	json_end_array(writer);
	write_link(service, certification, pick(documents, count, DOCUMENT_EVIDENCE, language),
	           "evidence_url", now_us, writer);
	write_evidence_record(service, certification, offer, writer);
	json_text(writer, "verification_code", completed ? certification->verification_code : NULL);
	json_text(writer, "mode", mode_text(certification->mode));
	json_begin_array(writer, "content_parts");
	write_documents(service, certification, documents, count, DOCUMENT_PART, now_us, writer);
	json_end_array(writer);
	json_end_object(writer);
}

static int add_record(struct service *service, const struct certification *certification,
                      const struct evidence_offer *offer, enum language language,
                      struct arena *arena, struct json_writer *writer, struct error *error)
{
	struct document *documents = NULL;
	size_t count = 0;
	int result = OK;
	if (certification->status == CERTIFICATION_COMPLETED)
		result =
			store_list_documents(service->store, certification->account,
		                         certification->certification, arena, &documents, &count, error);
	if (!result)
		write_record(service, certification, documents, count, offer, language,
		             store_now_us(service->store), writer);
	return result;
}

/* A record that cannot be built does not prevent access to the issued documents. */
static int find_offer(struct service *service, const struct certification *certification,
                      struct evidence_offer *offer, bool *ret_found, struct error *error)
{
	BUF_AUTO struct buf record;
	buf_init(&record, EVIDENCE_RECORD_MAX);
	int result = certification_evidence_record(service, certification, &record, offer, error);
	if (result == ERR_CORRUPT)
		log_error("evidence_record_damaged", "certification_id", certification->certification_id,
		          "cause", error_reason(error, result));
	*ret_found = !result;
	return result == ERR_NOT_FOUND || result == ERR_CORRUPT ? OK : result;
}

int certification_get_evidence_record(struct service *service, const struct key_identity *key,
                                      struct slice id, struct buf *out, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CERTIFY_MEMORY_MAX);
	struct certification certification;
	struct evidence_offer offer;
	int result = store_find_certification(service->store, key->account, key->chain, id, &arena,
	                                      &certification, error);
	if (result)
		return result;
	if (certification.mode == MODE_TEST)
		return error_set(error, ERR_NOT_FOUND, MSG_CERTIFICATION_RECORD_TEST, NULL);
	result = certification_evidence_record(service, &certification, out, &offer, error);
	return result == ERR_NOT_FOUND
	           ? error_set(error, ERR_NOT_FOUND, MSG_CERTIFICATION_RECORD_PENDING, NULL)
	           : result;
}

/* ---- waiting ---- */

#define EVENTS_PER_SECOND 100000 /* of one certification, on a slow machine */
#define WAIT_SHARE 10            /* of the time that has passed */

int64_t certification_wait_seconds(const struct certification *certification, int64_t now_us)
{
	if (certification->status != CERTIFICATION_PROCESSING)
		return 0;
	int64_t events = certification->last_sequence - certification->first_sequence + 1;
	int64_t wait = 1 + events / EVENTS_PER_SECOND;
	int64_t passed = (now_us - certification->requested_at_us) / US_PER_SECOND / WAIT_SHARE;
	int64_t pause_us = certification->worked_on ? 0 : certification->next_attempt_at_us - now_us;
	int64_t pause = pause_us > 0 ? (pause_us + US_PER_SECOND - 1) / US_PER_SECOND : 0;
	wait = passed > wait ? passed : wait;
	wait = pause > wait ? pause : wait;
	return wait < CERTIFICATION_WAIT_MAX ? wait : CERTIFICATION_WAIT_MAX;
}

static void give_wait(const struct certification *certification, int64_t now_us,
                      int64_t *ret_wait_seconds)
{
	if (ret_wait_seconds)
		*ret_wait_seconds = certification_wait_seconds(certification, now_us);
}

/* ---- acceptance ---- */

static int accept(struct service *service, struct store *store, struct certification *certification,
                  bool sealed, struct error *error)
{
	char prefix[16];
	size_t size = 0;
	for (const char *letter = service->settings->service_prefix;
	     *letter && size < sizeof prefix - 1; letter++)
		prefix[size++] = (char)toupper((unsigned char)*letter);
	prefix[size] = '\0';
	int result = store_accept_certification(
		store, prefix, service->settings->certification_open_per_account, certification, error);
	if (result)
		return result;
	/* A round costs a timestamp, so it is started only if necessary. */
	if (certification->mode == MODE_LIVE && !sealed)
		service_wake(service, WAKE_SEALER);
	service_wake(service, WAKE_ISSUER);
	return OK;
}

static int accept_new(struct service *service, const struct certification_order *order,
                      struct buf *out, int64_t *ret_wait_seconds, struct error *error)
{
	struct certification certification;
	BUF_AUTO struct buf versions;
	buf_init(&versions, CONFIG_VERSIONS_TEXT_MAX);
	bool sealed = false;
	int result = certification_freeze(service, order, &certification, &versions, &sealed, error);
	if (!result)
		result = certification_expect_bytes(service, &certification, error);
	if (!result)
		result = accept(service, order->store ? order->store : service->store, &certification,
		                sealed, error);
	if (result)
		return result;
	struct json_writer writer = {.out = out};
	write_record(service, &certification, NULL, 0, NULL, order->language,
	             certification.requested_at_us, &writer);
	certification.next_attempt_at_us = certification.requested_at_us;
	give_wait(&certification, certification.requested_at_us, ret_wait_seconds);
	return OK;
}

/* ---- reading ---- */

static int write_current_state(struct service *service, const struct certification *certification,
                               enum language language, struct arena *arena, struct buf *out,
                               int64_t *ret_wait_seconds, struct error *error)
{
	give_wait(certification, store_now_us(service->store), ret_wait_seconds);
	struct json_writer writer = {.out = out};
	struct evidence_offer offer;
	bool offered = false;
	int result = OK;
	if (certification->status == CERTIFICATION_COMPLETED)
		result = find_offer(service, certification, &offer, &offered, error);
	return result ? result
	              : add_record(service, certification, offered ? &offer : NULL, language, arena,
	                           &writer, error);
}

int certification_get(struct service *service, const struct key_identity *key, struct slice id,
                      enum language language, struct buf *out, int64_t *ret_wait_seconds,
                      struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CERTIFY_MEMORY_MAX);
	struct certification certification;
	int result = store_find_certification(service->store, key->account, key->chain, id, &arena,
	                                      &certification, error);
	return result ? result
	              : write_current_state(service, &certification, language, &arena, out,
	                                    ret_wait_seconds, error);
}

int certification_request(struct service *service, const struct certification_order *order,
                          struct buf *out, bool *ret_replayed, int64_t *ret_wait_seconds,
                          struct error *error)
{
	const struct key_identity *key = order->key;
	*ret_replayed = false;
	int result = read_only_refuse(service, error);
	if (result)
		return result;
	if (!order->idempotency_key)
		return accept_new(service, order, out, ret_wait_seconds, error);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CERTIFY_MEMORY_MAX);
	struct certification before;
	for (;;) {
		result = store_find_repeated(service->store, key->account, key->chain,
		                             order->idempotency_key, store_now_us(service->store),
		                             order->range, order->seal_history, &arena, &before, error);
		if (result != ERR_NOT_FOUND)
			break;
		result = accept_new(service, order, out, ret_wait_seconds, error);
		if (result != ERR_CONFLICT) /* otherwise a concurrent request was faster */
			return result;
	}
	*ret_replayed = !result;
	return result ? result
	              : write_current_state(service, &before, order->language, &arena, out,
	                                    ret_wait_seconds, error);
}

/* Lists the records of a page, in either order. */
static int list_offers(struct service *service, const struct key_identity *key,
                       const struct certification *items, size_t count, struct arena *arena,
                       struct evidence_offers *offers, struct error *error)
{
	int64_t first = INT64_MAX, last = 0;
	*offers = (struct evidence_offers){.room = count};
	for (size_t i = 0; i < count; i++)
		if (items[i].status == CERTIFICATION_COMPLETED) {
			first = items[i].certification < first ? items[i].certification : first;
			last = items[i].certification > last ? items[i].certification : last;
		}
	if (last == 0)
		return OK;
	offers->items = arena_alloc(arena, count * sizeof *offers->items);
	return offers->items ? certification_list_offers(service, key->account, key->chain, first, last,
	                                                 offers, error)
	                     : ERR_NO_MEMORY;
}

static int compare_offer(const void *certification, const void *offer)
{
	int64_t wanted = ((const struct certification *)certification)->certification;
	int64_t found = ((const struct evidence_offer *)offer)->certification;
	return (wanted > found) - (wanted < found);
}

static const struct evidence_offer *find_page_offer(const struct evidence_offers *offers,
                                                    const struct certification *certification)
{
	if (offers->count == 0 || certification->status != CERTIFICATION_COMPLETED)
		return NULL;
	return bsearch(certification, offers->items, offers->count, sizeof *offers->items,
	               compare_offer);
}

int certification_list(struct service *service, const struct key_identity *key, const char *status,
                       const struct list_page *page, enum language language, struct buf *out,
                       bool *ret_more, int64_t *ret_last, struct error *error)
{
	enum certification_status wanted = CERTIFICATION_PROCESSING;
	if (status && !certification_status_parse(slice_of(status), &wanted))
		return error_cause(error, ERR_VALIDATION, "status %s", status);
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CERTIFY_MEMORY_MAX);
	struct certification *items;
	size_t count;
	bool more;
	int result = store_list_certifications(service->store, key->account, key->chain,
	                                       status ? (int)wanted : -1, page, &arena, &items, &count,
	                                       &more, error);
	struct evidence_offers offers;
	if (!result)
		result = list_offers(service, key, items, count, &arena, &offers, error);
	ARENA_AUTO struct arena documents;
	arena_init(&documents, CERTIFY_MEMORY_MAX);
	struct json_writer writer = {.out = out};
	for (size_t i = 0; i < count && !result; i++) {
		arena_reset(&documents);
		result = add_record(service, &items[i], find_page_offer(&offers, &items[i]), language,
		                    &documents, &writer, error);
	}
	if (result)
		return result;
	*ret_more = more;
	*ret_last = count ? items[count - 1].certification : page->past;
	return OK;
}
