#include "ledger/notice.h"

#include <assert.h>

#include "base/json.h"

#define NOTICE_DATA_MAX 2048

void notice_list_init(struct notice_list *list, struct arena *arena)
{
	*list = (struct notice_list){.arena = arena};
	list->end = &list->first;
}

static void list_add(struct notice_list *list, enum notice_type type, const struct buf *data)
{
	struct ledger_notice *notice = arena_alloc(list->arena, sizeof *notice);
	char *copy = !buf_check(data) ? arena_copy(list->arena, data->data, data->size) : NULL;
	if (!notice || !copy) {
		list->failed = true;
		return;
	}
	notice->type = type;
	notice->data = slice_make(copy, data->size);
	*list->end = notice;
	list->end = &notice->next;
}

static void balance_low(struct notice_list *list, const struct ledger_threshold *threshold,
                        int64_t balance)
{
	assert(threshold->armed && balance <= threshold->credits); /* one notice for each crossing */
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_text(&writer, "threshold_id", threshold->threshold_id);
	json_integer(&writer, "threshold", threshold->credits);
	json_integer(&writer, "balance", balance);
	json_end_object(&writer);
	list_add(list, NOTICE_BALANCE_LOW, &data);
}

void notice_thresholds(struct notice_list *list, struct ledger_account *account)
{
	for (size_t i = 0; i < account->threshold_count; i++) {
		struct ledger_threshold *threshold = &account->thresholds[i];
		bool above = account->balance > threshold->credits;
		if (above == threshold->armed)
			continue;
		if (!above)
			balance_low(list, threshold, account->balance);
		threshold->armed = above;
		threshold->changed = true;
	}
}

void notice_exhausted(struct notice_list *list, const char *channel_id)
{
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_text(&writer, "channel_id", channel_id);
	json_end_object(&writer);
	list_add(list, NOTICE_BALANCE_EXHAUSTED, &data);
}

void notice_unpaid_limit(struct notice_list *list, const struct ledger_account *account)
{
	assert(account->balance <= 0 && account->unpaid_events == account->unpaid_limit);
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "unpaid_limit", account->unpaid_limit);
	json_integer(&writer, "unpaid_events", account->unpaid_events);
	json_integer(&writer, "unpaid_credits", account->unpaid_events);
	json_end_object(&writer);
	list_add(list, NOTICE_UNPAID_LIMIT_REACHED, &data);
}

void notice_consumption_limit(struct notice_list *list, const struct ledger_limit *limit,
                              const char *key)
{
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_text(&writer, "limit_id", limit->limit_id);
	json_text(&writer, "scope", limit->key ? "key" : "channel");
	json_text(&writer, "channel_id", limit->channel_id);
	json_text(&writer, "key_id", limit->key ? limit->key_id : NULL);
	json_text(&writer, "period", period_text(limit->period));
	json_text(&writer, "period_key", key);
	json_integer(&writer, "max_events", limit->max_events);
	json_text(&writer, "action", limit->block ? "block" : "warn");
	json_end_object(&writer);
	list_add(list, NOTICE_CONSUMPTION_LIMIT_REACHED, &data);
}
