package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.IS_HASH;
import static org.constancia.client.evidence.Forms.IS_TEXT;
import static org.constancia.client.evidence.Forms.integer;
import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

/** Content parts against the events of their archive. */
final class Parts {
    private static final int ENTRIES_MAX = 60000;
    private static final int LINE_MAX = 512;
    private static final Map<String, Forms.Form> HEAD = Map.of("certification_id", IS_TEXT, "channel_id", IS_TEXT,
        "number", integer(1, 10000), "v", integer(1, 1));
    private static final Map<String, Forms.Form> ITEM = Map.of("entry", IS_TEXT, "event_id", IS_TEXT, "hash", IS_HASH,
        "sequence", integer());

    private Parts() {
    }

    /** Checks a content part of the archive. Returns its name, or null where it is one of another certification. */
    static String check(Archive archive, Path path, String sha256) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            int number = 0;
            for (JsonNode part : archive.manifest.get("content_parts")) {
                number++;
                if (part.get("sha256").textValue().equals(sha256)) {
                    checkListed(archive, file, part, number);
                    return part.get("name").textValue();
                }
            }
            checkOther(archive, file, path.getFileName().toString());
            return null;
        }
    }

    private static void checkListed(Archive archive, FileChannel file, JsonNode part, int number) throws IOException {
        String where = part.get("name").textValue();
        Zip content = new Zip(file, where, ENTRIES_MAX);
        require(content.size() == part.get("bytes").longValue(), where, "its size");
        JsonNode head = Forms.document(content.read("part.json", LINE_MAX), HEAD, where, LINE_MAX);
        require(head.get("certification_id").textValue().equals(archive.text("certification_id"))
            && head.get("channel_id").textValue().equals(archive.channelId) && head.get("number").intValue() == number,
            where, "part.json");
        List<String> names = content.names();
        require(names.size() > 2 && names.get(0).equals("part.json")
            && names.get(names.size() - 1).equals("index.ndjson"), where, "its entries");
        Source<byte[]> index = new Lines(content.chunks("index.ndjson"), "index.ndjson", LINE_MAX, ENTRIES_MAX);
        Source<JsonNode> events = eventsOfContent(archive, part);
        for (String name : names.subList(1, names.size() - 1))
            checkEntry(content, name, index.next(), events.next());
        require(index.next() == null, where, "a line of its index too many");
        require(events.next() == null, where, "content of an event is missing");
    }

    private static void checkOther(Archive archive, FileChannel file, String where) throws IOException {
        Zip content = new Zip(file, where, ENTRIES_MAX);
        for (String name : content.names())
            content.digest(name);
        JsonNode head = Forms.document(content.read("part.json", LINE_MAX), HEAD, where, LINE_MAX);
        require(!head.get("certification_id").textValue().equals(archive.text("certification_id")), where,
            "the archive does not list it");
    }

    private static void checkEntry(Zip content, String name, byte[] line, JsonNode event) throws IOException {
        require(line != null, name, "its line in the index is missing");
        JsonNode item = Forms.document(line, ITEM, name, LINE_MAX);
        require(event != null, name, "content of no event");
        String stem = String.format("content/%012d.", item.get("sequence").longValue());
        require((name.equals(stem + "json") || name.equals(stem + "bin")) && item.get("entry").textValue().equals(name),
            name, "its name");
        require(item.get("sequence").longValue() == event.get("sequence").longValue()
            && item.get("event_id").equals(event.get("event_id")) && item.get("hash").equals(event.get("hash")), name,
            "another event's");
        require(content.digest(name).equals(item.get("hash").textValue()), name, "its digest");
    }

    /** Returns the events of modality content in the range of a part. They were checked before. */
    private static Source<JsonNode> eventsOfContent(Archive archive, JsonNode part) {
        Source<byte[]> lines = archive.zip.lines("events", part.get("first_sequence").longValue() - archive.first);
        long last = part.get("last_sequence").longValue();
        return () -> {
            for (byte[] line; (line = lines.next()) != null;) {
                JsonNode event = Forms.parsed(line, "events", Forms.LINE_MAX);
                if (event.get("sequence").longValue() > last)
                    return null;
                if (event.get("modality").textValue().equals("content"))
                    return event;
            }
            return null;
        };
    }
}
