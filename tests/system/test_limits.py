"""Numbers with a fixed maximum: the largest works in full, the next one is refused,
and an approaching maximum is reported before."""

import datetime
import json

import pytest

import stores
from client import Service, eventually, fresh

pytestmark = pytest.mark.both_stores

CHANNELS, EVENTS = 4_194_303, 1_099_511_627_775
CONFIGURATIONS, CERTIFICATIONS = 100_000, 9_999_999
CONFIGURATIONS_SHOWN = CONFIGURATIONS_OF_A_DAY = 1000


@pytest.fixture(name="own")
def own_service(tmp_path):
    service = Service(tmp_path, rate__live=100000, rate__test=100000, seal__interval="200ms").start()
    try:
        yield service
        assert service.stop() == 0
    finally:
        service.discard()


def change(service, sql):
    service.stop()
    service.store.change(sql)
    service.start()


def number_of(service, channel):
    ((number,),) = service.store.rows(
        f"SELECT channel FROM channels WHERE channel_id = {stores.text(channel.id)}")
    return int(number)


def renumbered(service, channel, number):
    """The channel gets that number, as if as many had been created before it."""
    old = number_of(service, channel)
    return "".join(f"UPDATE {table} SET channel = {number} WHERE channel = {old};"
                   for table in ("channels", "channel_configs", "api_keys")) + "".join(
        f"UPDATE chains SET chain = {number * 2 + mode} WHERE chain = {old * 2 + mode};"
        for mode in (0, 1))


def used(service, limit):
    """Once it is read."""
    def look():
        _, text = service.monitor("/metrics")
        return [line for line in text.splitlines()
                if line.startswith(f'constancia_limit_used_ratio{{limit="{limit}"}} ')]
    (line,) = eventually(look, "the limits are read")
    return float(line.split()[1])


def warned(service, *words):
    """Whether /readyz has one warning with these words, and the log has it once."""
    warnings = [text for text in json.loads(service.monitor("/readyz")[1])["warnings"]
                if all(word in text for word in words)]
    told = [line for line in service.log_lines()
            if line["event"] == "readiness_changed" and all(word in line["come"] for word in words)]
    return len(warnings) == 1 and len(told) == 1


def create(service, account_id):
    return service.run("channel", "create", "--account", account_id, "--name", "One more",
                       "--declarant", "A declarant", "--modality", "content")


def test_far_from_every_limit_nothing_is_warned_of(own):
    own.new_channel()
    for limit in ("channels", "events", "configurations", "live_certifications", "test_certifications",
                  "signers", "timestamp_roots"):
        assert used(own, limit) < 0.01
    assert own.metric('readiness_findings{kind="limit"}') == 0


def test_the_last_channel_works_and_the_next_is_refused(own):
    early = own.new_channel()
    change(own, renumbered(own, early, CHANNELS - 1))
    assert used(own, "channels") > 0.99
    eventually(lambda: warned(own, f"{CHANNELS - 1} of at most {CHANNELS} channels of the store are used"),
               "it is warned of")
    last = own.new_channel(account_id=early.account_id)
    assert number_of(own, last) == CHANNELS
    for channel in (early, last):
        for client in (channel.live, channel.test):
            reference = fresh()
            event = client.register({"n": 1}, reference).expect(201).json
            assert event["sequence"] == 1
            again = client.register({"n": 1}, reference).expect(200)
            assert again.json["event_id"] == event["event_id"]
            assert [each["event_id"] for each in client.get("/v1/events").json["data"]] == [event["event_id"]]
            assert client.certified(seq_from=1, seq_to=1)["status"] == "completed"
    assert early.live.balance()["balance"] == 1000 - 2
    done = create(own, early.account_id)
    assert done.returncode == 1 and str(CHANNELS) in done.stderr
    own.admin("store", "check")


