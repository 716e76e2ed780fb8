package org.constancia.client.evidence;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.constancia.client.evidence.Events.Link;

/** Compares receipts with events that come in order. Receipts wait on the disk: of each, two numbers are in memory. */
final class Differences implements AutoCloseable {
    private static final int LINE_MAX = 1 << 20;
    private static final int UNUSABLE_MAX = 10; // that are named
    private static final int WHOLE_MAX = 64 << 20;
    private static final int LEFT_OUT_MAX = 10;
    private static final List<String> COMPARED = List.of("event_id", "client_ref", "received_at", "occurred_at", "hash",
        "hash_alg", "modality", "config_version");
    private static final Map<String, Forms.Form> FORMS = Map.of("event_id", Forms.IS_TEXT, "client_ref", Forms.IS_TEXT,
        "channel_id", Forms.IS_TEXT, "mode", Forms.IS_CHAIN, "sequence", Forms.integer(), "received_at", Forms.IS_TIME,
        "hash", Forms.IS_TEXT, "modality", Forms.IS_TEXT, "chain_hash", Forms.IS_HASH, "config_version",
        Forms.integer());

    private final Archive archive;
    private final Path place;
    private final RandomAccessFile facts;
    private final List<long[]> waiting = new ArrayList<>(); // sequence, and place of the facts
    private int at;
    long compared;
    long outside; // of events that the archive does not hold
    final List<Long> leftOut = new ArrayList<>(); // of events that it would have to hold
    final List<String> unusable = new ArrayList<>(); // why some were not compared; the first ones
    private boolean hasUsable;

    /** What was given is no receipt. */
    static final class NotUsable extends Exception {
        private static final long serialVersionUID = 1L;

        NotUsable(String message) {
            super(message);
        }
    }

    Differences(Archive archive) throws IOException {
        this.archive = archive;
        place = Files.createTempFile("constancia", ".receipts");
        facts = new RandomAccessFile(place.toFile(), "rw");
    }

    @Override
    public void close() throws IOException {
        try {
            facts.close();
        } finally {
            Files.delete(place);
        }
    }

    /** Takes the receipts of a file: one in each line, one alone, or a JSON array of them. */
    void addFile(Path path) throws IOException, NotUsable {
        if (isLines(path)) {
            try (InputStream file = Files.newInputStream(path)) {
                addLines(file, path);
            }
            return;
        }
        if (Files.size(path) > WHOLE_MAX)
            throw new NotUsable(path + ": it has more than " + WHOLE_MAX + " bytes, and not one receipt a line");
        byte[] data = Files.readAllBytes(path);
        if (new String(data, StandardCharsets.ISO_8859_1).isBlank())
            return;
        JsonNode value = parsed(data, path.toString());
        int number = 0;
        for (JsonNode one : value.isArray() ? value : List.of(value))
            add(path + ": receipt " + ++number, one);
    }

    private static boolean isLines(Path path) throws IOException {
        byte[] first;
        try (InputStream file = Files.newInputStream(path)) {
            first = file.readNBytes(LINE_MAX);
        }
        int end = 0;
        while (end < first.length && first[end] != '\n')
            end++;
        try {
            return parsed(Arrays.copyOf(first, end), "").isObject();
        } catch (NotUsable error) {
            return false;
        }
    }

    private void addLines(InputStream file, Path path) throws IOException, NotUsable {
        byte[] chunk = new byte[65536];
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        int number = 1;
        for (int size; (size = file.read(chunk)) >= 0;) {
            int begin = 0;
            for (int end = 0; end < size; end++) {
                if (chunk[end] != '\n')
                    continue;
                line.write(chunk, begin, end - begin);
                addLine(path + ": line " + number++, line.toByteArray());
                line.reset();
                begin = end + 1;
            }
            line.write(chunk, begin, size - begin);
            if (line.size() > LINE_MAX)
                throw new NotUsable(path + ": line " + number + ": it has more than " + LINE_MAX + " bytes");
        }
        addLine(path + ": line " + number, line.toByteArray());
    }

    private void addLine(String where, byte[] line) throws IOException {
        for (byte one : line) {
            if (one != ' ' && one != '\t' && one != '\r') {
                add(where, line);
                return;
            }
        }
    }

    /** Takes a receipt as JSON, with what to call it. One that cannot be used spoils no other one. */
    void add(String where, byte[] line) throws IOException {
        try {
            take(where, parsed(line, where));
        } catch (NotUsable error) {
            leaveOut(error);
        }
    }

