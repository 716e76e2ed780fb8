package org.constancia.client;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Batches of declarations: what is sent, and what each line of the answer says. */
final class Batches implements Iterator<List<Batches.Item>> {
    static final int ITEMS_MAX = 1000;
    static final int BYTES_MAX = 8 << 20;

    private final Iterator<Declaration> declarations;
    private final ObjectMapper mapper;
    private Item waiting;

    Batches(Iterator<Declaration> declarations, ObjectMapper mapper) {
        this.declarations = declarations;
        this.mapper = mapper;
    }

    /** A declaration as it is sent: its JSON without an end. */
    record Item(String clientRef, String hash, byte[] line) { }

    static byte[] body(Declaration declared, ObjectMapper mapper) {
        ObjectNode body = Json.MAPPER.createObjectNode().put("client_ref", declared.clientRef());
        if (declared.payload() != null)
            body.set("payload", Json.object(mapper, declared.payload()));
        if (declared.hash() != null)
            body.put("hash", declared.hash()).put("hash_alg",
                declared.hashAlg() == null ? "sha-256" : declared.hashAlg());
        if (declared.occurredAt() != null)
            body.put("occurred_at", Json.text(declared.occurredAt()));
        return Json.bytes(body);
    }

    @Override
    public boolean hasNext() {
        return waiting != null || declarations.hasNext();
    }

    /** Returns the next batch that the service takes. A declaration that is too large for any is alone in its own. */
    @Override
    public List<Item> next() {
        if (!hasNext())
            throw new NoSuchElementException();
        List<Item> batch = new ArrayList<>();
        long size = 0;
        while (hasNext()) {
            Item item = waiting != null ? waiting : item(declarations.next());
            waiting = null;
            if (!batch.isEmpty() && (batch.size() == ITEMS_MAX || size + item.line.length + 1 > BYTES_MAX)) {
                waiting = item;
                return batch;
            }
            batch.add(item);
            size += item.line.length + 1;
        }
        return batch;
    }

    private Item item(Declaration declared) {
        return new Item(declared.clientRef(), declared.hash(), body(declared, mapper));
    }

    static byte[] joined(List<Item> batch) {
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        for (Item item : batch) {
            lines.writeBytes(item.line);
            lines.write('\n');
        }
        return lines.toByteArray();
    }

    /** Returns what the service answered, one line for each item in their order. */
    static List<Outcome> outcomes(List<Item> batch, byte[] answer) {
        List<Outcome> found = new ArrayList<>();
        int at = 0;
        int lines = 0;
        for (int end = 0; end <= answer.length; end++) {
            if (end < answer.length && answer[end] != '\n' || end == answer.length && at == end)
                continue;
            if (lines < batch.size())
                found.add(outcome(batch.get(lines), Arrays.copyOfRange(answer, at, end)));
            lines++;
            at = end + 1;
        }
        if (lines != batch.size())
            throw new UnexpectedAnswerException(batch.size() + " items were sent, and " + lines + " lines came back");
        return found;
    }

    private static Outcome outcome(Item item, byte[] line) {
        ObjectNode said = Json.decode(line, ObjectNode.class);
        JsonNode status = said.remove("http_status");
        if (status == null || !status.isInt() || status.intValue() < 200)
            throw new UnexpectedAnswerException("a line of the answer is not of a batch");
        if (status.intValue() >= 300) {
            return new Outcome(item.clientRef, null, Transport.refusal(status.intValue(), said,
                said.path("retry_after").asText(""), null));
        }
        Receipt receipt = Receipt.of(Json.bytes(said), status.intValue() == 200);
        if (!item.clientRef.equals(receipt.getClientRef())) {
            throw new UnexpectedAnswerException(
                "a line is of " + receipt.getClientRef() + ", not of " + item.clientRef);
        }
        return new Outcome(item.clientRef, receipt, null);
    }
}
