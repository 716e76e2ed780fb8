package org.constancia.client.evidence;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HexFormat;

/**
 * Computes a root while its leaves arrive. Of a tree of n leaves it holds the roots of the complete trees on its left,
 * one for each bit of n that is set.
 */
final class Tree {
    private final Deque<byte[]> left = new ArrayDeque<>(); // the last one first
    private long count;

    void add(String leaf) {
        byte[] node = HexFormat.of().parseHex(leaf);
        for (long bits = count++; (bits & 1) == 1; bits >>= 1)
            node = Forms.join(left.pop(), node);
        left.push(node);
    }

    /** Returns the root over all leaves, of which there is one at least. No leaf may be added afterwards. */
    String root() {
        byte[] node = left.pop();
        while (!left.isEmpty())
            node = Forms.join(left.pop(), node);
        return HexFormat.of().formatHex(node);
    }
}