    private void add(String where, JsonNode value) throws IOException {
        try {
            take(where, value);
        } catch (NotUsable error) {
            leaveOut(error);
        }
    }

    private void leaveOut(NotUsable error) {
        if (unusable.size() < UNUSABLE_MAX)
            unusable.add(error.getMessage());
    }

    /** Is called after the last receipt. */
    void requireUsable() throws NotUsable {
        if (!hasUsable && !unusable.isEmpty())
            throw new NotUsable(unusable.get(0));
    }

    private static JsonNode parsed(byte[] data, String where) throws NotUsable {
        try {
            return Forms.MAPPER.readTree(data);
        } catch (IOException error) {
            throw new NotUsable(where + ": it is no JSON");
        }
    }

    private void take(String where, JsonNode value) throws IOException, NotUsable {
        if (!value.isObject())
            throw new NotUsable(where + ": it is not the answer to a registration");
        for (Map.Entry<String, Forms.Form> form : FORMS.entrySet()) {
            if (!form.getValue().test(value.path(form.getKey())))
                throw new NotUsable(where + ": '" + form.getKey() + "' is missing or not of its form");
        }
        hasUsable = true;
        if (!value.get("channel_id").textValue().equals(archive.channelId)
                || !value.get("mode").textValue().equals(archive.mode)) {
            outside++;
            return;
        }
        ObjectNode kept = Forms.MAPPER.createObjectNode();
        COMPARED.forEach(name -> kept.set(name, value.hasNonNull(name) ? value.get(name) : null));
        if (kept.get("hash_alg").isNull())
            kept.put("hash_alg", "sha-256");
        kept.set("chain_hash", value.get("chain_hash"));
        byte[] line = Forms.MAPPER.writeValueAsBytes(kept);
        waiting.add(new long[] {value.get("sequence").longValue(), facts.length()});
        facts.seek(facts.length());
        facts.writeInt(line.length);
        facts.write(line);
    }

    /** Is called once all receipts are there, and before the first event. */
    void begin() {
        waiting.sort(Comparator.comparingLong(one -> one[0]));
    }

    /** Returns how the receipts of an event differ from it. */
    List<String> of(Link link) throws IOException {
        passOver(link.sequence());
        List<String> found = new ArrayList<>();
        for (; at < waiting.size() && waiting.get(at)[0] == link.sequence(); at++) {
            JsonNode receipt = factsAt(at);
            List<String> names = new ArrayList<>();
            if (!receipt.get("chain_hash").textValue().equals(link.chainHash()))
                names.add("chain_hash");
            if (link.event() == null) {
                countOutside(link.sequence(), receipt);
            } else {
                compared++;
                for (String name : COMPARED) {
                    if (!isSame(receipt.get(name), link.event().get(name)))
                        names.add(name);
                }
            }
            if (!names.isEmpty()) {
                found.add("event " + link.sequence() + " differs from the acknowledged event: "
                    + String.join(", ", names));
            }
        }
        return found;
    }

    private static boolean isSame(JsonNode one, JsonNode other) {
        if (one.isIntegralNumber() && other.isIntegralNumber())
            return one.longValue() == other.longValue();
        return Objects.equals(one, other);
    }

    /** Is called after the last event. */
    void end() throws IOException {
        passOver(Long.MAX_VALUE);
    }

    private void passOver(long sequence) throws IOException {
        for (; at < waiting.size() && waiting.get(at)[0] < sequence; at++)
            countOutside(waiting.get(at)[0], factsAt(at));
    }

    private JsonNode factsAt(int number) throws IOException {
        facts.seek(waiting.get(number)[1]);
        byte[] line = new byte[facts.readInt()];
        facts.readFully(line);
        return Forms.MAPPER.readTree(line);
    }

    /**
     * Counts the receipt of an event that the archive does not hold. One that was received in the time that was asked
     * for, before the range, was left out: later ones may be of after the request.
     */
    private void countOutside(long sequence, JsonNode receipt) {
        JsonNode start = archive.manifest.get("requested_range").get("from");
        outside++;
        if (!start.isNull() && sequence < archive.first && leftOut.size() < LEFT_OUT_MAX
                && receipt.get("received_at").textValue().compareTo(start.textValue()) >= 0)
            leftOut.add(sequence);
    }
}
