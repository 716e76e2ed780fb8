/* The JSON document of an event. */
#include "base/base64.h"
#include "base/json.h"
#include "ledger/receipt_statement.h"
#include "service/service.h"

/* Runs for every registration. Members are in the order of the API. */
void event_json(const struct event *event, struct buf *out)
{
	const struct declaration *declared = &event->declaration;
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "event_id", event->event_id);
	json_text(&writer, "channel_id", event->channel_id);
	json_slice(&writer, "client_ref", declared->client_ref);
	json_integer(&writer, "sequence", event->sequence);
	json_time(&writer, "received_at", event->received_at_us);
	json_time(&writer, "occurred_at", declared->occurred_at_us);
	json_hex(&writer, "hash", declared->hash, hash_algorithm_size(declared->hash_algorithm));
	json_text(&writer, "hash_alg", hash_algorithm_text(declared->hash_algorithm));
	json_text(&writer, "modality", modality_text(declared->modality));
	json_hex(&writer, "chain_hash", event->chain_hash.bytes, SHA256_SIZE);
	json_text(&writer, "status", event_status_text(event->status));
	bool sealed = event->segment_id[0] != '\0';
	json_begin_object(&writer, "timestamp");
	json_text(&writer, "type",
	          event->mode == MODE_TEST ? "simulated"
	          : sealed                 ? "batch"
	                                   : "pending");
	json_text(&writer, "reference", sealed ? event->segment_id : NULL);
	json_time(&writer, "sealed_at", event->sealed_at_us);
	json_end_object(&writer);
	json_integer(&writer, "config_version", event->config_version);
	json_text(&writer, "mode", mode_text(event->mode));
	json_end_object(&writer);
}

static void write_base64(struct json_writer *writer, const char *name, const void *data,
                         size_t size)
{
	json_raw(writer, name, slice_of("\""));
	buf_add_base64(writer->out, slice_make(data, size));
	buf_add_byte(writer->out, '"');
}

static void write_receipt(struct json_writer *writer, const struct receipt_signature *receipt)
{
	json_begin_object(writer, "receipt");
	json_integer(writer, "index", receipt->index);
	write_base64(writer, "key", receipt->key, sizeof receipt->key);
	json_text(writer, "origin", receipt->origin);
	json_begin_array(writer, "path");
	for (size_t i = 0; i < receipt->path_count; i++)
		write_base64(writer, NULL, receipt->path[i].bytes, SHA256_SIZE);
	json_end_array(writer);
	json_time(writer, "seal_by", receipt->seal_by_us);
	write_base64(writer, "signature", receipt->signature, sizeof receipt->signature);
	json_integer(writer, "size", receipt->tree_size);
	json_end_object(writer);
}

void registered_event_json(const struct event *event, const struct receipt_signature *receipt,
                           struct buf *out)
{
	event_json(event, out);
	if (buf_check(out))
		return;
	out->size--; /* continue the object */
	struct json_writer writer = {.out = out, .comma = true};
	if (receipt)
		write_receipt(&writer, receipt);
	else
		json_null(&writer, "receipt");
	json_end_object(&writer);
}