def test_the_last_event_of_a_chain_is_taken_and_the_next_is_refused(own):
    channel = own.new_channel()
    chain = number_of(own, channel) * 2 + 1  # an earlier event is missing: it must not be sealed
    change(own, f"UPDATE chains SET last_sequence = {EVENTS - 2} WHERE chain = {chain}")
    assert used(own, "events") > 0.99
    eventually(lambda: warned(own, "events of a chain", channel.id), "it is warned of")
    assert channel.test.register({"n": 0}).expect(201).json["sequence"] == EVENTS - 1
    reference = fresh()
    event = channel.test.register({"n": 1}, reference).expect(201).json
    assert event["sequence"] == EVENTS
    for _ in range(2):
        told = {language: channel.test.register({"n": 2}, "one more", language=language)
                .expect(400, "validation_error").message for language in ("en", "es")}
        assert all(str(EVENTS) in text for text in told.values()) and told["en"] != told["es"]
    assert channel.test.register({"n": 1}, reference).expect(200).json["event_id"] == event["event_id"]
    assert channel.test.register({"n": 3}, reference).expect(409)
    assert channel.test.event(event["event_id"])["sequence"] == EVENTS
    for order, wanted in (("asc", [EVENTS - 1, EVENTS]), ("desc", [EVENTS, EVENTS - 1])):
        listed = channel.test.get(f"/v1/events?seq_from={EVENTS - 9}&order={order}").expect(200)
        assert [each["sequence"] for each in listed.json["data"]] == wanted
    assert channel.live.register({"n": 1}).expect(201).json["sequence"] == 1


def with_configurations(number, first, last, long, days_ago):
    """Those versions of the channel, with the longest texts, sealed as many days before its first one."""
    return ("INSERT INTO channel_configs (account, channel, version, sealed_at, modality, name, "
            "description, declarant, supplementary_info, config_hash) "
            f"WITH RECURSIVE numbers(number) AS (SELECT {first} UNION ALL SELECT number + 1 FROM numbers WHERE number < {last}) "
            f"SELECT account, channel, number, sealed_at - {days_ago * 86400_000_000}, modality, name, {long}, declarant, "
            f"{long}, config_hash FROM channel_configs, numbers WHERE channel = {number} AND version = 1;"
            f"UPDATE channels SET config_version = {last} WHERE channel = {number};")


def longest():
    """Text of which each byte is two in JSON."""
    return ("replace('" + "n" * 2000 + "', 'n', char(10))" if stores.KIND == "sqlite" else "repeat(chr(10), 2000)")


def versions(answer):
    return [each["version"] for each in answer["config_versions"]]


def test_the_last_configuration_is_sealed_and_the_next_is_refused(own):
    channel = own.new_channel()
    number = number_of(own, channel)
    first = CONFIGURATIONS - 1150
    change(own, with_configurations(number, first, CONFIGURATIONS - 1, longest(), days_ago=2))
    assert used(own, "configurations") > 0.99
    eventually(lambda: warned(own, "configuration versions", channel.id), "it is warned of")
    own.admin("channel", "configure", channel.id, "--name", "Another name")
    event = channel.live.register({"n": 1}).expect(201).json
    assert event["config_version"] == CONFIGURATIONS
    certification = channel.live.certified(seq_from=1, seq_to=1)
    assert certification["status"] == "completed"
    assert certification["config_versions_in_range"] == [CONFIGURATIONS]
    done = own.run("channel", "configure", channel.id, "--name", "One name more")
    assert done.returncode == 1 and str(CONFIGURATIONS) in done.stderr
    described = channel.live.get("/v1/channel").expect(200).json
    assert described["current_config"]["name"] == "Another name"
    oldest = CONFIGURATIONS - CONFIGURATIONS_SHOWN + 1
    assert versions(described) == list(range(oldest, CONFIGURATIONS + 1))


