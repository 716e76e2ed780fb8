#include "service/notice_sample.h"

#include <string.h>

#define PLACEHOLDER "{channel_id}"

bool notice_sample_find_type(struct slice name, enum notice_type *ret_type)
{
	for (int type = 0; type <= NOTICE_WEBHOOK_TEST; type++)
		if (slice_is(name, notice_type_text((enum notice_type)type))) {
			*ret_type = (enum notice_type)type;
			return true;
		}
	return false;
}

void notice_sample_list_types(struct buf *out)
{
	for (int type = 0; type <= NOTICE_WEBHOOK_TEST; type++)
		buf_printf(out, "%s%s", type ? ", " : "", notice_type_text((enum notice_type)type));
}

void notice_sample_write(enum notice_type type, const char *channel_id, struct buf *out)
{
	static const char *const samples[] = {
#define NOTICE_SAMPLE(name, json) [NOTICE_##name] = json,
#include "service/notice_samples.def"
#undef NOTICE_SAMPLE
	};
	const char *rest = samples[type];
	for (const char *at; (at = strstr(rest, PLACEHOLDER)); rest = at + strlen(PLACEHOLDER)) {
		buf_add(out, rest, (size_t)(at - rest));
		buf_add_slice(out, slice_of(channel_id));
	}
	buf_add_slice(out, slice_of(rest));
}
