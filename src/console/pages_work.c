/* What the console has of the work itself: channels, keys, limits, webhooks. */
#include "pages_made.h"
#include "console/channels.h"
#include "console/events.h"
#include "console/try.h"
#include "console/webhooks.h"

#define ALL_CHANNELS                                                                               \
	{                                                                                              \
		"channels", "channel list", "limit=1000", NULL                                             \
	}

const struct console_page work_pages[] = {
	{.path = "/events",
     .template = &page_events,
     .section = "events",
     .sources = (const struct console_source[]){ALL_CHANNELS, {0}},
     .more = events_state},
	{.path = "/events/{event}", .template = &page_event, .section = "events", .more = event_state},
	{.path = "/events/{event}/content", .section = "events", .leads = event_content},
	{.path = "/events/{event}/record", .section = "events", .leads = event_record_file},
	{.path = "/events/{event}/evidence-record", .section = "events", .leads = event_evidence},
	{.path = "/try",
     .template = &page_try,
     .section = "try",
     .sources = (const struct console_source[]){ALL_CHANNELS, {0}},
     .more = try_page},
	{.path = "/channels",
     .template = &page_channels,
     .section = "channels",
     .sources =
         (const struct console_source[]){
			 {"channels", "channel list", "limit=100 after=?after", "channel_id"}, {0}}},
	{.path = "/channels/{channel}",
     .template = &page_channel,
     .section = "channels",
     .more = channel_page},
	{.path = "/keys",
     .template = &page_keys,
     .section = "keys",
     .sources =
         (const struct console_source[]){
			 {"keys", "key list", "limit=100 channel=?channel after=?after", "key_id"},
			 ALL_CHANNELS,
			 {0}}},
	{.path = "/limits",
     .template = &page_limits,
     .section = "limits",
     .sources =
         (const struct console_source[]){
			 {"limits", "limit list", "limit=100 channel=?channel after=?after", "limit_id"},
			 ALL_CHANNELS,
			 {"keys", "key list", "limit=1000", NULL},
			 {"state", "account overview", NULL, NULL},
			 {0}}},
	{.path = "/webhooks",
     .template = &page_webhooks,
     .section = "webhooks",
     .sources = (const struct console_source[]){{"endpoints", "webhook list", "limit=1000", NULL},
                                                {"state", "account overview", NULL, NULL},
                                                {0}},
     .more = webhooks_page},
	{.path = "/webhooks/{endpoint}",
     .template = &page_endpoint,
     .section = "webhooks",
     .sources =
         (const struct console_source[]){
			 {"endpoint", "webhook show", "endpoint={endpoint}", NULL},
			 {"notices", "notice list",
              "endpoint={endpoint} limit=25 status=?status type=?type since=?since until=?until "
              "before=?before",
              "number"},
			 {0}},
     .more = endpoint_page},
	{.path = "/webhooks/{endpoint}/notices/{notice}",
     .template = &page_delivery,
     .section = "webhooks",
     .sources =
         (const struct console_source[]){{"endpoint", "webhook show", "endpoint={endpoint}", NULL},
                                         {"notice", "notice show", "notice={notice}", NULL},
                                         {0}},
     .more = delivery_page},
	{0},
};

#define CHANNEL "/channels/{channel}"
#define ENDPOINT "/webhooks/{endpoint}"
#define DELIVERY "/webhooks/{endpoint}/notices/{notice}"

const struct console_form work_forms[] = {
	{.path = "/try/send", .operation = "event try", .page = "/try", .answered = true},
	{.path = "/channels/open",
     .operation = "channel create",
     .page = "/channels",
     .done = "channel_create"},
	{.path = CHANNEL "/seal",
     .operation = "channel configure",
     .page = CHANNEL,
     .done = "channel_configure",
     .unchanged = "channel_same"},
	{.path = CHANNEL "/suspend",
     .operation = "channel suspend",
     .page = CHANNEL,
     .done = "channel_suspend"},
	{.path = CHANNEL "/resume",
     .operation = "channel resume",
     .page = CHANNEL,
     .done = "channel_resume"},
	{.path = "/keys/make", .operation = "key create", .page = "/keys", .shows = &page_key_made},
	{.path = "/keys/expire", .operation = "key expire", .page = "/keys", .done = "key_expire"},
	{.path = "/keys/revoke", .operation = "key revoke", .page = "/keys", .done = "key_revoke"},
	{.path = "/limits/set", .operation = "limit create", .page = "/limits", .done = "limit_create"},
	{.path = "/limits/delete",
     .operation = "limit delete",
     .page = "/limits",
     .done = "limit_delete"},
	{.path = "/webhooks/make",
     .operation = "webhook create",
     .page = "/webhooks",
     .shows = &page_endpoint_secret},
	{.path = ENDPOINT "/change",
     .operation = "webhook update",
     .page = ENDPOINT,
     .done = "webhook_update"},
	{.path = ENDPOINT "/rotate",
     .operation = "webhook rotate",
     .page = ENDPOINT,
     .shows = &page_endpoint_secret},
	{.path = ENDPOINT "/test",
     .operation = "webhook test",
     .page = ENDPOINT,
     .shows = &page_endpoint_tested},
	{.path = ENDPOINT "/enable",
     .operation = "webhook enable",
     .page = ENDPOINT,
     .done = "webhook_enable"},
	{.path = ENDPOINT "/disable",
     .operation = "webhook disable",
     .page = ENDPOINT,
     .done = "webhook_disable"},
	{.path = ENDPOINT "/replay",
     .operation = "webhook replay",
     .page = ENDPOINT,
     .shows = &page_replayed},
	{.path = ENDPOINT "/delete",
     .operation = "webhook delete",
     .page = "/webhooks",
     .done = "webhook_delete"},
	{.path = DELIVERY "/replay",
     .operation = "webhook replay",
     .page = DELIVERY,
     .done = "webhook_replay"},
	{0},
};