def test_a_channel_with_many_configurations_is_shown_from_the_newest_on(own):
    """With more of them than one answer has, each as long as it can be."""
    channel = own.new_channel()
    change(own, with_configurations(number_of(own, channel), 2, 1150, longest(), days_ago=-1))
    for client in (channel.live, channel.test):
        answer = client.get("/v1/channel").expect(200)
        assert answer.headers["Link"] == '</v1/channel?before_version=151>; rel="next"'
        newest = answer.json
        assert versions(newest) == list(range(151, 1151))
        assert newest["current_config"] == newest["config_versions"][-1]
        assert newest["current_config"]["description"] == "\n" * 2000
        answer = client.get("/v1/channel?before_version=151").expect(200)
        rest = answer.json
        assert versions(rest) == list(range(1, 151)) and "Link" not in answer.headers
        assert rest["current_config"] == newest["current_config"]
        few = client.get("/v1/channel?before_version=4").expect(200).json
        assert few["config_versions"] == rest["config_versions"][:3]
        assert versions(client.get("/v1/channel?before_version=100001").expect(200).json) == versions(newest)
        assert versions(client.get("/v1/channel?before_version=1").expect(200).json) == []
    for wrong in ("0", "-1", "x", "", "100002"):
        channel.live.get(f"/v1/channel?before_version={wrong}").expect(400, "validation_error")
    channel.live.get("/v1/channel?cursor=1").expect(400, "validation_error")
    # The digest of each that was made up here is missed, once in each chain.
    checked = own.run("store", "check", "--json")
    assert json.loads(checked.stdout)["problem_count"] == 2 * 1149


def test_a_channel_takes_so_many_configurations_a_day(own):
    channel = own.new_channel()
    number = number_of(own, channel)
    change(own, with_configurations(number, 2, CONFIGURATIONS_OF_A_DAY + 1, longest(), days_ago=-1))
    for _ in range(2):
        done = own.run("channel", "configure", channel.id, "--name", "One name more")
        assert done.returncode == 1 and f"{CONFIGURATIONS_OF_A_DAY} configuration versions today" in done.stderr
    assert channel.live.get("/v1/channel").expect(200).json["current_config"]["version"] == CONFIGURATIONS_OF_A_DAY + 1
    change(own, f"UPDATE channel_configs SET sealed_at = sealed_at - {2 * 86400_000_000} WHERE channel = {number}")
    own.admin("channel", "configure", channel.id, "--name", "Another name")
    assert channel.live.get("/v1/channel").expect(200).json["current_config"]["name"] == "Another name"


def test_the_last_certification_of_a_year_is_issued_and_the_next_is_refused(own):
    channel = own.new_channel()
    for client in (channel.live, channel.test):
        client.register({"n": 1}).expect(201)
    year = datetime.datetime.now(datetime.timezone.utc).year
    change(own, "".join(  # the next year may begin meanwhile
        f"INSERT INTO certification_numbers (year, mode, last_number) VALUES ({each}, '{mode}', "
        f"{CERTIFICATIONS - 1});" for each in (year, year + 1) for mode in ("live", "test")))
    assert used(own, "live_certifications") > 0.99
    for mode in ("live", "test"):
        eventually(lambda mode=mode: warned(own, f"{mode} certifications of a year"), "it is warned of")
    for client, marker in ((channel.live, ""), (channel.test, "TEST-")):
        last = client.certified(seq_from=1, seq_to=1)
        assert last["status"] == "completed"
        assert last["certification_id"].startswith(f"CERT-{marker}20")
        assert last["certification_id"].endswith(f"-{CERTIFICATIONS}")
        for _ in range(2):
            told = {language: client.certify(seq_from=1, seq_to=1, language=language)
                    .expect(400, "validation_error").message for language in ("en", "es")}
            assert all(str(CERTIFICATIONS) in text for text in told.values()) and told["en"] != told["es"]
    estimate = own.admin("certification", "estimate", channel.id, "--seq-from", "1", "--seq-to", "1")
    assert str(CERTIFICATIONS) in json.dumps(estimate["hindered_by"])
    assert channel.live.balance()["balance"] == 1000 - 1
