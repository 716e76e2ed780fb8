package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.IS_CHAIN;
import static org.constancia.client.evidence.Forms.IS_HASH;
import static org.constancia.client.evidence.Forms.IS_LIST;
import static org.constancia.client.evidence.Forms.IS_OBJECT;
import static org.constancia.client.evidence.Forms.IS_TEXT;
import static org.constancia.client.evidence.Forms.IS_TIME;
import static org.constancia.client.evidence.Forms.integer;
import static org.constancia.client.evidence.Forms.oneOf;
import static org.constancia.client.evidence.Forms.orNull;
import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * An archive whose entries are as its manifest says, and its manifest as the ASiCManifest does. The signature over this
 * is judged by {@link #checkSignature}, the events by {@link Chain}.
 */
final class Archive {
    private static final int ENTRIES_MAX = 20000;
    private static final int MANIFEST_MAX = 16777215;
    private static final int DOCUMENT_MAX = 32768;
    private static final int SIGNATURE_MAX = 8519679;
    private static final int TOKEN_MAX = 131072;
    private static final String ASIC = "META-INF/ASiCManifest001.xml";
    private static final String SIGNATURE = "META-INF/signature001.p7s";
    private static final String MANIFEST = "manifest.json";
    private static final List<String> STREAMS = List.of("events", "leaves", "seals", "rounds", "validation",
        "renewals", "checkpoints", "log", "history");
    private static final List<Integer> STREAMS_OF_VERSION = List.of(0, 4, 6, 9);

    private static final Map<String, Forms.Form> GENESIS_FORMS = Map.of("chain", IS_CHAIN, "channel_id", IS_TEXT,
        "created_at", IS_TIME, "v", integer(1, 1));
    private static final Map<String, Forms.Form> CONFIG_FORMS = Map.of("channel_id", IS_TEXT, "declarant", IS_TEXT,
        "description", orNull(IS_TEXT), "modality", oneOf("content", "hash_only"), "name", IS_TEXT, "sealed_at",
            IS_TIME,
        "supplementary_info", orNull(IS_TEXT), "v", integer(1, 1), "version", integer());
    private static final Map<String, Forms.Form> MANIFEST_FORMS = Map.ofEntries(
        Map.entry("certification_id", IS_TEXT), Map.entry("channel_id", IS_TEXT), Map.entry("config_versions", IS_LIST),
        Map.entry("content_parts", IS_LIST), Map.entry("event_count", integer()), Map.entry("files", IS_LIST),
        Map.entry("first_chain_hash", IS_HASH), Map.entry("frozen_range", IS_OBJECT), Map.entry("issued_at", IS_TIME),
        Map.entry("last_chain_hash", IS_HASH), Map.entry("mode", IS_CHAIN), Map.entry("previous_chain_hash", IS_HASH),
        Map.entry("requested_range", IS_OBJECT), Map.entry("service", IS_OBJECT), Map.entry("v", integer(1, 3)),
        Map.entry("verification_code", IS_TEXT));
    private static final Map<String, Forms.Form> SERVICE_FORMS = Map.of("name", IS_TEXT, "prefix", IS_TEXT,
        "verification_url", IS_TEXT);
    private static final Map<String, Forms.Form> RANGE_FORMS = Map.of("first_sequence", integer(), "last_sequence",
        integer());
    private static final Map<String, Forms.Form> REQUESTED_FORMS = Map.of("from", orNull(IS_TIME), "seq_from",
        orNull(integer()), "seq_to", orNull(integer()), "to", orNull(IS_TIME));
    private static final Map<String, Forms.Form> FILE_FORMS = Map.of("path", IS_TEXT, "sha256", IS_HASH, "size",
        integer(0, Forms.INTEGER_MAX));
    private static final Map<String, Forms.Form> VERSION_FORMS = Map.of("hash", IS_HASH, "version", integer());
    private static final Map<String, Forms.Form> PART_FORMS = Map.of("bytes", integer(1, 1_000_000_000),
        "first_sequence", integer(), "last_sequence", integer(), "name", IS_TEXT, "sha256", IS_HASH);

    final Zip zip;
    final JsonNode manifest;
    final String mode;
    final String channelId;
    final long first;
    final long last;
    final String genesisHash;
    final boolean hasLog; // it says where its segments are in the log
    final Map<Long, Config> configs = new HashMap<>();
    Signed signed;
    String stampedAt; // the time of the signature's timestamp
    private final byte[] asic;

    /** A version of the channel's configuration. */
    record Config(String hash, String modality) { }

    /** Another kind of file was given, which may be right. */
    static final class NotArchive extends RuntimeException {
        private static final long serialVersionUID = 1L;

        NotArchive(String message) {
            super(message);
        }
    }

    Archive(FileChannel file, String where) throws IOException {
        zip = new Zip(file, where, ENTRIES_MAX);
        if (zip.names().get(0).equals("part.json"))
            throw new NotArchive(where + " is a content part: pass it as one, with its archive");
        manifest = readManifest();
        mode = manifest.get("mode").textValue();
        channelId = manifest.get("channel_id").textValue();
        first = manifest.get("frozen_range").get("first_sequence").longValue();
        last = manifest.get("frozen_range").get("last_sequence").longValue();
        checkEntries();
        hasLog = !zip.streams("checkpoints").isEmpty();
        require(hasLog != zip.streams("log").isEmpty(), zip.where(), "checkpoints or places in the log alone");
        asic = checkFiles();
        checkRanges();
        checkParts();
        genesisHash = checkGenesis();
        readConfigs();
    }

    String text(String member) {
        return manifest.get(member).textValue();
    }

    private JsonNode readManifest() throws IOException {
        JsonNode found = Forms.document(zip.read(MANIFEST, MANIFEST_MAX), MANIFEST_FORMS, MANIFEST, MANIFEST_MAX);
        Forms.members(found.get("service"), SERVICE_FORMS, MANIFEST);
        Forms.members(found.get("frozen_range"), RANGE_FORMS, MANIFEST);
        Forms.members(found.get("requested_range"), REQUESTED_FORMS, MANIFEST);
        found.get("files").forEach(one -> Forms.members(one, FILE_FORMS, MANIFEST));
        found.get("config_versions").forEach(one -> Forms.members(one, VERSION_FORMS, MANIFEST));
        found.get("content_parts").forEach(one -> Forms.members(one, PART_FORMS, MANIFEST));
        return found;
    }

    /** Checks that there are these entries, in this order. */
    private void checkEntries() throws IOException {
        List<String> expected = new ArrayList<>(List.of("mimetype", "README.txt", "LEEME.txt", "genesis.json"));
        int version = manifest.get("v").intValue();
        if (version > 2 && zip.has("signers.p7m"))
            expected.add("signers.p7m");
        long before = 0;
        for (JsonNode one : manifest.get("config_versions")) {
            long number = one.get("version").longValue();
            require(number > before, MANIFEST, "the order of configurations");
            before = number;
            expected.add(String.format("config/config-%06d.json", number));
        }
        STREAMS.forEach(stream -> expected.addAll(zip.streams(stream)));
        expected.addAll(List.of(MANIFEST, ASIC, SIGNATURE));
        require(zip.names().equals(expected), zip.where(), "other entries, or in another order");
        int unused = mode.equals("test") ? 1 : STREAMS_OF_VERSION.get(version);
        for (String stream : STREAMS.subList(unused, STREAMS.size()))
            require(zip.streams(stream).isEmpty(), zip.where(), "a stream that this archive does not have");
        byte[] kind = "application/vnd.etsi.asic-e+zip".getBytes(StandardCharsets.UTF_8);
        require(Arrays.equals(zip.read("mimetype", 64), kind), "mimetype", "its content");
    }

    /** Compares every entry with the manifest, and the ASiCManifest byte by byte. */
    private byte[] checkFiles() throws IOException {
        List<String> names = zip.names().subList(1, zip.names().size() - 3);
        JsonNode files = manifest.get("files");
        require(files.size() == names.size(), MANIFEST, "the digests of the files");
        for (int at = 0; at < names.size(); at++) {
            JsonNode one = files.get(at);
            String name = names.get(at);
            require(one.get("path").textValue().equals(name) && one.get("size").longValue() == zip.sizeOf(name)
                && one.get("sha256").textValue().equals(zip.digest(name)), MANIFEST, "the digests of the files");
        }
        StringBuilder lines = new StringBuilder("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
            .append("<asic:ASiCManifest xmlns:asic=\"http://uri.etsi.org/02918/v1.2.1#\"")
            .append(" xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\">\n<asic:SigReference URI=\"").append(SIGNATURE)
            .append("\" MimeType=\"application/x-pkcs7-signature\"/>\n");
        List<String> covered = new ArrayList<>(List.of(MANIFEST));
        covered.addAll(names);
        for (String name : covered) {
            lines.append("<asic:DataObjectReference URI=\"").append(name).append("\"><ds:DigestMethod")
                .append(" Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/><ds:DigestValue>")
                .append(Base64.getEncoder().encodeToString(HexFormat.of().parseHex(zip.digest(name))))
                .append("</ds:DigestValue></asic:DataObjectReference>\n");
        }
        lines.append("</asic:ASiCManifest>\n");
        byte[] found = zip.read(ASIC, MANIFEST_MAX);
        require(Arrays.equals(found, lines.toString().getBytes(StandardCharsets.UTF_8)), ASIC, "other bytes");
        return found;
    }

    private void checkRanges() {
        JsonNode asked = manifest.get("requested_range");
        JsonNode from = asked.get("from");
        JsonNode to = asked.get("to");
        JsonNode begin = asked.get("seq_from");
        JsonNode end = asked.get("seq_to");
        require(first <= last && manifest.get("event_count").longValue() == last - first + 1, MANIFEST, "its range");
        boolean isByNumber = from.isNull() && to.isNull() && begin.isNumber() && begin.longValue() == first
            && end.isNumber() && end.longValue() == last;
        boolean isByTime = begin.isNull() && end.isNull() && from.isTextual() && to.isTextual()
            && from.textValue().compareTo(to.textValue()) < 0;
        require(isByNumber || isByTime, MANIFEST, "the range that was asked for");
    }

    private void checkParts() {
        long after = first - 1;
        int number = 0;
        require(manifest.get("content_parts").size() <= 10000, "content_parts", "too many");
        for (JsonNode part : manifest.get("content_parts")) {
            number++;
            require(part.get("name").textValue().equals(String.format("content-part-%03d.zip", number)),
                "content_parts", "a name");
            long begin = part.get("first_sequence").longValue();
            long end = part.get("last_sequence").longValue();
            require(after < begin && begin <= end && end <= last, "content_parts", "a range");
            after = end;
        }
    }

    private String checkGenesis() throws IOException {
        String where = "genesis.json";
        JsonNode genesis = Forms.document(zip.read(where, DOCUMENT_MAX), GENESIS_FORMS, where, DOCUMENT_MAX);
        require(genesis.get("chain").textValue().equals(mode)
            && genesis.get("channel_id").textValue().equals(channelId),
            where, "another chain's");
        String hash = zip.digest(where);
        require(first > 1 || text("previous_chain_hash").equals(hash), where, "event 1 does not build on it");
        return hash;
    }

    private void readConfigs() throws IOException {
        for (JsonNode listed : manifest.get("config_versions")) {
            long version = listed.get("version").longValue();
            String name = String.format("config/config-%06d.json", version);
            byte[] data = zip.read(name, DOCUMENT_MAX);
            JsonNode config = Forms.document(data, CONFIG_FORMS, name, DOCUMENT_MAX);
            String hash = listed.get("hash").textValue();
            require(config.get("channel_id").textValue().equals(channelId)
                && config.get("version").longValue() == version
                && Forms.sha256(data).equals(hash), name, "another one");
            configs.put(version, new Config(hash, config.get("modality").textValue()));
        }
    }

    /** Checks what the signature and its timestamp are over, and their times. Returns both, for their values. */
    List<Signed> checkSignature() throws IOException {
        String issuedAt = text("issued_at");
        signed = new Signed(zip.read(SIGNATURE, SIGNATURE_MAX), SIGNATURE, asic, Signed.DATA);
        require(signed.digest.equals("SHA-256"), SIGNATURE, "another digest than SHA-256");
        signed.checkVersion();
        require(signed.signingTime().equals(Forms.timeOf(issuedAt).withNano(0)), SIGNATURE,
            "its signing-time is not issued_at");
        byte[] stamp = signed.timestamp();
        if (stamp == null) {
            require(mode.equals("test"), SIGNATURE, "it has no timestamp");
            return List.of(signed);
        }
        require(stamp.length <= TOKEN_MAX, SIGNATURE, "the size of its timestamp");
        Token token = new Token(stamp, "the signature's timestamp");
        require(token.imprint.equals(Forms.sha256(signed.value)), SIGNATURE, "its timestamp is over another one");
        stampedAt = Forms.textOf(token.time);
        require(issuedAt.compareTo(Forms.later(stampedAt)) <= 0, SIGNATURE, "issued_at is after its timestamp");
        return List.of(signed, token.signed);
    }

    /** Returns the latest time that anything in the archive may have. */
    String latest() {
        String issuedAt = text("issued_at");
        return Forms.later(stampedAt == null || issuedAt.compareTo(stampedAt) < 0 ? issuedAt : stampedAt);
    }
}
