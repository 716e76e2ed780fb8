package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** An element of BER: its tag, and its content or what it consists of. */
final class Ber {
    private static final int DEPTH_MAX = 32;

    private final byte[] data;
    private final int depth;
    private final int at;
    private final int begin;
    private final int end;
    private final int after;
    final int tag;

    private Ber(byte[] data, int at, int limit, int depth) {
        require(depth <= DEPTH_MAX && at + 2 <= limit, "BER", "cut off, or nested too deep");
        this.data = data;
        this.depth = depth;
        this.at = at;
        tag = data[at] & 255;
        require((tag & 31) != 31, "BER", "a tag number above 30");
        int first = data[at + 1] & 255;
        int place = at + 2;
        long size = first;
        if (first > 0x80) {
            int count = first & 127;
            require(count <= 4 && place + count <= limit, "BER", "a length");
            size = 0;
            for (int number = 0; number < count; number++)
                size = size << 8 | data[place++] & 255;
        }
        begin = place;
        if (first != 0x80) {
            require(begin + size <= limit, "BER", "cut off");
            end = (int) (begin + size);
            after = end;
        } else {
            require((tag & 0x20) != 0, "BER", "a length");
            while (!(place + 2 <= data.length && data[place] == 0 && data[place + 1] == 0))
                place = new Ber(data, place, limit, depth + 1).after;
            end = place;
            after = place + 2;
            require(after <= limit, "BER", "cut off");
        }
    }

    /** Returns the one element that the data is, to its last byte. */
    static Ber parse(byte[] data, int tag, String where) {
        Ber found = new Ber(data, 0, data.length, 1);
        require(found.tag == tag && found.after == data.length, where, "not one element of BER");
        return found;
    }

    byte[] content() {
        return Arrays.copyOfRange(data, begin, end);
    }

    byte[] whole() {
        return Arrays.copyOfRange(data, at, after);
    }

    /** Returns what it consists of, as a list that can be consumed. */
    List<Ber> children() {
        require((tag & 0x20) != 0, "BER", "an element that should consist of others");
        List<Ber> found = new ArrayList<>();
        for (int place = begin; place < end; place = found.get(found.size() - 1).after)
            found.add(new Ber(data, place, end, depth + 1));
        return found;
    }

    /** Returns the children, of which there has to be this number. */
    List<Ber> children(int count, String where) {
        List<Ber> found = children();
        require(found.size() == count, where, "an element is missing or one too many");
        return found;
    }

    Ber child(int number) {
        List<Ber> found = children();
        require(number < found.size(), "BER", "an element is missing");
        return found.get(number);
    }

    /** Removes the first element of a list, which has to have a tag. */
    static Ber expect(List<Ber> from, int tag, String where) {
        require(!from.isEmpty() && from.get(0).tag == tag, where, "an element is missing or another one");
        return from.remove(0);
    }

    /** Removes the first element of a list if it has a tag; else returns null. */
    static Ber optional(List<Ber> from, int tag) {
        return !from.isEmpty() && from.get(0).tag == tag ? from.remove(0) : null;
    }

    /** Returns the bytes of an OCTET STRING, which BER may have in parts. */
    byte[] octets() {
        if ((tag & 0x20) == 0)
            return content();
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        children().forEach(one -> all.writeBytes(one.octets()));
        return all.toByteArray();
    }

    /** Returns its DER: lengths in their shortest form, sets in order. */
    byte[] der() {
        if ((tag & 0x20) == 0)
            return element(tag, content());
        if (tag == 0x24)
            return element(tag & ~0x20, octets());
        List<byte[]> parts = new ArrayList<>();
        children().forEach(one -> parts.add(one.der()));
        return tag == 0x31 ? set(parts) : element(tag, joined(parts));
    }

    static byte[] set(List<byte[]> parts) {
        parts.sort(Arrays::compareUnsigned);
        return element(0x31, joined(parts));
    }

    private static byte[] joined(List<byte[]> parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        parts.forEach(all::writeBytes);
        return all.toByteArray();
    }

    static byte[] element(int tag, byte[] content) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        all.write(tag);
        int count = (39 - Integer.numberOfLeadingZeros(content.length)) / 8;
        if (content.length >= 128)
            all.write(0x80 | count);
        for (int place = content.length < 128 ? 0 : count - 1; place >= 0; place--)
            all.write(content.length >> 8 * place);
        all.writeBytes(content);
        return all.toByteArray();
    }
}
