/* Identifiers of events, which contain their chain and sequence. */
#include <assert.h>

#include "ledger/ledger.h"

static const char DIGITS[] = ID_DIGITS;

#define EVENT_PREFIX "evt_"
#define CHANNEL_PREFIX "chn_"
#define PREFIX_SIZE (sizeof EVENT_PREFIX - 1) /* of both modes */

static size_t make_prefix(const char *channel_id, enum mode mode, char id[ID_SIZE])
{
	const char *own = strchr(channel_id, '_');
	own = own ? own + 1 : channel_id;
	size_t size = strnlen(own, ID_SIZE - 16);
	memcpy(id, EVENT_PREFIX, PREFIX_SIZE);
	memcpy(id + PREFIX_SIZE, own, size);
	id[PREFIX_SIZE + size] = mode == MODE_TEST ? 't' : 'l';
	return PREFIX_SIZE + 1 + size;
}

void event_id_make(const char *channel_id, enum mode mode, int64_t sequence, char id[ID_SIZE])
{
	size_t at = make_prefix(channel_id, mode, id);
	char digits[16];
	size_t count = 0;
	for (int64_t rest = sequence; rest > 0; rest /= 32)
		digits[count++] = DIGITS[rest % 32];
	assert(at + count < ID_SIZE);
	while (count > 0)
		id[at++] = digits[--count];
	id[at] = '\0';
}

int64_t event_id_sequence(struct slice id, const char *channel_id, enum mode mode)
{
	char expected[ID_SIZE];
	size_t at = make_prefix(channel_id, mode, expected);
	if (id.size <= at || id.size > at + 8 || memcmp(id.data, expected, at) != 0)
		return 0;
	int64_t sequence = 0;
	for (size_t i = at; i < id.size; i++) {
		const char *digit = memchr(DIGITS, id.data[i], 32);
		if (!digit || (i == at && *digit == '0'))
			return 0;
		sequence = sequence * 32 + (digit - DIGITS);
	}
	return sequence;
}

bool event_id_read(struct slice id, char ret_channel_id[ID_SIZE], enum mode *ret_mode,
                   int64_t *ret_sequence)
{
	if (id.size <= PREFIX_SIZE + ID_OWN_SIZE)
		return false;
	memcpy(ret_channel_id, CHANNEL_PREFIX, PREFIX_SIZE);
	memcpy(ret_channel_id + PREFIX_SIZE, id.data + PREFIX_SIZE, ID_OWN_SIZE);
	ret_channel_id[PREFIX_SIZE + ID_OWN_SIZE] = '\0';
	*ret_mode = id.data[PREFIX_SIZE + ID_OWN_SIZE] == 't' ? MODE_TEST : MODE_LIVE;
	*ret_sequence = event_id_sequence(id, ret_channel_id, *ret_mode);
	return *ret_sequence > 0;
}
