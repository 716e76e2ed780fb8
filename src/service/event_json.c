/* The JSON document of an event. */
#include "base/json.h"
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
