/* GET /v1/channel and /v1/account/balance. */
#include "http/internal.h"

/* All versions of its configuration, each with its longest texts, every byte of them escaped. */
#define CHANNEL_OUT_MAX ((size_t)(CONFIG_VERSION_MAX + 1) * 10500)

static void write_config(struct json_writer *writer, const char *name,
                         const struct config_facts *facts)
{
	json_begin_object(writer, name);
	json_integer(writer, "version", facts->version);
	json_time(writer, "sealed_at", facts->sealed_at_us);
	json_text(writer, "modality", modality_text(facts->modality));
	json_text(writer, "name", facts->name);
	json_text(writer, "description", facts->description ? facts->description : "");
	json_text(writer, "declarant", facts->declarant);
	json_text(writer, "supplementary_info", facts->supplementary_info);
	json_end_object(writer);
}

static const char *mode_note(enum language language)
{
	if (language == LANGUAGE_SPANISH)
		return "Las cadenas real y de prueba de este canal están separadas: un evento registrado "
			   "con una clave de prueba no aparece en la cadena real ni tiene valor probatorio.";
	return "The live and test chains of this channel are separate: an event registered with a test "
		   "key does not appear in the live chain and has no probative value.";
}

static int get_channel(struct exchange *exchange, struct error *error)
{
	struct channel channel;
	int result = store_get_channel(exchange->service->store, exchange->key.account,
	                               exchange->key.channel, &exchange->arena, &channel, error);
	if (result)
		return result;
	if (!channel.config_count)
		return error_cause(error, ERR_CORRUPT, "a channel without a configuration");
	const struct config_facts *current = &channel.configs[channel.config_count - 1].facts;
	exchange->out.limit = CHANNEL_OUT_MAX;
	struct json_writer writer = {.out = &exchange->out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "channel_id", channel.channel_id);
	json_text(&writer, "name", current->name);
	json_text(&writer, "mode_note", mode_note(exchange->language));
	write_config(&writer, "current_config", current);
	json_begin_array(&writer, "config_versions");
	for (size_t i = 0; i < channel.config_count; i++)
		write_config(&writer, NULL, &channel.configs[i].facts);
	json_end_array(&writer);
	json_end_object(&writer);
	answer_out(exchange, 200);
	return 0;
}

static int get_balance(struct exchange *exchange, struct error *error)
{
	struct balance balance;
	int result =
		store_get_balance(exchange->service->store, exchange->key.account, &balance, error);
	if (result)
		return result;
	struct json_writer writer = {.out = &exchange->out};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "balance", balance.balance);
	json_boolean(&writer, "operational", balance.unpaid_events == 0 && balance.balance >= 0);
	json_integer(&writer, "unpaid_events", balance.unpaid_events);
	json_end_object(&writer);
	answer_out(exchange, 200);
	return 0;
}

const struct operation operation_get_channel = {.work = get_channel};
const struct operation operation_get_balance = {.work = get_balance};
