/* Finds an event by its identifier, and checks its content. */
#include <stdio.h>
#include <stdlib.h>

#include "service/service.h"
#include "store/accounts/accounts.h"

#define PIECE_SIZE ((size_t)64 * 1024)

static int no_event(struct slice id, struct error *error)
{
	char shown[ID_SIZE];
	snprintf(shown, sizeof shown, "%.*s", (int)id.size, id.data);
	return error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_EVENT, shown, NULL);
}

int event_find(struct store *store, struct slice id, struct arena *arena, struct event_found *ret,
               struct error *error)
{
	struct channel_record channel;
	char channel_id[ID_SIZE];
	enum mode mode;
	int64_t sequence;
	if (!event_id_read(id, channel_id, &mode, &sequence))
		return no_event(id, error);
	int result = store_find_channel(store, slice_of(channel_id), arena, &channel, error);
	if (!result) {
		ret->account = channel.account;
		ret->chain = channel.channel * 2 + mode;
		result =
			store_get_event(store, ret->account, ret->chain, sequence, arena, &ret->event, error);
	}
	return result == ERR_NOT_FOUND ? no_event(id, error) : result;
}

static int digest_object(struct content_store *store, const char *object, struct sha256 *ret_digest,
                         struct error *error)
{
	struct content_reader *reader;
	uint64_t size;
	char *piece = malloc(PIECE_SIZE);
	struct digest_stream *digest = piece ? digest_begin() : NULL;
	int64_t got =
		digest ? content_read_begin(store, object, 0, &reader, &size, error) : ERR_NO_MEMORY;
	if (got == 0) {
		while ((got = content_read(reader, piece, PIECE_SIZE, error)) > 0)
			digest_add(digest, piece, (size_t)got);
		content_read_end(reader);
	}
	free(piece);
	if (got == 0)
		*ret_digest = digest_end(digest);
	else if (digest)
		digest_cancel(digest);
	return (int)got;
}

int event_check_content(struct content_store *store, const struct event *event, struct error *error)
{
	struct sha256 digest;
	int result = OK;
	if (event->content_object)
		result = digest_object(store, event->content_object, &digest, error);
	else
		digest = sha256_of(event->content.data, event->content.size);
	if (!result && memcmp(digest.bytes, event->declaration.hash, SHA256_SIZE) != 0)
		result = error_cause(error, ERR_CORRUPT, "the content of %s (%s) does not match its hash",
		                     event->event_id,
		                     event->content_object ? event->content_object : "in the store");
	return result;
}
